"""Tokens: how the key of a new node gets listed without anybody copying keys.

Operator O asks A for a token for node D; A lists its public half. Machine D shows the token at B, which may be A, and
says which public key it has; B lists that in place of the token. What may be listed is decided here, from what the name
server says is listed *now*, and set over just that version; who comes second reads again, and decides anew.

What must hold:

- *Once.* Of one token at most one key is ever listed, whoever shows it how often and wherever: the line with the
  token is replaced by one entry of the directory, which is the enrolment.
- *Never lost.* Who was told that it is enrolled is listed, until somebody revokes it.
- *The same answer again.* Who asks again with the same token and the same key is told yes, and nothing is set; for as
  long as a lost answer is worth asking for (``TOLD_AGAIN_S``). Which key was enrolled nobody is told.
- *Nothing else.* Who shows a token can say nothing but that; whose token it is decides the directory, by the key
  that was shown, not the name that it says.
- *No other's name, no other's key.* Not the name of a voter, nor of a node that is up or stands in our file; not the
  key of another. Who does not ask a daemon but the directory meets the two of these rules that are there: no voter,
  and no key that is listed for another.
- *Never unseen.* What was done is recorded, whoever is still there to be told (``deeds``).

A token has a deadline, by the wall clock of the node that made it, and is held against that of the node where it is
shown. If that one is five minutes behind, the token is good for five minutes more. So it is with the time for which who
has used one is told so again. Nothing else depends on these clocks. Past its deadline a token stays listed, so that who
shows it is told why it is refused, until it is revoked or another one is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from groupsvc.wire.client_messages import ClientReply, ClientRequest, Problem
from groupsvc.wire.enrolment_messages import (
    TOKEN_VALID_S_MAX,
    EnrolAsk,
    Enrolled,
    NodeKeyLine,
    NodeKeysAre,
    NodeKeysAsk,
    RevokeAsk,
    Revoked,
    TokenAsk,
    TokenIs,
    is_public_key,
)

from ..audit import Audit
from ..turn import Turn
from .commands import SetConfig, encode_command
from .deeds import Deed, Deeds
from .listed_keys import Listed, NodeKey, Token, listed, node_of, setting_of
from .member import Member
from .nodes import UP, problem_with_name
from .requests import Requests

NO_KEYS = "tokens need keys: this daemon has no key_file in its configuration, and lets in whoever comes"
NO_DOOR = "a new machine could not reach this daemon: listen_clients is not in its configuration; ask one that has it"

TOLD_AGAIN_S = 3600
"""So long who has enrolled a node is told so again: whose answer was lost asks again at once, or when somebody looks at
the exit code. Later a token that is found in some file is good for nothing at all."""

Decision = str | ClientReply
"""The line that is to be listed from now on; or what is answered instead."""


@attrs.frozen(kw_only=True)
class Door:
    """What only the driver knows: where somebody with a token comes in, and what a new daemon must be told."""

    problem: str = NO_KEYS
    domain: str = ""
    address: str = ""
    server: str = ""
    voters: Mapping[str, str] = attrs.field(factory=dict)
    in_file: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)  # [node_keys], with our own
    node_keys: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)  # these, and those that the domain lists
    handed_out: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)  # what a new node has to have in its file
    options: Mapping[str, float | int | str] = attrs.field(factory=dict)


@attrs.frozen
class _Waiting:
    client: int
    version: int
    deadline: float
    reply: ClientReply


class Enrolment:
    """What clients of one node ask about the keys of nodes."""

    def __init__(self, turn: Turn, member: Member, requests: Requests, audit: Audit) -> None:
        self.turn = turn
        self._member = member
        self._requests = requests
        self._audit = audit
        self.door: Callable[[], Door] = Door  # the driver knows
        self.wall_s: Callable[[], float] = lambda: 0.0  # seconds since 1970, the driver's
        self._waiting: list[_Waiting] = []
        self._deeds = Deeds(audit)

    # --- Operators: whether they may is judged before ---

    def on_operator(self, client: int, who: str, ask: TokenAsk | RevokeAsk | NodeKeysAsk) -> None:
        """Something about tokens and keys."""
        if isinstance(ask, TokenAsk):
            self._make(client, who, ask)
        elif isinstance(ask, RevokeAsk):
            self._revoke(client, who, ask)
        else:
            self.turn.reply(client, NodeKeysAre(ask.id, int(self.wall_s()), self._lines()))

    def _make(self, client: int, who: str, ask: TokenAsk) -> None:
        door = self.door()
        if problem := self._problem_with_token(ask):
            self.turn.reply(client, Problem(ask.id, "usage", "bad token", problem))
            return
        if problem := door.problem or self._problem_with_node(ask.node, door):
            self.turn.reply(client, Problem(ask.id, "failed", "refused", problem))
            return
        token = Token(ask.public, math.ceil(self.wall_s() + ask.valid_s))
        replaced = False

        def decide(present: Listed | None, version: int) -> Decision:
            nonlocal replaced
            if isinstance(present, NodeKey):
                text = f"{ask.node} has been enrolled with the key {present.public}; revoke that first"
                return Problem(ask.id, "failed", "refused", text)
            replaced = present is not None
            return token.line()

        def deed(line: str, version: int) -> Deed:
            about = {"name": ask.node, "token": ask.public, "until": token.until}
            return Deed("token_made", who, about, setting_of(ask.node), line, version)

        def done(version: int) -> ClientReply:
            return TokenIs(ask.id, ask.node, door.domain, door.address, door.server, token.until, replaced)

        deadline = self._requests.deadline_of(ask.timeout)
        self._set_over(client, ask.id, deadline, ask.node, decide, deed, done)

    def _revoke(self, client: int, who: str, ask: RevokeAsk) -> None:
        if problem := problem_with_name(ask.node):
            self.turn.reply(client, Problem(ask.id, "usage", "bad name", problem))
            return
        was: Listed | None = None

        def decide(present: Listed | None, version: int) -> Decision:
            nonlocal was
            was = present
            if present is None:
                text = f"the domain lists neither a token nor a key of {ask.node}"
                if ask.node in self.door().in_file:
                    text += (
                        f"; one stands in [node_keys] of {self.turn.node}: take it out of all files, and reload them"
                    )
                return Problem(ask.id, "failed", "refused", text)
            return ""

        def deed(line: str, version: int) -> Deed:
            what = "token" if isinstance(was, Token) else "key"
            about = {"name": ask.node, "what": what, "key": was.public if was is not None else ""}
            return Deed("token_revoked", who, about, setting_of(ask.node), line, version)

        def done(version: int) -> ClientReply:
            return Revoked(ask.id, ask.node, "token" if isinstance(was, Token) else "key", version)

        deadline = self._requests.deadline_of(ask.timeout)
        self._set_over(client, ask.id, deadline, ask.node, decide, deed, done)

    def _lines(self) -> tuple[NodeKeyLine, ...]:
        found = [NodeKeyLine(node, "file", key) for node, keys in self.door().in_file.items() for key in keys]
        for setting, (line, version) in self._member.options.items():
            present = listed(line) if node_of(setting) else None
            if isinstance(present, Token):
                found.append(NodeKeyLine(node_of(setting), "token", present.public, present.until, version))
            elif present is not None:
                found.append(NodeKeyLine(node_of(setting), "key", present.public, 0, version))
        return tuple(sorted(found, key=lambda line: (line.node, line.kind, line.public)))

    def _problem_with_token(self, ask: TokenAsk) -> str:
        if problem := problem_with_name(ask.node):
            return problem
        if not is_public_key(ask.public):
            return "the public half of the token is no key"
        if not 1 <= ask.valid_s <= TOKEN_VALID_S_MAX:  # nor what is no number
            return f"a token is valid for 1 to {TOKEN_VALID_S_MAX:.0f} seconds, not {ask.valid_s:g}"
        return ""

    def _problem_with_node(self, node: str, door: Door) -> str:
        entry = self._member.nodes.get(node)
        if node in door.voters:
            return f"{node} is a voter; keys of voters stand in [node_keys] of all nodes"
        if node in door.in_file:
            return f"the key of {node} stands in [node_keys] of {self.turn.node}; take it out there first"
        if entry is not None and entry.status == UP:
            return f"{node} is up, at {entry.address}; a new node needs another name, or stop that one"
        return ""

    # --- Whoever shows a token ---

    def on_newcomer(self, client: int, token: str, ask: ClientRequest) -> None:
        """Everything that is said over a connection that was let in by ``token``."""
        if isinstance(ask, EnrolAsk):
            self._enrol(client, token, ask)
            return
        text = "a token is good for one thing, to enrol the node that it was made for (groupsvc keygen --join)"
        self._refuse(token, "", f"asked for {type(ask).__name__}")
        self.turn.reply(client, Problem(ask.id, "failed", "permission denied", text))  # type: ignore[attr-defined]

    def _enrol(self, client: int, token: str, ask: EnrolAsk) -> None:
        door = self.door()

        def no(text: str) -> ClientReply:
            self._refuse(token, ask.node, text)
            return Problem(ask.id, "failed", "refused", text)

        def decide(present: Listed | None, version: int) -> Decision:
            if isinstance(present, NodeKey) and present.token == token:
                if present.public == ask.public and self.wall_s() < present.until:
                    self._audit.record("token_shown_again", _who(token), name=ask.node, key=ask.public)
                    return enrolled(version)
                return no(f"the token was used already, to enrol {ask.node}; if that was not you, have it revoked")
            if not isinstance(present, Token) or present.public != token:
                return no(f"this token is not, or no longer, one for {ask.node}")
            if self.wall_s() >= present.until:
                self._audit.record("token_expired", _who(token), name=ask.node, until=present.until)
                late = self.wall_s() - present.until
                text = f"the token expired {late:.0f} s ago, by the clock of {self.turn.node}; make another one"
                return Problem(ask.id, "failed", "refused", text)
            if problem := self._problem_with_node(ask.node, door) or _problem_with_key(ask, token, door):
                return no(problem)
            return NodeKey(ask.public, token, math.ceil(self.wall_s() + TOLD_AGAIN_S)).line()

        def deed(line: str, version: int) -> Deed:
            about = {"name": ask.node, "key": ask.public}
            return Deed("token_used", _who(token), about, setting_of(ask.node), line, version)

        def enrolled(version: int) -> ClientReply:
            keys = {node: tuple(its) for node, its in door.handed_out.items()}
            return Enrolled(ask.id, version, door.domain, dict(door.voters), keys, dict(door.options))

        if problem := problem_with_name(ask.node):
            self.turn.reply(client, no(problem))
        elif not is_public_key(ask.public):
            self.turn.reply(client, no("what was given as the public key of the node is no key"))
        else:
            deadline = self._requests.deadline_of(ask.timeout)
            self._set_over(client, ask.id, deadline, ask.node, decide, deed, enrolled, no)

    def _refuse(self, token: str, node: str, why: str) -> None:
        self._audit.record("token_refused", _who(token), name=node, why=why)

    # --- Read, decide, set over what was read ---

    def _set_over(
        self, client: int, id: int, deadline: float, node: str, decide: Callable[[Listed | None, int], Decision],
        deed: Callable[[str, int], Deed], done: Callable[[int], ClientReply],
        no: Callable[[str], ClientReply] | None = None,
    ) -> None:  # fmt: skip
        """Have listed what is decided from what is listed now, until ``deadline``.

        ``deed``: what is recorded of it. ``no``: what is answered if the directory does not take it.
        """
        setting = setting_of(node)

        def failed(family: str, code: str, text: str) -> None:
            self.turn.reply(client, Problem(id, family, code, text))  # type: ignore[arg-type]

        def read(answer: dict[str, Any]) -> None:
            version = int(answer["version"])
            decided = decide(listed(answer["value"]), version)
            if not isinstance(decided, str):
                self.turn.reply(client, decided)
                return
            command, doing = SetConfig(setting, decided, version), deed(decided, version)

            def body() -> bytes:
                self._deeds.sent(doing)
                return encode_command(command)

            def answered(answer: dict[str, Any]) -> None:
                if answer.get("ok"):
                    self._deeds.done(doing)
                    version_set = int(answer["version"])
                    self._waiting.append(_Waiting(client, version_set, deadline, done(version_set)))
                    self.tick()
                    return
                self._deeds.refused(doing)
                problem = str(answer.get("problem", ""))
                if answer.get("version") != version:
                    self.turn.mark("enrolment-overtaken")
                    ask()
                elif no is not None:
                    self.turn.reply(client, no(problem))
                else:
                    failed("failed", "refused", problem)

            about = f"listing a key of {node}"
            self._requests.command_of(client, deadline, about, body, answered, failed)

        def ask() -> None:
            self._requests.question_of(client, deadline, "config", setting, read, failed)

        ask()

    # --- Answered when this node knows, too: from then on it lets in whom it has listed ---

    @property
    def deadline(self) -> float:
        """When somebody has to be answered anyhow."""
        return min((waiting.deadline for waiting in self._waiting), default=math.inf)

    def tick(self) -> None:
        """Time has passed, or a list has come."""
        self._deeds.look(self._member.options)
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if self._member.list_version >= one.version or self.turn.now >= one.deadline:
                self.turn.reply(one.client, one.reply)
            else:
                self._waiting.append(one)


def _who(token: str) -> str:
    return f"token:{token}"


def _problem_with_key(ask: EnrolAsk, token: str, door: Door) -> str:
    """A key is a name: two nodes with one key would be one, and lock each other out."""
    owner = next((node for node, keys in door.node_keys.items() if node != ask.node and ask.public in keys), "")
    if owner:
        return f"the key {ask.public} is the one of {owner}; make another pair"
    return "the node needs a pair of its own; the token is none" if ask.public == token else ""
