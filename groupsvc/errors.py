"""The families of errors, split by whose fault it is and by what is known.

A caller wants to know three things: was it my mistake, did it happen, and what do I do now.
So every error is in exactly one family:

- ``UsageError``: the caller's bug; nothing was tried.
- ``PeerProtocolError``: the other side sent bytes that are no valid frame or message.
- ``Failed``: it certainly did not happen.
- ``OutcomeUnknown``: it may or may not have happened; the ids say what to ask about.

The text says what was tried, in which group, and what to do; ``group`` is there for programs. What to do is said in the
words of this library. Where people use other words, as at a command line, ``what`` is the text without that
``advice``.

``Rejected``, ``Suspended`` and ``Lost`` are read in one place (events) and raised in another. They are one class each,
not two of the same name: who imports the one has the other, and ``case Lost()`` and ``except Lost`` both mean it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from .sansio.rounds import Missing
    from .views import Provider, View
    from .voting import Outcome


class GroupServiceError(Exception):
    """The root of everything groupsvc raises on purpose."""

    def __init__(self, message: str = "", *, group: str | None = None, advice: str = "") -> None:
        super().__init__(f"{message}; {advice}" if advice else message)
        self.group = group
        self.advice = advice

    @property
    def what(self) -> str:
        """The text without the advice at its end."""
        return str(self).removesuffix(f"; {self.advice}") if self.advice else str(self)


class UsageError(GroupServiceError):
    """The call itself is wrong; no state was touched."""


class OnlyWatches(UsageError, AttributeError):
    """A subscription was asked for what only a provider has; for Python it is a name that is not there."""


class PeerProtocolError(GroupServiceError):
    """Bytes from the other side that must not be acted upon; the text says why."""


class Failed(GroupServiceError):
    """What was asked for certainly did not happen."""


class DaemonUnreachable(Failed):
    """No daemon answered at the address, or the session with it is over; the text says what to start or call."""


class TimedOut(Failed, TimeoutError):
    """The deadline passed and the request is known not to have taken effect: it was withdrawn, and nobody saw it."""


class NoSuchGroup(Failed):
    """The directory holds no group of this name."""


class GroupExists(Failed):
    """The group was to be formed anew, and exists already."""


class AttributesMismatch(Failed):
    """The group exists and has other attributes than were asked for; the text names them."""


class StaleVersion(Failed):
    """A compare-and-set met another version than the one expected: ``version``, None if it is not known."""

    def __init__(self, message: str = "", version: int | None = None, *, group: str | None = None) -> None:
        super().__init__(message, group=group)
        self.version = version


class Busy(Failed):
    """Another ballot runs, or too many wait; with ``on_busy="queue"`` a proposal waits for its turn."""


class Draining(Failed):
    """The node is about to end and begins nothing new: use the daemon of another one, or wait until it is back."""


class NotAMember(Failed):
    """Whoever is needed for this is no provider of the group (any more)."""


class PermissionDenied(Failed):
    """This user may not do that here."""


class WouldBlock(Failed):
    """As many messages as allowed are on their way; wait, or call ``flush``."""


class BarrierBroken(Failed):
    """A round of a barrier ended without releasing anybody, the same for all who came; it stays broken until reset.

    ``why`` is "timeout", "cancelled", "failure", "left", "mismatch" or "too_large", and ``who`` did it. Of ``expected``
    parties these have ``arrived`` and these providers are ``missing`` (each with whether it responds, and what this
    program alone knows: since when not, and whether it ever came); ``never_came`` is how many more it takes than there
    are providers. The first one had ``waited`` so many seconds. With "mismatch", ``said`` has what the first one and
    each of ``who`` said: the provider, its parties (None: all), its on_failure.
    """

    def __init__(
        self,
        message: str = "",
        *,
        group: str | None = None,
        round: int = 0,
        expected: int = 0,
        arrived: tuple[Provider, ...] = (),
        missing: tuple[Missing, ...] = (),
        never_came: int = 0,
        why: str = "",
        who: tuple[Provider, ...] = (),
        waited: float = 0.0,
        said: tuple[tuple[Provider, int | None, str], ...] = (),
    ) -> None:
        super().__init__(message, group=group)
        self.said = said
        self.round = round
        self.expected = expected
        self.arrived = arrived
        self.missing = missing
        self.never_came = never_came
        self.why = why
        self.who = who
        self.waited = waited


class LockLost(Failed):
    """What was held is held no longer."""


class JoinRejected(Failed):
    """The group voted against the join; ``outcome`` says who did."""

    def __init__(self, message: str, outcome: Outcome, *, group: str | None = None) -> None:
        super().__init__(message, group=group)
        self.outcome = outcome


class OutcomeUnknown(GroupServiceError):
    """The request may have taken effect; ask again before acting on either answer."""

    def __init__(self, message: str, ids: tuple[str, ...] = (), *, group: str | None = None, advice: str = "") -> None:
        super().__init__(message, group=group, advice=advice)
        self.ids = ids


# --- Read as events, raised as errors --------------------------------------------------------------------


class _Told(Failed):
    """The common form: compared and shown by its fields, as a value."""

    _fields: ClassVar[tuple[str, ...]] = ()
    seq: int | None = None
    view: View | None = None

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), *self._values()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in (*self._fields, "group"))
        return f"{type(self).__name__}({shown})"

    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in (*self._fields, "group", "seq"))


class Rejected(_Told):
    """A proposal was rejected: read in ``events()``, or raised by ``outcome.require()``."""

    _fields = ("outcome",)
    __match_args__ = ("outcome",)

    def __init__(
        self, outcome: Outcome, *, seq: int | None = None, view: View | None = None, group: str | None = None
    ) -> None:
        super().__init__(f"rejected: {outcome.in_words}", group=group or outcome.proposal.group)
        self.outcome = outcome
        self.seq = seq
        self.view = view


class Suspended(_Told):
    """Nobody vouches for what is known here at the moment: act on nothing that must be held alone."""

    _fields = ("reason",)
    __match_args__ = ("reason",)

    def __init__(self, reason: str = "", *, group: str | None = None) -> None:
        super().__init__(f"suspended{_where(group)}: {reason or 'no word from the daemon'}", group=group)
        self.reason = reason


class Lost(_Told):
    """The membership, or the whole session, is over, and it was not asked for."""

    _fields = ("reason",)
    __match_args__ = ("reason",)

    def __init__(self, reason: str = "", *, group: str | None = None) -> None:
        super().__init__(f"lost{_where(group)}" + (f": {reason}" if reason else ""), group=group)
        self.reason = reason


def _where(group: str | None) -> str:
    return "" if group is None else f" in group {group!r}"
