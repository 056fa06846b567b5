"""The families of errors, split by whose fault it is and by what is known.

A caller wants to know three things: was it my mistake, did it happen, and what do I do now.
So every error is in exactly one family:

- ``UsageError``: the caller's bug; nothing was tried.
- ``PeerProtocolError``: the other side sent bytes that are no valid frame or message.
- ``Failed``: it certainly did not happen.
- ``OutcomeUnknown``: it may or may not have happened; the ids say what to ask about.
"""

from __future__ import annotations


class GroupServiceError(Exception):
    """The root of everything groupsvc raises on purpose."""


class UsageError(GroupServiceError):
    """The call itself is wrong; no state was touched."""


class PeerProtocolError(GroupServiceError):
    """Bytes from the other side that must not be acted upon; the text says why."""


class Failed(GroupServiceError):
    """What was asked for certainly did not happen."""


class DaemonUnreachable(Failed):
    """No daemon answered at the address; the text says how to start one."""


class TimedOut(Failed, TimeoutError):
    """The deadline passed and the request is known not to have taken effect."""


class NoSuchGroup(Failed):
    """The directory holds no group of this name."""


class StaleVersion(Failed):
    """A compare-and-set met another version than the one expected."""


class OutcomeUnknown(GroupServiceError):
    """The request may have taken effect; ask again before acting on either answer."""

    def __init__(self, message: str, ids: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.ids = ids
