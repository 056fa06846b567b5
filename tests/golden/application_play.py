"""A run told for those who write applications: what each of them is told, one line for one thing, and little else.

    3.412 a b c  db 14: vote in phase 1 on state "red" by a; who votes: a b c; 30 s
    3.412 a      db 15: approved in phase 1, explicit_approve (a approve, b approve, c approve): state "red" by a
    3.413 a      is answered: approved, with entry 15

What several applications are told at about the same time is one line, as far as that leaves what each is told in its
order; one of them that is told later has a line of its own. Providers are shown by their names; one that comes again
under the same name is ``a(2)``. A fence is ``view+changes``. What daemons say to one another is left out, but for the
votes, if the script wants to see them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from groupsvc.testing.sim.transcript import Play
from groupsvc.wire import notices as n
from groupsvcd.core.peer_messages import PeerMessage, Votes, Waits

if TYPE_CHECKING:
    from groupsvc.testing.sim.node import Node

TOGETHER_S = 0.02
"""Told within so long of one another, the same words are one line. Longer than any message takes in a calm world."""

OF_THE_NODE = frozenset({"crash", "restart", "pause", "resume", "isolated", "rejoined", "down_learned"})
"""What befalls a daemon and its applications with it."""

FENCE = 2**20
"""Changes of the membership within one view, at most."""


class Names:
    """Who is meant by a provider's id."""

    def __init__(self) -> None:
        self._by_id: dict[n.ProviderId, str] = {}

    def learn(self, providers: Iterable[n.Provider]) -> None:
        """These are providers, or want to be."""
        for provider in providers:
            if provider.id not in self._by_id:
                before = sum(name.partition("(")[0] == provider.name for name in self._by_id.values())
                again = f"({before + 1})" if before else ""
                self._by_id[provider.id] = f"{provider.name}{again}"

    def of(self, provider: n.ProviderId) -> str:
        """One of them."""
        if provider[2] == 0 and provider not in self._by_id:
            return f"somebody on {provider[0]}"
        return self._by_id.get(provider, "/".join(map(str, provider)))

    def all(self, providers: Iterable[n.ProviderId]) -> str:
        """Some of them."""
        return " ".join(map(self.of, providers)) or "nobody"


