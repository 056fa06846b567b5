"""Where in the stream of a group something stands, in a form that can be kept.

The number of an entry does not say it. Entries are counted anew in every group, so when a group has ended and another
one was formed under its name, entry 50 is another one; and so it may be in one group that has lost its quorum, where
the numbers of what was lost are given again. Who kept the number 50 from before and asks for the messages after it
would skip all that came before entry 50 of the next group, and never know.

    position = event.view.position          # of any event, or of group.view
    file.write(str(position))
    …
    group = session.join("db", since=groupsvc.Position.parse(file.read()))

If the entries after it are not the ones that followed it then, the join fails and says so. A number alone is taken for
one of the group of that name that this program was in before, through the daemon that it asks now. If it was in two,
nobody can tell, and the join fails. If it was in none, the number comes from elsewhere, and the program answers for it.
"""

from __future__ import annotations

from typing import Any

import attrs

from .errors import Failed, UsageError

Numbering = tuple[int, int]
"""Of which group a number is, and of which of its lives: ``JoinedAs.numbering``."""

NOT_KNOWN: Numbering = (0, 0)

NUMBER_END = 1 << 63
"""No number on the wire is as large."""

NAMES_KNOWN_MAX = 1_000
"""Groups of which a program remembers what their numbers are of: the newest, so that a long life does not grow."""

ADDRESSES_KNOWN_MAX = 100
"""The same for daemons: nearly all programs speak to one."""


@attrs.frozen
class Position:
    """After entry ``seq`` of one group, which is known by its ``numbering``; ``str`` and ``parse`` are for files."""

    seq: int
    numbering: Numbering = attrs.field(repr=False)

    def __str__(self) -> str:
        return f"{self.numbering[0]}/{self.numbering[1]}/{self.seq}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """What ``str`` gave; ``UsageError`` if it is nothing like it."""
        parts = text.strip().split("/") if isinstance(text, str) else []
        if len(parts) != 3 or not all(one.isascii() and one.isdecimal() and len(one) < 20 for one in parts):
            raise UsageError(f"{text!r:.60} is no position; str(event.view.position) is one, like '12/0/345'")
        group, beginning, seq = map(int, parts)
        if max(group, beginning, seq) >= NUMBER_END:
            raise UsageError(f"{text!r:.60} is no position: a number in it is too large")
        return cls(seq, (group, beginning))


class Numberings:
    """What the numbers are of that a program was told by one daemon, by the name of the group."""

    def __init__(self) -> None:
        self._known: dict[str, frozenset[Numbering]] = {}

    def note(self, group: str, numbering: Numbering) -> None:
        """The program is in this group; that there were several is all that matters of more than two."""
        known = self._known.get(group, frozenset())
        if numbering != NOT_KNOWN and len(known) < 2:
            self._known[group] = known | {numbering}
            _bound(self._known, NAMES_KNOWN_MAX)

    def of_a_number(self, group: str, seq: int) -> Numbering:
        """Of which group of that name a number must be, as far as that is known."""
        known = self._known.get(group, frozenset())
        if len(known) > 1:
            text = (
                f"could not join group {group!r} after entry {seq}: this program was in two groups of that name, or"
                " in one that has lost its quorum, and each counts anew; give the position of the entry, as"
                " event.view.position has it, or leave since out"
            )
            raise Failed(text, group=group)
        return next(iter(known), NOT_KNOWN)


_by_address: dict[str, Numberings] = {}


def known_at(address: str) -> Numberings:
    """What this program knows of the groups behind a daemon: it outlives a session that is lost."""
    found = _by_address.setdefault(address, Numberings())
    _bound(_by_address, ADDRESSES_KNOWN_MAX)
    return found


def _bound(known: dict[str, Any], most: int) -> None:
    """Forget the oldest; several threads may do so at once, so what is looked through is a copy."""
    if len(known) > most:
        for oldest in tuple(known)[:-most]:
            known.pop(oldest, None)
