"""What all sessions of a node share: the node's groups, its place in the domain, what it asks the name server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING

import attrs

from groupsvc.wire.client_messages import REPLY_CODEC, AnyClientRequest, Told
from groupsvc.wire.notices import AnyNotice

from ..access import OPEN, Access, Principal, Verb
from ..audit import Audit
from ..domain.member import Member
from ..domain.requests import Requests
from ..domain.trouble import Trouble
from ..groups.process_groups import ProcessGroups
from ..nodegroups.node_groups import NodeGroups
from ..turn import Turn
from .alarms import Alarms

if TYPE_CHECKING:
    from .group_names import GroupNames
    from .hosts import Hosts
    from .outside import Outside
    from .quota import Quota

NUMBER_BYTES = 8
"""A member's number on the wire, at most."""


@attrs.define
class Desk:
    """One per engine."""

    turn: Turn
    member: Member
    requests: Requests
    node_groups: NodeGroups
    processes: ProcessGroups
    rng: Random
    alarms: Alarms
    trouble: Trouble
    elsewhere: Callable[[int, AnyClientRequest], None]  # who answers what concerns no session
    draining: str = ""  # why nothing new is begun here, if this node is about to end
    outside: Outside = attrs.field(init=False)
    hosts: Hosts = attrs.field(init=False)
    group_names: GroupNames = attrs.field(init=False)
    access: Access = OPEN
    audit: Audit = attrs.field(init=False)
    quota: Quota = attrs.field(init=False)
    _sized: tuple[Sequence[AnyNotice], list[int]] = ((), [])

    def sizes_of(self, run: Sequence[AnyNotice]) -> list[int]:
        """About how many bytes it takes to tell each of these; found out once for all who are told the same."""
        if run is not self._sized[0]:
            self._sized = (run, [len(REPLY_CODEC.encode_one(Told(0, notice))) + NUMBER_BYTES for notice in run])
        return self._sized[1]

    def refusal(self, principal: Principal, verb: Verb, group: str = "") -> str:
        """Somebody may not do this: what it is told. That it wanted to is taken down."""
        self.audit.record("access_denied", self.access.name_of(principal), verb=verb, name=group)
        return self.access.refusal(principal, verb, group)

    @property
    def good_for(self) -> float:
        """What is left of this node's lease: for so long what it tells is true. 0 while it has none."""
        return 0.0 if self.member.isolated else max(0.0, self.member.lease_until - self.turn.now)
