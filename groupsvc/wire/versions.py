"""Which builds understand one another: the wire version, in the header of every frame between daemons.

A *wire version* is a number for everything that daemons say to one another and keep together: the messages, the
entries of the streams, and what they mean. A build writes one version and reads a few. Domain of A, B and C, one
release older than the next:

    A   writes 1, reads 1           what runs today
    B   writes 1, reads 1 to 2      knows what is new, and says nothing of it
    C   writes 2, reads 1 to 2      says it

A and B are one domain, B and C are, A and C never. So a domain goes from A to C node by node, by way of B, and at no
moment is anything said that somebody cannot read; it goes back the same way. Nobody negotiates, nothing switches while
it runs, and no word depends on who else is there.

Two builds that do not read each other do not hear each other at all: a link on which one side is deaf is worse than
none. Each says in its log which versions the other has. Who is not in the domain yet ends (``versions_heard.py``, and
the name server in ``domain/roster.py``).

In the header are the version of the frame, and how far below and above it its sender reads, four bits each. That
header never changes its form, whatever the version: else a build of today could not tell what it does not read.
Programs and their daemon settle their own version, by Hello; their frames have version 1 here for ever.
"""

from __future__ import annotations

WRITES = 1
"""The wire version of this build. What a released version consists of does not change any more; see PROTOCOL.md."""

READS_FROM = 1
READS_TO = 1

PARAMETER = "wire_version"
"""What an Unwelcome names that is said because of it."""

REMEDY = "Bring all nodes to one release before any goes to the one after it"

_LOWER_BITS = 4
_LOWER = (1 << _LOWER_BITS) - 1
_REACH_BITS = 8
_REACH = (1 << _REACH_BITS) - 1


def wire_of(writes: int, reads_from: int, reads_to: int) -> int:
    """A build's versions as one number: two bytes of the header."""
    return writes << _REACH_BITS | (writes - reads_from) << _LOWER_BITS | (reads_to - writes)


OWN = wire_of(WRITES, READS_FROM, READS_TO)


def header_bytes(wire: int) -> tuple[int, int]:
    """The two bytes: the version, and how far below and above it one reads."""
    return wire >> _REACH_BITS, wire & _REACH


def from_header(version: int, reach: int) -> int:
    """The number from the two bytes; any two bytes are some number."""
    return version << _REACH_BITS | reach


def understand(one: int, other: int) -> bool:
    """Whether each reads what the other writes."""
    return _reads(one, other >> _REACH_BITS) and _reads(other, one >> _REACH_BITS)


def in_words(wire: int) -> str:
    """What a build writes and reads, for people."""
    writes, lowest, highest = _parts(wire)
    return f"writes wire version {writes} and reads {lowest if lowest == highest else f'{lowest} to {highest}'}"


def _reads(wire: int, version: int) -> bool:
    _, lowest, highest = _parts(wire)
    return lowest <= version <= highest


def _parts(wire: int) -> tuple[int, int, int]:
    writes, reach = header_bytes(wire)
    return writes, writes - (reach >> _LOWER_BITS), writes + (reach & _LOWER)
