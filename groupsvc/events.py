"""What happens in a group, as the application reads it: one frozen value each, in the order of the stream.

``group`` says where, since ``session.events()`` mixes the groups of a session. What came through the stream has the
number of its entry, ``seq``, and the ``view`` after that entry. A message changes no view; it carries the one before it
and makes its own when somebody looks, because most of a million messages are never asked. For the same reason it is the
one value here that attrs did not make: a class of msgspec is made in a tenth of the time.

``Rejected``, ``Suspended`` and ``Lost`` are also raised, and so live with the errors.
"""

from __future__ import annotations

import attrs
import msgspec

from .errors import Lost, Rejected, Suspended
from .views import Provider, View
from .voting import Counted, Outcome, Proposal
from .voting_words import Cause
from .wire.notices import AttributeValue


@attrs.frozen
class StreamEvent:
    """What all that came through the stream have in common."""

    seq: int = attrs.field(kw_only=True)
    view: View = attrs.field(kw_only=True, repr=False)
    group: str = attrs.field(kw_only=True)


@attrs.frozen
class Joined(StreamEvent):
    """New providers: a batch is one event; the first event of a group is one's own."""

    providers: tuple[Provider, ...]


@attrs.frozen
class Failing(StreamEvent):
    """A provider is no more. It is listed until ``Left`` follows."""

    provider: Provider
    cause: Cause


@attrs.frozen
class Left(StreamEvent):
    """These are providers no longer."""

    providers: tuple[Provider, ...]
    cause: Cause
    code: int = 0
    reason: str = ""


@attrs.frozen
class StateChanged(StreamEvent):
    """A new state value."""

    value: bytes
    version: int


class Message(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A message to all providers. ``sender`` is None if it came from outside the group; ``origin`` is known always."""

    sender: Provider | None
    payload: bytes
    seq: int
    group: str
    origin: str
    _view_before: View  # no part of what makes two messages equal

    @property
    def view(self) -> View:
        """The group as of this message."""
        return self._view_before.at(self.seq)

    def _content(self) -> tuple[object, ...]:
        return self.sender, self.payload, self.seq, self.group, self.origin

    def __eq__(self, other: object) -> bool:
        return self._content() == other._content() if isinstance(other, Message) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._content())

    def __repr__(self) -> str:
        return f"Message(sender={self.sender!r}, payload={self.payload!r}, seq={self.seq!r}, group={self.group!r})"


@attrs.frozen
class Proposed(StreamEvent):
    """A phase of a ballot was opened: a vote is due."""

    proposal: Proposal


@attrs.frozen
class PhaseEnded(StreamEvent):
    """A phase is over and another one follows."""

    proposal: Proposal | None
    phase: int
    tally: tuple[Counted, ...]


@attrs.frozen
class Approved(StreamEvent):
    """A proposal was approved, and has taken effect."""

    outcome: Outcome


@attrs.frozen
class AttributesChanged(StreamEvent):
    """These attributes of the group have other values from now on."""

    changes: tuple[tuple[str, AttributeValue], ...]


@attrs.frozen
class Unresponsive(StreamEvent):
    """A provider lives and does not answer its daemon, or does not read its events."""

    provider: Provider


@attrs.frozen
class Responsive(StreamEvent):
    """It answers again."""

    provider: Provider


@attrs.frozen
class Resumed:
    """What was suspended is true again; nothing was missed."""

    group: str = attrs.field(kw_only=True)


@attrs.frozen
class Dissolved:
    """The group has ended; nothing more comes."""

    reason: str
    group: str = attrs.field(kw_only=True)


@attrs.frozen
class Overrun:
    """So many events were left out here, because the program did not read them in time."""

    missed: int
    group: str = attrs.field(kw_only=True)


Event = (
    Joined | Failing | Left | StateChanged | Message | Proposed | PhaseEnded | Approved | Rejected | AttributesChanged
    | Unresponsive | Responsive | Suspended | Resumed | Lost | Dissolved | Overrun
)  # fmt: skip
