"""Sound journals that are unusual, or whose files are: an audit must find nothing in them."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from groupsvc.testing.made_journals import Shape, make_journals
from groupsvc.wire.history import HistoryEvent, from_line, to_line

from . import Case

SHAPE = Shape(
    nodes=5, groups=1, hot=1.0, blocks=12, entries=2, ballot_every=3, barrier_every=4, view_every=5, failure_every=6
)

NS = 1_000_000_000

_replace = msgspec.structs.replace

# --- A domain in memory only that was stopped and formed anew ---------------------------------------------------

ANEW_S = 8.0
"""So long after the first life has begun the second one does: two seconds after it has ended."""

BEHIND_S = {"n2": 0.5, "n3": 5.0, "n5": 1.5}
"""Wall clocks that are: the name server n3 is up again, by its clock, while the others still were in the first life."""


def _formed_anew(place: Path) -> None:
    """The same story twice, in which numbers begin again; nothing else is the same, and some clocks are behind."""
    first, second = place / "first", place / "second"
    for one in (first, second):
        make_journals(one, SHAPE)
    for file in sorted(first.iterdir()):
        lines = [_by_its_clock(from_line(line)) for line in file.read_bytes().splitlines()]
        (place / file.name).write_bytes(b"".join(map(to_line, lines)))
        file.unlink()
    for file in sorted(second.iterdir()):
        whole = file.read_bytes().replace(b"179400000000000", b"179400000800000")  # incarnations
        lines = [_by_its_clock(_later(from_line(line))) for line in whole.splitlines()]
        node, _, rest = file.name.partition(".")
        (place / f"{node}.{lines[0].inc:x}.{rest.partition('.')[2]}").write_bytes(b"".join(map(to_line, lines)))
        file.unlink()
    for one in (first, second):
        one.rmdir()


def _later(line: HistoryEvent) -> HistoryEvent:
    args = line.args
    if line.op == "started":
        args = {**args, "state_id": f"{args['state_id']}-anew", "formed": False}
    elif line.op == "recovered" and line.group == 0:
        args = {**args, "tail": [[1, args["tail"][0][1] ^ 1]]}
    return _replace(
        line, boot=f"{line.inc:x}", t=line.t + ANEW_S, wall_ns=line.wall_ns + int(ANEW_S * NS), args=args,
        crc=line.crc ^ 1 if line.crc else 0,
    )  # fmt: skip


def _by_its_clock(line: HistoryEvent) -> HistoryEvent:
    behind_s = BEHIND_S.get(line.node, 0.0)
    if line.op == "journal" and behind_s:
        line = _replace(line, args={**line.args, "clock": f"that of {line.node}"})
    return _replace(line, wall_ns=line.wall_ns - int(behind_s * NS))


# --- Files of other versions ------------------------------------------------------------------------------------


def _other_names(place: Path) -> None:
    """Some lines of n3 are of a version that calls everything otherwise."""
    make_journals(place, SHAPE)
    (file,) = place.glob("n3.*")
    lines = file.read_bytes().splitlines(keepends=True)
    for at, line in enumerate(lines):
        if json.loads(line)["op"] == "lease":
            told = {"v": 2, "number": at + 1, "time": [1, 5], "node": {"name": "n3"}, "what": "lease", "crc": "none"}
            lines[at] = json.dumps(told).encode() + b"\n"
    file.write_bytes(b"".join(lines))


def _other_columns(place: Path) -> None:
    """As Parquet, each file with other columns: some that are not needed are missing, and one is new."""
    import pyarrow
    import pyarrow.parquet

    make_journals(place, SHAPE, parquet=True)
    for node, without in (("n1", ["local_ns", "msg_id"]), ("n2", ["result", "who", "type"])):
        (file,) = place.glob(f"{node}.*")
        pyarrow.parquet.write_table(pyarrow.parquet.read_table(file).drop_columns(without), file)
    (file,) = place.glob("n3.*")
    table = pyarrow.parquet.read_table(file)
    wider = table.set_column(0, "schema_version", table["schema_version"].cast(pyarrow.int64()))
    pyarrow.parquet.write_table(wider.append_column("mood", pyarrow.array(["good"] * len(table))), file)


CASES: tuple[Case, ...] = (
    Case(name="formed-anew", write=_formed_anew),
    Case(name="other-names", write=_other_names),
    Case(name="other-columns", write=_other_columns),
)
