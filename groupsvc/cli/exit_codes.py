"""What the ``groupsvc`` command returns to the shell. Scripts rely on these: a number is never reused.

A command that runs another one returns that one's code. What it says of itself when that has begun, or might have been
wanted not to begin, is above 120, where programs seldom have codes of their own.
"""

from __future__ import annotations

import enum

from ..errors import (
    DaemonUnreachable,
    GroupServiceError,
    JoinRejected,
    NoSuchGroup,
    OutcomeUnknown,
    PeerProtocolError,
    Rejected,
    UsageError,
)


class ExitCode(enum.IntEnum):
    """How a command ended."""

    OK = 0
    NOT_SERVING = 1  # the domain is suspended here, or has no name server
    USAGE = 2  # the command itself is wrong; argparse uses the same number
    UNREACHABLE = 3  # no daemon at the address, or it went away
    FAILED = 4  # what was asked for certainly did not happen
    UNKNOWN = 5  # it may or may not have happened
    NOT_FOUND = 6  # there is no such group
    PROTOCOL = 7  # the other side sent something that is no answer
    OUTPUT = 8  # the answer came but could not be written
    REJECTED = 9  # the group voted against it; it did not happen
    UNHEALTHY = 10  # the doctor found something that does not work
    CONTRADICTION = 11  # journals contradict what the service promises
    BROKEN = 123  # a barrier: somebody who had come died or gave up
    LATE = 124  # a lock, a lead, a barrier, a drain: not in time; ``timeout`` has the same number
    LOST = 125  # the lock, the lead or the place in the group was lost
    NOT_EXECUTABLE = 126  # the command cannot be run; shells have the same number
    NO_COMMAND = 127  # there is no such command; shells have the same number
    INTERRUPTED = 130  # Ctrl-C, as a shell shows who died of SIGINT


EXIT_CODES_TEXT = """exit codes:
  0  done; for status: the domain serves this node
  1  the domain is suspended at this node, or has no name server
  2  the command is wrong
  3  no daemon answers at the address, or it went away
  4  it certainly did not happen
  5  it is not known whether it happened
  6  there is no such group
  7  the answer was not understood (other version?)
  8  the answer could not be written
  9  the group voted against it; it did not happen
  10  doctor: something does not work
  11  the journals contradict one another, or what the service promises
  123  the barrier is broken: somebody who had come died or gave up
  124  the lock or the lead was not to be had in time, or not all came to the barrier; the drain left something
  125  the lock or the lead was lost, and the command was ended; join: the others sent this provider away
  126  the command cannot be run
  127  there is no such command
  130  Ctrl-C ended it before there was an answer
"""

_CODE_OF: tuple[tuple[type[GroupServiceError], ExitCode], ...] = (
    (UsageError, ExitCode.USAGE),
    (DaemonUnreachable, ExitCode.UNREACHABLE),
    (NoSuchGroup, ExitCode.NOT_FOUND),
    (Rejected, ExitCode.REJECTED),
    (JoinRejected, ExitCode.REJECTED),
    (OutcomeUnknown, ExitCode.UNKNOWN),
    (PeerProtocolError, ExitCode.PROTOCOL),
    (GroupServiceError, ExitCode.FAILED),
)


def code_of(error: GroupServiceError) -> ExitCode:
    """What a command returns that failed with this."""
    return next(code for kind, code in _CODE_OF if isinstance(error, kind))
