"""The event journal: every line can be read again, files are bounded, nothing waits for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupsvc.journals.kinds import Level
from groupsvc.journals.segments import closed, segments_of
from groupsvc.wire.history import HistoryEvent, from_line
from groupsvcd.core.effects import Journal
from groupsvcd.observe import events as writing
from groupsvcd.observe.events import EventWriter


class Clock:
    """Goes on when told."""

    now = 12.5

    def __call__(self) -> float:
        return self.now


def writer(
    path: Path, *, boot: int = 0xABC, file_bytes_max: int = 10**6, files_max: int = 3,
    file_seconds_max: float = 100.0, level: Level = "full", clock: Clock | None = None,
) -> EventWriter:  # fmt: skip
    return EventWriter(
        path, "n1", boot, clock=clock or Clock(), wall_ns=lambda: 99, file_bytes_max=file_bytes_max,
        files_max=files_max, file_seconds_max=file_seconds_max, level=level, clock_id="this machine",
    )  # fmt: skip


def lines(path: Path) -> list[HistoryEvent]:
    return [from_line(line) for line in path.read_bytes().splitlines()]


def names(path: Path) -> list[str]:
    return sorted(file.name for file in path.iterdir())


def test_effects_become_numbered_lines_with_clocks_and_node(tmp_path: Path) -> None:
    events = writer(tmp_path / "made")
    events.write(Journal("promise", group=3, epoch=5, args={"to": "n2"}), 77)
    events.write(Journal("stable", seq=9, origin="n2/4", n=8), 78)
    events.close()
    _, first, second = lines(tmp_path / "made" / "n1.abc.000001.ndjson")
    assert (2, "abc", 12.5, 99, "n1", 77, "promise", 3, 5, {"to": "n2"}) == (
        first.i, first.boot, first.t, first.wall_ns, first.node, first.inc,
        first.op, first.group, first.epoch, first.args,
    )  # fmt: skip
    assert (3, 78, "stable", 9, "n2/4", 8) == (second.i, second.inc, second.op, second.seq, second.origin, second.n)


def test_a_file_says_first_at_which_level_it_is_written_and_by_which_clock(tmp_path: Path) -> None:
    events = writer(tmp_path, level="batch")
    events.write(Journal("promise"), 1)
    events.close()
    head = lines(events.path)[0]
    assert ("journal", 1, "batch", "this machine") == (
        head.op, head.args["segment"], head.args["level"], head.args["clock"],
    )  # fmt: skip


def test_files_are_rotated_by_size_and_the_oldest_go(tmp_path: Path) -> None:
    events = writer(tmp_path, file_bytes_max=700)
    for n in range(100):
        events.write(Journal("stable", seq=n), 1)
        events.flush()
    events.close()
    files = names(tmp_path)
    assert 3 == len(files)
    assert events.path.name == files[-1] != "n1.abc.000003.ndjson"
    events_of = [event for file in files for event in lines(tmp_path / file)]
    assert list(range(events_of[0].i, events_of[-1].i + 1)) == [event.i for event in events_of]
    kept = [event.seq for event in events_of if event.op == "stable"]
    assert list(range(100))[-len(kept) :] == kept
    assert all(file.stat().st_size <= 700 for file in tmp_path.iterdir())
    assert ["journal"] * 3 == [lines(tmp_path / file)[0].op for file in files]


def test_files_are_rotated_by_age(tmp_path: Path) -> None:
    """A quiet node, too, has files that can be collected."""
    clock = Clock()
    events = writer(tmp_path, file_seconds_max=60.0, clock=clock)
    for now in (0.0, 59.0, 61.0, 62.0, 300.0):
        clock.now = now
        events.write(Journal("promise"), 1)
    events.close()
    assert [3, 3, 2] == [len(lines(tmp_path / file)) for file in names(tmp_path)]


def test_a_restart_writes_into_no_file_that_was_there(tmp_path: Path) -> None:
    """The files of a run before stay as they are, until their place is taken; others' are none of ours."""
    (tmp_path / "n2.1.000001.ndjson").touch()
    for boot in (0x9, 0xA, 0x10, 0x11):
        events = writer(tmp_path, boot=boot, file_bytes_max=700)
        while events.path.stat().st_size < 500:
            events.write(Journal("promise"), 1)
            events._take_batches()
            events._write_gathered()
        events.close()
    assert ["n1.10.000001.ndjson", "n1.11.000001.ndjson", "n1.a.000001.ndjson", "n2.1.000001.ndjson"] == names(tmp_path)
    assert [0xA, 0x10, 0x11] == [name.boot for name, _ in segments_of(tmp_path, "n1")]


