"""All families, by name."""

from __future__ import annotations

from tests.fuzz.doors import DOORS
from tests.fuzz.family import Family
from tests.fuzz.files import FILES
from tests.fuzz.groups import GROUPS
from tests.fuzz.inside import INSIDE
from tests.fuzz.programs import PROGRAMS
from tests.fuzz.snapshots import SNAPSHOTS
from tests.fuzz.wire import WIRE

FAMILIES: dict[str, Family] = {
    family.name: family for family in (WIRE, INSIDE, SNAPSHOTS, PROGRAMS, FILES, DOORS, GROUPS)
}
