"""Segments become Parquet: nothing is lost whatever happens between, nothing is done twice, torn ends are told."""

from __future__ import annotations

import fcntl
import json
import random
import stat
from pathlib import Path

import pytest

from groupsvc.cli import main
from groupsvc.cli.exit_codes import ExitCode
from groupsvc.journals.auditing import audit
from groupsvc.journals.reading import SegmentLines
from groupsvc.journals.segments import segments_of
from groupsvc.wire.history import SCHEMA_VERSION, HistoryEvent, to_line

parquet = pytest.importorskip("groupsvc.journals.parquet")
pytest.importorskip("pyarrow")

LINES = [
    HistoryEvent(
        v=SCHEMA_VERSION, i=number, boot="abc", t=12.5 + number, wall_ns=number * 10**9, node="n1", inc=0xABC,
        op="delivered", group=7, epoch=9, seq=100 + number, origin="n2/5", n=number, crc=2**32 - 1,
        args={"first": 3, "digest": "é", "nested": [["n1", 2, 3], None, True, 0.5]},
    )
    for number in range(1, 21)
]  # fmt: skip


def segment(directory: Path, number: int = 1, *, torn: bytes = b"") -> Path:
    """A file as a daemon leaves it."""
    file = directory / f"n1.abc.{number:06}.ndjson"
    file.write_bytes(b"".join(map(to_line, LINES)) + torn)
    return file


def names(directory: Path) -> list[str]:
    return sorted(file.name for file in directory.iterdir())


def test_every_line_comes_back_as_it_was(tmp_path: Path) -> None:
    file = segment(tmp_path)
    file.chmod(0o640)
    [done] = parquet.compact(tmp_path)
    assert ("compacted", 20, 0) == (done.what, done.rows, done.torn_bytes)
    assert ["n1.abc.000001.parquet"] == names(tmp_path)
    assert 0o640 == stat.S_IMODE(file.with_suffix(".parquet").stat().st_mode), "who may read it are the same"
    assert LINES == [line for _, line in SegmentLines(file.with_suffix(".parquet"))]


def test_where_there_are_no_journals_and_where_none_can_be_written_it_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ExitCode.OK == main(["journal", "compact", str(tmp_path)])
    assert f"groupsvc: there are no journals in {tmp_path}\n" == capsys.readouterr().err
    file = segment(tmp_path)
    assert ExitCode.USAGE == main(["journal", "compact", str(tmp_path), "--out", str(file)])
    assert f"{file} is no directory" in capsys.readouterr().err
    assert file.is_file()


def test_what_its_daemon_has_removed_meanwhile_is_passed_over(tmp_path: Path) -> None:
    """It makes room with every start; the others are compacted all the same."""
    _, second, _ = (segment(tmp_path, number) for number in (1, 2, 3))
    compacting = parquet.compact(tmp_path)
    assert "compacted" == next(compacting).what
    second.unlink()
    assert ["compacted"] == [done.what for done in compacting]
    assert ["n1.abc.000001.parquet", "n1.abc.000003.parquet"] == names(tmp_path)


def test_the_columns_are_those_that_audits_rely_on(tmp_path: Path) -> None:
    """Named as in docs/reference/journal.md; none is ever empty, so nobody has to ask."""
    import pyarrow.parquet

    segment(tmp_path)
    list(parquet.compact(tmp_path))
    schema = pyarrow.parquet.read_schema(tmp_path / "n1.abc.000001.parquet")
    assert list(parquet.COLUMNS) == schema.names
    expected = [
        "schema_version",
        "node",
        "boot",
        "lsn",
        "mono_ns",
        "wall_ns",
        "kind",
        "group",
        "view",
        "gseq",
        "origin",
        "oseq",
        "msg_id",
        "crc",
    ]
    assert expected == schema.names[: len(expected)]
    assert not any(field.nullable for field in schema)


def test_a_torn_end_is_left_out_and_told(tmp_path: Path) -> None:
    segment(tmp_path, torn=b'{"v":1,"i":21')
    [done] = parquet.compact(tmp_path)
    assert ("compacted", 20, 13) == (done.what, done.rows, done.torn_bytes)


def test_a_line_that_cannot_be_read_stays_where_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """That is damage, and somebody should look at it before it is gone."""
    file = segment(tmp_path)
    file.write_bytes(b"rubbish\n" + file.read_bytes())
    assert ExitCode.FAILED == main(["journal", "compact", str(tmp_path)])
    assert ["n1.abc.000001.ndjson"] == names(tmp_path)
    assert "n1.abc.000001.ndjson:1" in capsys.readouterr().out


