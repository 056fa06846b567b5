"""The event journal: every line can be read again, files are bounded, nothing waits for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupsvc.wire.history import HistoryEvent, from_line
from groupsvcd.core.effects import Journal
from groupsvcd.observe.events import EventWriter


def writer(path: Path, *, file_bytes_max: int = 10**6, files_max: int = 3) -> EventWriter:
    return EventWriter(
        path,
        "n1",
        0xABC,
        clock=lambda: 12.5,
        wall_ns=lambda: 99,
        file_bytes_max=file_bytes_max,
        files_max=files_max,
    )


def lines(path: Path) -> list[HistoryEvent]:
    return [from_line(line) for line in path.read_bytes().splitlines()]


def test_effects_become_numbered_lines_with_clocks_and_node(tmp_path: Path) -> None:
    events = writer(tmp_path / "made")
    events.write(Journal("promise", group=3, epoch=5, args={"to": "n2"}), 77)
    events.write(Journal("stable", seq=9, origin="n2/4", n=8), 78)
    events.close()
    first, second = lines(tmp_path / "made" / "n1.abc.ndjson")
    assert (1, "abc", 12.5, 99, "n1", 77, "promise", 3, 5, {"to": "n2"}) == (
        first.i, first.boot, first.t, first.wall_ns, first.node, first.inc,
        first.op, first.group, first.epoch, first.args,
    )  # fmt: skip
    assert (2, 78, "stable", 9, "n2/4", 8) == (second.i, second.inc, second.op, second.seq, second.origin, second.n)


def test_files_are_rotated_by_size_and_the_oldest_go(tmp_path: Path) -> None:
    events = writer(tmp_path, file_bytes_max=500)
    for n in range(100):
        events.write(Journal("stable", seq=n), 1)
        events.flush()
    events.close()
    files = sorted(file.name for file in tmp_path.iterdir())
    assert ["n1.abc.1.ndjson", "n1.abc.2.ndjson", "n1.abc.ndjson"] == files
    kept = [event.seq for file in (files[1], files[0], files[2]) for event in lines(tmp_path / file)]
    assert list(range(100))[-len(kept) :] == kept
    assert all(file.stat().st_size <= 500 for file in tmp_path.iterdir())


def test_files_can_be_made_smaller_and_fewer_while_it_is_written(tmp_path: Path) -> None:
    events = writer(tmp_path)
    events.resize(500, 2)
    for n in range(100):
        events.write(Journal("stable", seq=n), 1)
        events.flush()
    events.close()
    assert ["n1.abc.1.ndjson", "n1.abc.ndjson"] == sorted(file.name for file in tmp_path.iterdir())
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
    assert {"lines": 2} == lines(events.path)[0].args
    assert "cannot be written" in caplog.text
