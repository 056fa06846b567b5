"""What was once released is read for ever after, and is written as it was: the golden forms of every wire version.

``pytest tests/golden --rewrite`` writes the forms of today into the directory of the present version. Once that version
was released its directory does not change any more: what is new gets a new number (docs/PROTOCOL.md, *Versions*).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from groupsvc.wire import versions
from groupsvc.wire.client_messages import CLIENT_PROTOCOL_VERSION
from tests.golden import wire_forms
from tests.golden.wire_forms import BETWEEN_DAEMONS, BETWEEN_PROGRAM_AND_DAEMON

HERE = Path(__file__).parent
PRESENT = {
    **{f"wire-{versions.WRITES}/{name}": union for name, union in BETWEEN_DAEMONS.items()},
    **{f"client-{CLIENT_PROTOCOL_VERSION}/{name}": union for name, union in BETWEEN_PROGRAM_AND_DAEMON.items()},
}
KEPT = {
    f"{kind}-{version}/{name}": union
    for kind, unions, first, last in (
        ("wire", BETWEEN_DAEMONS, versions.READS_FROM, versions.READS_TO),
        ("client", BETWEEN_PROGRAM_AND_DAEMON, 1, CLIENT_PROTOCOL_VERSION),
    )
    for version in range(first, last + 1)
    for name, union in unions.items()
}


def kept(place: str) -> wire_forms.Forms:
    return wire_forms.from_text((HERE / f"{place}.txt").read_text())


@pytest.mark.parametrize("place, union", PRESENT.items(), ids=PRESENT.keys())
def test_every_form_is_written_as_the_golden_file_has_it(place: str, union: Any, rewrite: bool) -> None:
    """A difference is a new version, and not a new file."""
    path, today = HERE / f"{place}.txt", wire_forms.forms_of(union)
    if rewrite:
        path.parent.mkdir(exist_ok=True)
        path.write_text(wire_forms.to_text(today))
    assert today == kept(place)


@pytest.mark.parametrize("place, union", KEPT.items(), ids=KEPT.keys())
def test_every_golden_form_of_a_version_that_is_read_can_be_read(place: str, union: Any) -> None:
    """Also with what may be left out left out; and what was read is written again, byte for byte."""
    by_name = {wire_forms.name_of(cls): cls for cls in wire_forms.classes_of(union)}
    forms = kept(place)
    assert {title.split()[0] for title in forms} <= set(by_name)
    for title, made in forms.items():
        cls = by_name[title.split()[0]]
        value = msgspec.msgpack.decode(made, type=cls)
        again = wire_forms.encode(value)
        if title.endswith("whole"):
            assert made == again, title
        else:
            assert value == msgspec.msgpack.decode(again, type=cls), title


@pytest.mark.parametrize("union", PRESENT.values(), ids=PRESENT.keys())
def test_what_has_a_field_more_or_less_than_it_must_is_refused(union: Any) -> None:
    """So nobody can come to rely on being ignored, and a form that has grown is another kind."""
    for cls in wire_forms.classes_of(union):
        if not cls.__struct_config__.forbid_unknown_fields:
            continue
        for wrong in ([*wire_forms.whole(cls), 0], wire_forms.least(cls)[:-1]):
            with pytest.raises(msgspec.ValidationError):
                msgspec.msgpack.decode(wire_forms.encode(wrong), type=cls)