def test_the_file_that_a_daemon_writes_to_is_left_alone(tmp_path: Path) -> None:
    segment(tmp_path)
    with segment(tmp_path, 2).open("ab") as written:
        fcntl.flock(written, fcntl.LOCK_SH)
        assert ["compacted", "open"] == [done.what for done in parquet.compact(tmp_path)]
    assert ["n1.abc.000001.parquet", "n1.abc.000002.ndjson"] == names(tmp_path)


def test_what_was_interrupted_can_be_done_again(tmp_path: Path) -> None:
    """Killed before the name was given, and killed before the source was removed."""
    file = segment(tmp_path)
    text = file.read_bytes()
    (tmp_path / ".n1.abc.000001.parquet.new").write_bytes(b"half")
    assert ["compacted"] == [done.what for done in parquet.compact(tmp_path)]
    file.write_bytes(text)
    assert ["compacted before"] == [done.what for done in parquet.compact(tmp_path)]
    assert ["n1.abc.000001.parquet"] == names(tmp_path)
    assert [] == list(parquet.compact(tmp_path))


def test_a_target_that_is_not_whole_is_made_anew(tmp_path: Path) -> None:
    file = segment(tmp_path)
    (tmp_path / "n1.abc.000001.parquet").write_bytes(b"PAR1 and no end")
    assert ["compacted"] == [done.what for done in parquet.compact(tmp_path)]
    assert 20 == len(list(SegmentLines(file.with_suffix(".parquet"))))


def test_dry_run_changes_nothing_and_keep_removes_nothing(tmp_path: Path) -> None:
    segment(tmp_path)
    out = tmp_path / "out"
    assert ["would be compacted"] == [done.what for done in parquet.compact(tmp_path, out, dry_run=True)]
    assert ["n1.abc.000001.ndjson"] == names(tmp_path)
    assert ["compacted"] == [done.what for done in parquet.compact(tmp_path, out, keep=True)]
    assert ["compacted before"] == [done.what for done in parquet.compact(tmp_path, out, keep=True)]
    assert ["n1.abc.000001.parquet"] == names(out)
    assert 1 == len(segments_of(tmp_path))


def test_the_command_tells_each_segment_and_refuses_what_is_no_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    segment(tmp_path, torn=b"{")
    assert ExitCode.OK == main(["journal", "compact", str(tmp_path), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert ("compacted", 20, 1) == (told["what"], told["rows"], told["torn_bytes"])
    assert ExitCode.USAGE == main(["journal", "compact", str(tmp_path / "nowhere")])


def test_a_damaged_parquet_file_is_told_and_stops_nobody(tmp_path: Path) -> None:
    """Whatever the bytes are: lines, or one reason why there are no more."""
    file = segment(tmp_path).with_suffix(".parquet")
    list(parquet.compact(tmp_path))
    whole, rng = file.read_bytes(), random.Random(1)
    damaged = [b"", b"PAR1", whole[:-9], whole[:40] + whole[-40:]]
    for _ in range(60):
        at, length = rng.randrange(len(whole)), rng.randrange(1, 9)
        damaged.append(whole[:at] + rng.randbytes(length) + whole[at + length :])
    for content in damaged:
        file.write_bytes(content)
        lines = SegmentLines(file)
        found = [line for _, line in lines]
        assert len(found) == len(LINES) or len(lines.unreadable) == 1
        assert all(isinstance(line, HistoryEvent) for line in found)


def test_lines_whose_form_is_right_and_whose_content_is_not_are_told_and_stop_nobody(tmp_path: Path) -> None:
    """An audit is what one does with files that somebody may have changed."""
    ops = ("journal", "journal_lost", "delivered", "digest", "members", "restored", "started", "ended", "view", "round")
    lines = [
        HistoryEvent(v=1, i=number, t=1.0, node="n1", op=op, group=7, args=args)
        for number, (op, args) in enumerate(
            ((op, args) for op in ops for args in ({}, {"members": 1, "first": "x", "lines": None, "digest": []})), 1
        )
    ]
    (tmp_path / "n1.abc.000001.ndjson").write_bytes(b"".join(map(to_line, lines)))
    found = audit([tmp_path])
    assert len(lines) == found.lines
    assert any("cannot be understood" in one.text for one in found.contradictions)
