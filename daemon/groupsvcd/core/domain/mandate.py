"""The authority of a candidate for name server: the voters' own.

A majority of the voters must promise, and a majority must have opened the recovered log. When the domain is formed for
the first time there is nothing to recover, and all founders must promise: nothing was ever promised to anybody else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..parameters import Parameters
from ..peer_messages import DOMAIN_STREAM, Claim, Promised
from ..stream.recovery import counting_reports
from ..views import View

if TYPE_CHECKING:
    from .election import Election
    from .voter import Voter

Table = tuple[tuple[str, str], ...]


class Mandate:
    """What one claim for the office rests on."""

    def __init__(
        self, election: Election, voter: Voter, parameters: Parameters, epoch: int, table: Table, admitted: Table,
        promises_needed: int,
    ) -> None:  # fmt: skip
        self._election = election
        self._voter = voter
        self._parameters = parameters
        self._table = table
        self._claim = Claim(DOMAIN_STREAM, epoch, table, admitted)
        self._promises_needed = promises_needed

    def claim(self, *, is_chosen: bool) -> Claim:
        """The claim; once we have the chosen log, with the holders that it names."""
        if not is_chosen:
            return self._claim
        holders = self._voter.holders()
        return Claim(DOMAIN_STREAM, self._claim.epoch, holders.voters, holders.admitted)

    def asked(self) -> tuple[str, ...]:
        """All voters."""
        return self._parameters.all_voters

    def counting(self, reports: dict[str, Promised]) -> list[str] | None:
        """Those of disks that were not replaced, ours among them."""
        me = self._parameters.node
        names = counting_reports(me, reports)
        return names if me in names and len(names) >= self._promises_needed else None

    def opens(self) -> tuple[str, ...]:
        """All voters."""
        return self._parameters.all_voters

    def is_open(self, opened_by: dict[str, int]) -> bool:
        """A majority has the log."""
        return len(opened_by) >= self._parameters.majority

    def view(self) -> View | None:
        """The voters are in everybody's configuration."""
        return None

    def genesis(self) -> tuple[bytes, ...]:
        """The first entry of a new domain."""
        return self._voter.genesis(self._table)

    def won(self) -> None:
        """A majority has promised."""
        self._election.won()

    def opened(self) -> None:
        """A majority has the log."""
        self._voter.opened()