class ApplicationPlay(Play):
    """Collects what applications are told until a scene is over, then writes it down."""

    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__(write)
        self.names = Names()
        self.shows_votes = False
        self.on_crash: Callable[[str], None] = lambda node: None
        self._has_begun = False
        self._leaders: dict[int, str] = {}
        self._lines: list[tuple[float, list[str], str]] = []  # when first, to whom, what

    def begin(self) -> None:
        """The first application comes; what the domain did to form itself is not shown."""
        self._has_begun = True

    def release(self) -> None:
        """Write down what has been collected."""

    def close(self) -> None:
        """The scene is over: write down what has been collected."""
        lines, self._lines = self._lines, []
        for t, whom, text in lines:
            self.write(f"{t:8.3f} {' '.join(whom):<6} {text}".rstrip())

    def line(self, text: str) -> None:
        """Something that is told to nobody."""
        if self._has_begun:
            self._lines.append((float(text[:8]), [text[8:].lstrip()], ""))

    def told(self, t: float, who: str, text: str) -> None:
        """An application is told something."""
        for first, whom, known in reversed(self._lines):
            if t - first > TOGETHER_S or (who in whom and known != text):
                break  # what one of them is told stands in the order in which it is told
            if known == text and who not in whom:
                whom.append(who)
                whom.sort()
                return
        self._lines.append((t, [who], text))

    def sent(self, node: Node, peer: str, messages: Sequence[PeerMessage]) -> None:
        """A frame leaves; only votes are shown, and only if the script wants to see them."""
        for message in messages:
            me = (node.name, node.engine.incarnation if node.engine is not None else 0)
            if isinstance(message, Waits) and self.shows_votes:
                waits = ", ".join(
                    f"{self.names.of((*me, one.provider))} {one.barrier!r} round {one.round}"
                    + (f", {one.gives_up}" if one.gives_up else "")
                    for one in message.waiters
                )
                self.line(f"{node.world.t:8.3f} {node.name} -> {peer}: waits {waits}")
            if isinstance(message, Votes) and self.shows_votes:
                votes = ", ".join(f"{self.names.of((*me, one.provider))} {one.vote}" for one in message.papers)
                self.line(f"{node.world.t:8.3f} {node.name} -> {peer}: votes in phase {message.phase}: {votes}")

    def happened(self, node: Node, op: str, group: int, epoch: int, seq: int, args: dict[str, Any]) -> None:
        """A node did something."""
        if op in OF_THE_NODE:
            self.line(f"{node.world.t:8.3f} {node.name} [{op}]")
        elif op == "view_active" and group and args["leader"] == node.name != self._leaders.get(group):
            self._leaders[group] = node.name
            self.line(f"{node.world.t:8.3f} {node.name} leads group {group} from now on")
        if op == "crash":
            self.on_crash(node.name)

    # --- Notices ---

    def notice(self, notice: n.AnyNotice) -> str:
        """Something that happened in a group, in words."""
        self._learn(notice)
        match notice:
            case n.Joined():
                text = f"joined: {self._providers(notice.providers)}, fence {fence(notice.fence)}"
            case n.Failing():
                text = f"failing: {self.names.of(notice.provider)} ({notice.cause})"
            case n.Left():
                more = f", code {notice.code}" if notice.code else ""
                more += f', "{notice.reason}"' if notice.reason else ""
                who = self.names.all(notice.providers)
                text = f"left: {who} ({notice.cause}{more}), fence {fence(notice.fence)}"
            case n.StateChanged():
                text = f"state is {quoted(notice.value)}, version {notice.version}"
            case n.Message():
                text = f"message of {self.names.of(notice.sender)}: {quoted(notice.payload)}"
            case n.PhaseOpened():
                text = f"vote in phase {notice.phase} on {self.subject(notice.subject)}"
                text += f"; who votes: {self.names.all(notice.electorate)}; {notice.time_limit:g} s"
                text += self._messages(notice.messages)
            case n.PhaseClosed():
                text = f"phase {notice.phase} is over ({self._votes(notice.votes)})"
                text += f", default vote {notice.default_vote}"
            case n.Ended():
                text = f"{self.outcome(notice.outcome)}: {self.subject(notice.outcome.subject)}"
                text += self._messages(notice.outcome.messages)
                text += f"; default vote {notice.default_vote}" if notice.default_vote != "approve" else ""
            case n.Refused():
                text = f"refused: {notice.why}"
            case n.AttributesChanged():
                text = f"attributes: {_settings(notice.changes)}"
            case n.Responsive():
                text = f"{self.names.of(notice.provider)} {'answers again' if notice.does else 'does not answer'}"
            case n.Emptied():
                text = "nobody is left"
            case n.Fenced():
                text = f"fence {fence(notice.fence)}" + ("; the tail may be lost" if notice.tail_may_be_lost else "")
        return f"{notice.seq}: {text}"

    def _learn(self, notice: n.AnyNotice) -> None:
        if isinstance(notice, n.Joined):
            self.names.learn(notice.providers)
        elif isinstance(notice, n.PhaseOpened):
            self.names.learn(notice.subject.joining)
        elif isinstance(notice, n.Ended):
            self.names.learn(notice.outcome.subject.joining)

    def view(self, view: n.GroupView) -> str:
        """A group as a member sees it."""
        self.names.learn(view.providers)
        text = f"after entry {view.seq}: {self._providers(view.providers) or 'nobody'}, fence {fence(view.fence)}"
        return f"{text}, state {quoted(view.state)} version {view.state_version}, default vote {view.default_vote}"

    def _providers(self, providers: Sequence[n.Provider]) -> str:
        def one(provider: n.Provider) -> str:
            return self.names.of(provider.id) + (f" {quoted(provider.data)}" if provider.data else "")

        return ", ".join(map(one, providers)) if any(p.data for p in providers) else " ".join(map(one, providers))

    def subject(self, subject: n.Subject) -> str:
        """What a ballot is about."""
        by = f" by {self.names.of(subject.proposer)}" if subject.proposer is not None else ""
        match subject.kind:
            case "join":
                what = f" of {self._providers(subject.joining)}"
            case "leave" | "failure" | "expel":
                what = f" of {self.names.all(subject.leaving)}"
                what += f", code {subject.code}" if subject.code else ""
                what += f', "{subject.reason}"' if subject.reason else ""
                what += f" ({subject.cause})" if subject.kind == "failure" else ""
            case "message":
                what = f" {quoted(subject.payload)}"
            case "attributes":
                what = f" {_settings(subject.changes)}"
            case "state":
                what = ""
        if subject.state is not None:
            what += f" {quoted(subject.state)}" if subject.kind == "state" else f" with state {quoted(subject.state)}"
        return f"{subject.kind}{what}{by if subject.kind != 'leave' else ''}"

    def outcome(self, outcome: n.Outcome) -> str:
        """How a ballot ended, and why."""
        text = f"{'approved' if outcome.approved else 'rejected'} in phase {outcome.phases}, {outcome.reason}"
        text += f" ({self._votes(outcome.votes)})" if outcome.votes else ""
        return text + (f", without {self.names.all(outcome.left_out)}" if outcome.left_out else "")

    def round(self, ended: n.Round) -> str:
        """How a round of a barrier ended."""
        brought = any(payload for _, payload in ended.arrived)
        came = ", ".join(
            self.names.of(one) + (f" {quoted(payload)}" if brought else "") for one, payload in ended.arrived
        )
        text = f"round {ended.number} {ended.end}, came: {came or 'nobody'}"
        if ended.end != "broken":
            return text
        text += f"; {ended.broken_by} of {self.names.all(ended.who)} after {ended.waited:.2f} s"
        missing = ", ".join(f"{self.names.of(one)}{'' if does else ' (no answer)'}" for one, does in ended.missing)
        return text + (f"; missing: {missing}" if missing else "")

    def _votes(self, votes: Sequence[n.Cast]) -> str:
        return ", ".join(
            f"{self.names.of(cast.provider)} {cast.vote}{f' by default: {cast.why}' if cast.why else ''}"
            for cast in votes
        )

    def _messages(self, messages: Sequence[n.VoteMessage]) -> str:
        said = ", ".join(f"{self.names.of(one.provider)} {quoted(one.payload)} in {one.phase}" for one in messages)
        return f"; said: {said}" if said else ""


def fence(number: int) -> str:
    """A fence: the view, and the changes within it."""
    return "+".join(map(str, divmod(number, FENCE))) if number >= FENCE else str(number)


def quoted(data: bytes) -> str:
    """Bytes of a script, which are text."""
    return f'"{data.decode()}"' if len(data) < 100 else f"<{len(data)} bytes>"


def _settings(pairs: Iterable[tuple[str, object]]) -> str:
    return " ".join(f"{name}={value}" for name, value in pairs)
