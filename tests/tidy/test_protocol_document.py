"""docs/PROTOCOL.md says what the code does: kinds, limits and history fields, in both directions."""

from __future__ import annotations

import re
import typing
from pathlib import Path

import msgspec
import pytest

from groupsvc.testing.sim.application_ops import OPS
from groupsvc.wire import frames, limits
from groupsvc.wire.client_messages import AnyClientReply, AnyClientRequest
from groupsvc.wire.history import HistoryEvent
from groupsvc.wire.kinds import FrameKind, Kind
from groupsvcd.core.peer_messages import AnyPeerMessage
from tests.tidy.source_tree import ROOT

DOCUMENT: Path = ROOT / "docs" / "PROTOCOL.md"
HEADERS = {
    "frames": ["offset", "bytes", "content"],
    "frame kinds": ["frame kind", "name", "body"],
    "limits": ["limit", "value", "of"],
    "kinds": ["kind", "name", "from", "to", "when"],
    "history": ["field", "type", "meaning"],
    "applications": ["application's op", "kind", "what it is"],
}
UNIONS = {"peer": AnyPeerMessage, "request": AnyClientRequest, "reply": AnyClientReply}


def rows_under(header: list[str], text: str) -> list[list[str]]:
    """The cells of every table of ``text`` that has this header, in order, code marks removed."""
    rows: list[list[str]] = []
    inside = False
    for line in text.splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        cells = [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]
        if cells == header:
            inside = True
        elif inside and not re.fullmatch(r"[-:| ]+", line):
            rows.append(cells)
    return rows


def problems_with_kinds(text: str) -> list[str]:
    """Where the tables of kinds in ``text`` and ``Kind`` disagree, as sentences."""
    rows = rows_under(HEADERS["kinds"], text)
    found = [f"row {row} has an empty or missing cell" for row in rows if len(row) != 5 or not all(row)]
    said = [(int(row[0]), row[1]) for row in rows]
    real = [(int(kind), kind.name) for kind in Kind]
    found += [f"{pair} is in the code and not in the document" for pair in real if pair not in said]
    found += [f"{pair} is in the document and not in the code" for pair in said if pair not in real]
    found += [f"{pair} is in the document twice" for pair in sorted(set(said)) if said.count(pair) > 1]
    return found


def message_classes(union: object) -> tuple[type[msgspec.Struct], ...]:
    """The members of a union of messages."""
    return typing.get_args(union)


def tag_of(cls: type[msgspec.Struct]) -> int:
    """The number that stands for this class on the wire."""
    tag = cls.__struct_config__.tag
    assert isinstance(tag, int), cls
    return tag


def test_the_tables_of_kinds_and_the_code_agree_in_both_directions() -> None:
    assert [] == problems_with_kinds(DOCUMENT.read_text(encoding="utf-8"))


PLANTED = {
    "row missing": (r"\| 12 \| `ALIVE_ACK`.*\n", ""),
    "number changed": (r"\| 31 \| `ORDER`", "| 29 | `ORDER`"),
    "name changed": (r"`HELD`", "`KEPT`"),
    "row doubled": (r"(\| 22 \|.*\n)", r"\1\1"),
    "cell empty": (r"(\| 33 \| `BEAT` \|)[^|]*\|", r"\1 |"),
}


@pytest.mark.parametrize("pattern, replacement", PLANTED.values(), ids=PLANTED.keys())
def test_planted_difference_is_found(pattern: str, replacement: str) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    changed = re.sub(pattern, replacement, text, count=1)
    assert changed != text
    assert problems_with_kinds(changed)


def test_every_kind_has_exactly_one_message_class() -> None:
    tags = [tag_of(cls) for union in UNIONS.values() for cls in message_classes(union)]
    assert sorted(int(kind) for kind in Kind) == sorted(tags)


@pytest.mark.parametrize("union", UNIONS.values(), ids=UNIONS.keys())
def test_a_message_class_is_named_as_its_kind(union: object) -> None:
    for cls in message_classes(union):
        words = re.findall(r"[A-Z][a-z]*", cls.__name__)
        assert Kind(tag_of(cls)).name == "_".join(words).upper()


@pytest.mark.parametrize("union", UNIONS.values(), ids=UNIONS.keys())
def test_a_message_class_is_frozen_an_array_and_refuses_unknown_fields(union: object) -> None:
    for cls in message_classes(union):
        config = cls.__struct_config__
        assert (True, True, True, False) == (
            config.frozen,
            config.array_like,
            config.forbid_unknown_fields,
            config.gc,
        ), cls


def test_the_table_of_frame_kinds_and_the_code_agree() -> None:
    said = [(int(row[0]), row[1]) for row in rows_under(HEADERS["frame kinds"], DOCUMENT.read_text(encoding="utf-8"))]
    assert [(int(kind), kind.name) for kind in FrameKind] == said


def test_the_header_in_the_document_has_no_gap_and_the_length_of_the_real_one() -> None:
    rows = rows_under(HEADERS["frames"], DOCUMENT.read_text(encoding="utf-8"))
    end = 0
    for offset, size, _ in rows[:-1]:
        assert end == int(offset)
        end += int(size)
    assert frames.HEADER_BYTES == end == int(rows[-1][0])


def test_the_table_of_limits_and_the_code_agree() -> None:
    said = {row[0]: float(row[1]) for row in rows_under(HEADERS["limits"], DOCUMENT.read_text(encoding="utf-8"))}
    assert {name: float(value) for name, value in vars(limits).items() if name.isupper()} == said


def test_the_table_of_history_fields_and_the_code_agree() -> None:
    said = [row[0] for row in rows_under(HEADERS["history"], DOCUMENT.read_text(encoding="utf-8"))]
    assert list(HistoryEvent.__struct_fields__) == said


def test_the_table_of_what_applications_write_and_the_code_agree() -> None:
    rows = rows_under(HEADERS["applications"], DOCUMENT.read_text(encoding="utf-8"))
    assert list(OPS.items()) == [(row[0], row[1]) for row in rows]
