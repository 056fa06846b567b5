"""The engine of one daemon: events in, effects out, nothing else.

``step`` first lets expire what time has ended (an office, a lease), then gives the event to the part it
concerns, handles what the parts sent to their own node, flushes what was ordered, and returns the effects.
Which part does what:

    member     registration, lease, node list        every node
    requests   calls of local clients                every node
    surveys    how all nodes are, for operators      every node
    enrolment  tokens, and keys of new nodes         every node
    groups     the groups this node carries          every node
    processes  process groups: providers, ballots    every node
    sessions   what clients do in them               every node
    drain      ending in good order                  every node
    voter      stream, directory, election, office   voters only
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any

from groupsvc.wire.client_messages import (
    ClientRequest,
    ConfigAsk,
    ConfigSet,
    DrainAsk,
    HandOverAsk,
    LookUpAsk,
    OptionsAre,
    OptionsAsk,
    Problem,
    Statistics,
    StatisticsAsk,
    Status,
    StatusAsk,
    SurveyAsk,
)
from groupsvc.wire.enrolment_messages import EnrolAsk, NodeKeysAsk, RevokeAsk, TokenAsk
from groupsvc.wire.option_messages import OPTION_PREFIX
from groupsvc.wire.table_lines import NodeStatus, OptionLine

from .domain.enrolment import Enrolment
from .domain.member import Member
from .domain.requests import Requests
from .domain.roster import difference
from .domain.surveys import Surveys
from .domain.trouble import Trouble
from .domain.voter import Voter
from .drain import Drain
from .effects import Effect
from .events import ClientCame, ClientFrame, ClientGone, Event, LocalCall, PeerFrame, PeerRefused, Persisted, Tick
from .groups.process_groups import ProcessGroups
from .identity import Handler, Identity, Sender
from .links import VOTERS, Links
from .nodegroups.node_groups import NodeGroups
from .nodegroups.station import Station
from .parameters import Parameters
from .peer_messages import (
    DOMAIN_STREAM,
    AliveAck,
    Answered,
    Findings,
    ForChair,
    Goodbye,
    LeaderAlive,
    NodeList,
    PeerMessage,
    StreamMessage,
    SubmitRefused,
    Survey,
    Suspect,
    Tell,
    Unwelcome,
)
from .records import NO_DOMAIN, NodeRecord, Stored
from .sessions.sessions import Sessions
from .statistics import DomainStatistics, EngineStatistics, Sees, counted
from .turn import Turn

FROM_AN_OFFICE = (NodeList, Answered, Tell, SubmitRefused, Unwelcome)
"""Said by name servers and voters alone: any other node that says so is not believed, be it listed or not."""


class Engine:
    """The whole protocol of one node."""

    def __init__(self, parameters: Parameters, stored: Stored, incarnation: int, rng: Random) -> None:
        self.parameters = parameters
        self.turn = Turn(parameters.node)
        self.turn.is_audited = parameters.journals
        self.links = Links(self.turn)
        self.identity = Identity(incarnation, stored.domain)
        self.member = Member(self.turn, parameters, stored.state_id, self.identity, rng, self._declared_down)
        self.member.options = {key: (value, version) for key, value, version in stored.options}
        self.option_lines: Callable[[], tuple[OptionLine, ...]] = self._options_said
        self.trouble = Trouble(self.turn, parameters, self.member)
        self.requests = Requests(self.turn, parameters, self.identity, self.member, self.trouble)
        self.surveys = Surveys(self.turn, parameters, self.member, self.links, self.trouble.heard_s)
        self.groups = NodeGroups(
            Station(self.turn, parameters, self.identity, self.member, self.requests, self.links, rng)
        )
        self.processes = ProcessGroups(self.turn, self.groups, parameters.timers)
        self.sessions = Sessions(self.turn, self.member, self.requests, self.groups, self.processes, rng, self.trouble)
        self.sessions.desk.elsewhere = self._answer
        self.enrolment = Enrolment(self.turn, self.member, self.requests, self.sessions.desk.audit)
        self.turn.to_session = self.sessions.reply
        self._stored_groups = {stream: log for stream, log in stored.streams.items() if stream != DOMAIN_STREAM}
        self.member.carried = self.groups.carried
        self.requests.formed = self.processes.adopt
        self.requests.identity_of = lambda client: self.sessions.principal_of(client).identity
        self.voter: Voter | None = None
        if parameters.is_voter:
            self.voter = Voter(
                self.turn, parameters, stored, rng, self.identity, self.member.nodes, self.links, self._agrees_with
            )
        self.trouble.voter = self.voter
        self.drain = Drain(
            self.turn, self.member, self.trouble, self.voter, self.requests, self.sessions, self.processes, self.groups
        )
        self._voters = frozenset(parameters.all_voters)
        self._handlers: dict[type, Handler] = {
            LeaderAlive: self._on_leader_alive,
            AliveAck: self._on_alive_ack,
            NodeList: self._on_node_list,
            Unwelcome: self._on_unwelcome,
            Goodbye: self._on_goodbye,
            Answered: lambda sender, message: self.requests.on_answered(message),
            Tell: lambda sender, message: self.requests.on_tell(message),
            SubmitRefused: lambda sender, message: self.requests.on_submit_refused(message),
            Survey: self.surveys.on_survey,
            Findings: self.surveys.on_findings,
        }
        if self.voter is not None:
            self._handlers |= self.voter.handlers()
        self.all_statistics: Callable[[Sees], dict[str, Any]] = lambda sees: {}  # of the daemon, for who sees these
        self._newest: dict[str, int] = {}  # incarnations of the other nodes: what is lower is dropped
        self._seen: dict[str, int] = {}  # the highest that was ever seen in a frame
        self._called_by: dict[str, int] = {}  # with which a voter called us as name server

    @property
    def incarnation(self) -> int:
        """Goes into every frame."""
        return self.identity.incarnation

    @property
    def domain(self) -> bytes:
        """Goes into every frame; all zero until this node is in a domain."""
        return self.identity.domain

    # --- Steps ---

    def start(self, now: float) -> list[Effect]:
        """The first step."""
        self.turn.now = now
        voter = self.voter
        self.turn.journal("started", state_id="" if voter is None else voter.state_id, voter=voter is not None,
                          formed=voter is not None and voter.formed)  # fmt: skip
        stored_groups, self._stored_groups = self._stored_groups, {}
        self.groups.start(stored_groups)
        self.links.need(VOTERS, dict(sorted(self.parameters.voter_addresses.items())), listen=True)
        if voter is not None:
            voter.start()
        return self._finish()

    def step(self, event: Event, now: float) -> list[Effect]:
        """What is to be done about ``event``, which happens at ``now``."""
        turn, voter = self.turn, self.voter
        turn.now = now
        self.member.expire()
        if voter is not None and voter.office is not None:
            voter.office.expire()  # before anything is done in its name
        if isinstance(event, PeerFrame):
            self._on_frame(event)
        elif isinstance(event, Persisted):
            turn.persisted(event.number)
        elif isinstance(event, Tick):
            self._tick()
        elif isinstance(event, ClientFrame):
            self._on_client(event.client, event.message)
        elif isinstance(event, PeerRefused):
            self._on_refused(event.node)
        elif isinstance(event, LocalCall):
            event.action()
        elif isinstance(event, ClientCame):
            self.sessions.came(event.client, event.principal)
        elif isinstance(event, ClientGone):
            self.drain.on_client_gone(event.client)
            self.requests.on_client_gone(event.client)
            self.surveys.on_client_gone(event.client)
            self.sessions.on_gone(event.client, process_ended=event.process_ended)
        return self._finish()

    def _tick(self) -> None:
        self.member.tick()
        self.requests.tick()
        self.surveys.tick()
        self.enrolment.tick()
        self.links.tick()
        self.groups.tick()
        self.processes.tick()
        self.sessions.tick()
        if self.voter is not None:
            self.voter.tick()

    def _finish(self) -> list[Effect]:
        turn, voter = self.turn, self.voter
        while True:
            while turn.round_trip:
                what = turn.round_trip.popleft()
                if isinstance(what, PeerMessage):
                    self._on_message(Sender(turn.node, self.incarnation, self.domain), what)
                else:
                    what()
            if voter is not None and voter.office is not None:
                voter.office.flush()
            self.groups.flush()
            self.processes.look()
            self.sessions.look()
            if not turn.round_trip:
                self.groups.settle()
            if not turn.round_trip and not self.drain.goes_on():
                break
        effects, turn.effects = turn.effects, []
        return effects

    @property
    def deadline(self) -> float:
        """When the next Tick is needed."""
        at = min(self.member.deadline, self.requests.deadline, self.links.deadline, self.groups.deadline)
        at = min(at, self.processes.deadline, self.sessions.deadline, self.drain.deadline, self.surveys.deadline)
        at = min(at, self.enrolment.deadline)
        return at if self.voter is None else min(at, self.voter.deadline)

    # --- Frames ---

    def _on_frame(self, frame: PeerFrame) -> None:
        sender = frame.sender
        if sender == self.turn.node:
            self.trouble.note(sender, "another daemon sends under this node's name")
            return
        if NO_DOMAIN != frame.domain != self.domain != NO_DOMAIN:
            self.turn.mark("foreign-domain")
            return
        if frame.incarnation < self._newest.get(sender, 0):
            self.turn.mark("old-incarnation")
            if self.voter is not None and self.voter.roster is not None:
                self.voter.roster.on_old_incarnation(sender, frame.incarnation, frame.messages)
            return
        if sender in self._voters or sender in self.member.nodes:  # of strangers nothing is kept
            self._note_sender(sender, frame.incarnation)
        source = Sender(sender, frame.incarnation, frame.domain, frame.wire)
        for message in frame.messages:
            self._on_message(source, message)

    def _note_sender(self, name: str, incarnation: int) -> None:
        """A frame of a node we know.

        What the node said under an older incarnation has to be said anew: its disk may be another one. But a voter that
        is listed as up is not displaced by a mere frame: it may come from a second machine with the same name,
        started by mistake. The name server decides, and the list tells.
        """
        self.trouble.heard(name)
        seen = self._seen.get(name, 0)
        if seen == incarnation == self._newest.get(name):
            return  # as nearly always
        if incarnation > seen:
            self._seen[name] = incarnation
            if seen and self.voter is not None:
                self.voter.on_new_incarnation(name)
        listed = self.member.nodes.get(name)
        if listed is None or not listed.voter or listed.status != "up" or incarnation <= listed.incarnation:
            self._newest[name] = max(incarnation, self._newest.get(name, 0))

    def _on_message(self, sender: Sender, message: PeerMessage) -> None:
        if isinstance(message, ForChair):
            self.processes.on_message(sender, message)
            return
        if isinstance(message, StreamMessage) and message.stream != DOMAIN_STREAM:
            self.groups.on_message(sender, message)
            return
        if isinstance(message, FROM_AN_OFFICE) and sender.name not in self._voters:
            self.trouble.note(sender.name, "it says what only a name server says")
            return
        handler = self._handlers.get(type(message))
        if handler is not None:  # else it is for a voter, and this node is none
            handler(sender, message)

    def _on_alive_ack(self, sender: Sender, message: AliveAck) -> None:
        self.member.on_alive_ack(sender.name, message)

    def _on_node_list(self, sender: Sender, message: NodeList) -> None:
        self._join_domain(sender.domain)
        if not self.member.on_node_list(message):
            return
        self.enrolment.tick()
        for entry in message.nodes:
            if entry.name != self.turn.node:
                self._newest[entry.name] = max(entry.incarnation, self._newest.get(entry.name, 0))
            if entry.status == "up" and entry.name in self.parameters.voter_addresses:
                # It may have another machine than the table of this node says, and no other voter would reach it.
                self.links.need_too(VOTERS, entry.name, entry.address)

    def _on_unwelcome(self, sender: Sender, message: Unwelcome) -> None:
        if message.only not in (None, (self.turn.node, self.incarnation)):
            return
        self.trouble.note(sender.name, message.reason)
        self.member.on_unwelcome(message)

    def _on_goodbye(self, sender: Sender, message: Goodbye) -> None:
        self.sessions.desk.hosts.on_goodbye(sender.name, sender.incarnation)
        if self._called_by.get(sender.name, sender.incarnation) == sender.incarnation:  # no other with its name
            self.member.lose_leader(sender.name)
            if self.voter is not None:
                self.voter.lose_leader(sender.name)
        if self.voter is not None and self.voter.roster is not None:
            self.voter.roster.on_goodbye(sender.name, sender.incarnation)

    def _on_leader_alive(self, sender: Sender, message: LeaderAlive) -> None:
        if sender.name not in self._voters:
            return
        voter = self.voter
        if voter is not None and not voter.on_leader_alive(sender.name, message):
            return
        self._called_by[sender.name] = sender.incarnation
        self.member.on_leader_alive(sender.name, message, voter.backing_id if voter is not None else "")
        self.requests.on_leader()

    def _join_domain(self, domain: bytes) -> None:
        """A list comes only from a name server in office: its domain id is stable. A call alone proves less."""
        if self.domain == NO_DOMAIN and self.voter is None:
            self.identity.domain = domain
            self.turn.persist(NodeRecord(self.identity.newest_incarnation, domain))

    def _agrees_with(self, sender: str, essentials: dict[str, str]) -> bool:
        """Whether a candidate has our essential parameters; if not, both sides say which differ."""
        found = difference(self.turn.node, self.parameters.essentials(), sender, essentials)
        if found is None:
            self.trouble.forget(sender)
            return True
        self.trouble.note(sender, found.reason)
        if self.voter is not None and self.voter.formed:
            self.turn.send(sender, found)
        return False

    def _on_refused(self, node: str) -> None:
        self.trouble.refused(node)
        self.member.lose_leader(node)
        if self.voter is not None:
            self.voter.on_port_refused(node)
        entry = self.member.nodes.get(node)
        if entry is not None and entry.status == "up" and self.member.hears_leader:
            if self.member.leader not in (node, self.turn.node):
                self.turn.send(self.member.leader, Suspect(node, entry.incarnation))

    # --- Clients ---

    def _on_client(self, client: int, message: ClientRequest) -> None:
        if client in self.sessions.newcomers:
            self.enrolment.on_newcomer(client, self.sessions.newcomers[client], message)
        elif not self.sessions.take(client, message):  # type: ignore[arg-type]
            self._answer(client, message)

    def _answer(self, client: int, message: ClientRequest) -> None:
        """What concerns no group; ``client`` is a connection, or below 0 a session."""
        if not self.sessions.may(client, message):  # type: ignore[arg-type]  # it is one of them
            return
        if isinstance(message, StatusAsk):
            self.turn.reply(client, self.status(message.id, self.turn.now))
        elif isinstance(message, DrainAsk):
            self.drain.on_ask(client, message)
        elif isinstance(message, LookUpAsk) and message.form and self.sessions.desk.draining:
            self.turn.reply(client, Problem(message.id, "failed", "draining", self.sessions.desk.draining))
        elif isinstance(message, StatisticsAsk):
            parts = self.all_statistics(lambda group: self.sessions.sees(client, group))
            self.turn.reply(client, Statistics(message.id, parts))
        elif isinstance(message, LookUpAsk):
            if not message.form or self.sessions.has_room_to_form(client, message.id):
                self.requests.on_look_up(client, message)
        elif isinstance(message, ConfigAsk):
            self.requests.on_config_ask(client, message)
        elif isinstance(message, ConfigSet):
            self.requests.on_config_set(client, message)
        elif isinstance(message, HandOverAsk):
            self.requests.on_hand_over(client, message)
        elif isinstance(message, SurveyAsk):
            self.surveys.on_ask(client, message)
        elif isinstance(message, OptionsAsk):
            self.turn.reply(client, OptionsAre(message.id, self.turn.node, self.option_lines()))
        elif isinstance(message, TokenAsk | RevokeAsk | NodeKeysAsk):
            if self.sessions.may_list_keys(client, message.id):
                who = self.sessions.desk.access.name_of(self.sessions.principal_of(client))
                self.enrolment.on_operator(client, who, message)
        elif isinstance(message, EnrolAsk):
            text = "only who shows a token enrols a node; make one with `groupsvc token`"
            self.turn.reply(client, Problem(message.id, "failed", "permission denied", text))

    def _options_said(self) -> tuple[OptionLine, ...]:
        """What the domain says of options; the driver knows more, and puts its own answer in place of this."""
        return tuple(
            OptionLine(key.removeprefix(OPTION_PREFIX), value, "domain", "domain", value, version)
            for key, (value, version) in sorted(self.member.options.items())
        )

    def _declared_down(self, known: int) -> None:
        """The others gave this incarnation up: go on under a new one, once that is on disk."""
        identity = self.identity
        if identity.newest_incarnation > identity.incarnation:
            return
        old = identity.incarnation
        identity.newest_incarnation = max(old, known) + 1
        self.turn.journal("down_learned", old=old)
        self.member.give_up_lease()

        def safe() -> None:
            identity.incarnation = identity.newest_incarnation
            self.requests.start_again()
            self.groups.start_again("this node was declared down")
            self.sessions.start_again("this node was declared down: the others went on without it")
            self.member.start_again()

        self.turn.persist(NodeRecord(identity.newest_incarnation, self.domain), done=safe)

    # --- Statistics and status ---

    @property
    def not_serving_because(self) -> str:
        """Why programs at this node cannot work, in words; "" if they can. Only within a step."""
        if self.drain.is_on:
            return self.drain.in_words
        if self.trouble.leader and not self.member.isolated:
            return ""
        return self.trouble.in_words or "this node is not in the domain yet"

    def statistics(self, groups_max: int, sees: Sees = lambda group: True) -> EngineStatistics:
        """Everything in numbers; of so many groups, how many members those have that one sees. Only in a step."""
        member, voter = self.member, self.voter
        nodes = dict.fromkeys(("up", "down", "gone"), 0)
        for entry in member.nodes.values():
            nodes[entry.status] = nodes.get(entry.status, 0) + 1
        domain = DomainStatistics(
            has_leader=self.trouble.leader != "",
            is_name_server=voter is not None and voter.office is not None,
            is_suspended=member.isolated,
            lease_left=self.sessions.desk.good_for,
            epoch=member.leader_epoch,
            nodes=nodes,
            directory_applied=voter.directory.applied if voter else 0,
        )
        return EngineStatistics(
            domain=domain,
            node_groups=self.groups.statistics(),
            process_groups=self.processes.statistics(groups_max, sees),
            sessions=self.sessions.statistics(),
            counted=counted(self.turn.tally),
        )

    def status(self, request_id: int, now: float) -> Status:
        """What this daemon knows, for people."""
        member, voter = self.member, self.voter
        leader = self.trouble.leader
        role = "node"
        if voter is not None:
            role = "name server" if voter.office is not None else "voter" if voter.formed else "blank voter"
        nodes = tuple(
            NodeStatus(entry.name, entry.incarnation, entry.status, entry.address, entry.voter, entry.name == leader)
            for _, entry in sorted(member.nodes.items())
        )
        return Status(
            id=request_id,
            node=self.parameters.node,
            incarnation=self.incarnation,
            domain=self.domain.hex() if self.domain != NO_DOMAIN else "",
            role=role,
            election=voter.election.state.value if voter else ("leader known" if leader else "leader unknown"),
            name_server=leader,
            epoch=member.leader_epoch,
            list_version=member.list_version,
            lease_left=max(0.0, member.lease_until - now) if math.isfinite(member.lease_until) else 0.0,
            suspended=member.isolated,
            trouble=self.trouble.in_words or self.groups.trouble or self.drain.in_words,
            nodes=nodes,
            applied=voter.directory.applied if voter else 0,
            stable=voter.server.stable if voter else 0,
        )