def test_starts_that_fail_do_not_push_out_what_was_written_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon that cannot start is started again, all night; the number of files is bounded all the same."""
    monkeypatch.setattr(writing, "SMALL_FILES_MAX", 20)
    before = writer(tmp_path, boot=1, files_max=2)
    while before.path.stat().st_size < 10**6 / 256:
        before.write(Journal("stable"), 1)
        before._write_gathered()
    before.close()
    evidence = before.path.name
    for boot in range(2, 600):
        writer(tmp_path, boot=boot, files_max=2).close()
    assert evidence in names(tmp_path)
    assert 1 + 20 + 1 == len(names(tmp_path)), "it, the newest of the small ones, and what was written last"


def test_files_that_are_not_small_have_all_of_the_place_and_are_not_too_many(tmp_path: Path) -> None:
    for boot in range(1, 1_000):
        quiet = writer(tmp_path, boot=boot, file_bytes_max=1_000_000, files_max=2)
        quiet._write_whole(b"x" * 4_000 + b"\n")
        quiet.close()
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert min(sizes) > 1_000_000 / 256
    assert 230 < len(sizes) <= 1 + 256
    assert 900_000 < sum(sizes) <= 1_000_000 + max(sizes)


def test_the_file_that_is_written_to_is_locked_and_others_are_not(tmp_path: Path) -> None:
    """Who compacts touches none that a daemon still has; who was killed holds no lock."""
    events = writer(tmp_path, file_bytes_max=400)
    for _ in range(5):
        events.write(Journal("promise"), 1)
    events._write_gathered()
    with closed(events.path) as is_closed:
        assert not is_closed
    with closed(tmp_path / names(tmp_path)[0]) as is_closed:
        assert is_closed
    last = events.path
    events.close()
    with closed(last) as is_closed:
        assert is_closed


def test_at_level_batch_there_is_nothing_that_comes_once_per_entry(tmp_path: Path) -> None:
    """The domain's own stream excepted: it has few."""
    events = writer(tmp_path, level="batch")
    for op in ("ordered", "held", "stable", "mark", "delivered"):
        for group in (0, 7):
            events.write(Journal(op, group=group), 1)
    events.close()
    expected = [("ordered", 0), ("held", 0), ("stable", 0), ("delivered", 0), ("delivered", 7)]
    assert expected == [(event.op, event.group) for event in lines(events.path)[1:]]


def test_files_can_be_made_smaller_and_fewer_while_it_is_written(tmp_path: Path) -> None:
    events = writer(tmp_path)
    events.resize(500, 100.0, 2)
    for n in range(100):
        events.write(Journal("stable", seq=n), 1)
        events.flush()
    events.close()
    assert [events.path.name] == names(tmp_path)[1:]
    assert all(file.stat().st_size <= 500 for file in tmp_path.iterdir())


def test_lines_that_could_not_be_written_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    events = writer(tmp_path)
    events._fd, good = 10**6, events._fd
    events.write(Journal("lost", seq=1), 1)
    events.write(Journal("lost", seq=2), 1)
    events.flush()
    while events._written_bytes < events._put_bytes:
        pass
    events._fd = good
    events.write(Journal("kept"), 1)
    events.close()
    assert ["journal_lost", "kept"] == [event.op for event in lines(events.path)]
    assert {"lines": 3} == lines(events.path)[0].args  # with the head of the file
    assert "cannot be written" in caplog.text


def _batch(group: int, first: int, seq: int, *, base: int = 0) -> Journal:
    return Journal("delivered", group, 5, seq, args={"first": first, "base": base, "digest": f"{seq:016x}"})


def test_batches_that_follow_at_once_become_one_line(tmp_path: Path) -> None:
    """Its digest is that of the last; a line of another kind, another base or a multiple of 1 024 ends it."""
    events = writer(tmp_path, level="batch")
    for first, seq in ((1, 10), (11, 20), (21, 1030), (1031, 1040)):
        events.write(_batch(7, first, seq), 1)
        events.write(_batch(8, first, seq), 1)
    events.write(Journal("members", group=7, seq=1040), 1)
    events.write(_batch(7, 1041, 1042, base=1040), 1)
    events.close()
    expected = [
        ("delivered", 7, 1, 20), ("delivered", 8, 1, 20), ("delivered", 7, 21, 1040), ("delivered", 8, 21, 1040),
        ("members", 7, 0, 1040), ("delivered", 7, 1041, 1042),
    ]  # fmt: skip
    told = lines(events.path)[1:]
    assert expected == [(line.op, line.group, line.args.get("first", 0), line.seq) for line in told]
    assert f"{20:016x}" == told[0].args["digest"]


def test_a_batch_after_which_nothing_comes_is_written_all_the_same(tmp_path: Path) -> None:
    clock = Clock()
    events = writer(tmp_path, level="batch", clock=clock)
    events.write(_batch(7, 1, 10), 1)
    events.flush()
    assert not events._lines
    clock.now += 1.0
    events.flush()
    assert events._put_bytes > 0
    events.close()
    assert [10] == [line.seq for line in lines(events.path)[1:]]
