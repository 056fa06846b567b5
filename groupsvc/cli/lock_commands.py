"""``groupsvc lock`` and ``groupsvc elect``: a command of a shell, run while something is held.

A lock is for what is to be done once at a time, and has an end: a nightly job, a deployment. An election is for a
service that is to run once in the whole domain, for ever: who leads runs it, the others wait, and who has lost the lead
waits again.

The command learns what it holds from its environment. ``GROUPSVC_FENCE`` grows from holder to holder: what the command
writes to can refuse smaller ones, and is safe then even from a command that was not ended in time.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from .. import Lock, PeerProtocolError, PermissionDenied, Session, UsageError, connect
from ..drivers.connection import TIMEOUT_S
from ..errors import GroupServiceError
from ..recipes.elections import election_line
from ..sansio.arguments import recipe_name
from ..sansio.contending import Line
from ..wire.limits import PROVIDERS_MAX
from .advice import explained
from .child_process import check_program, fill_standard_streams
from .exit_codes import ExitCode, code_of
from .front import GONE, Front, Post, say
from .options import count, running, seconds, timeout_argument
from .passed_signals import Signalled, Signals, die_of
from .supervision import Ended, Rules, Supervision

if TYPE_CHECKING:
    from .options import Commands

GRACE_S = 5.0
"""What a command may take to end after SIGTERM. Somebody else may have the lock meanwhile, so it is not long."""

CLOSING_S = 1.0
"""At the end a daemon that does not answer is not waited for: that this process has ended it sees by itself."""

AGAIN_S = 1.0
"""Who waits and cannot reach its daemon any more tries again after this."""

ASKING_S = 2.0
"""How long it may take to find out who is in front of us; then it is not told."""

SOON_S = 0.001
"""In line for at least so long: a daemon waits for no shorter time."""

Hold = Callable[[argparse.Namespace, Post], int]
"""What a holder does, from the wait to the end: with its exit code."""

_ABOUT_SIGNALS = """\
The command has this terminal, standard input and output, and process group. Its exit code is that of groupsvc
(128+N if it died of signal N). SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGTSTP and SIGCONT are passed on
to it, unless the terminal has told it already. If groupsvc itself is killed (SIGKILL), the command is killed, too."""

_LOCK = f"""\
Wait for the lock NAME, run COMMAND, and give the lock back when COMMAND has ended; first come, first served. COMMAND
finds the name of the lock in GROUPSVC_LOCK, and its fence, which grows from holder to holder, in GROUPSVC_FENCE.

{_ABOUT_SIGNALS}"""

_ELECT = f"""\
Stand for election in NAME, and run COMMAND while leading. When the lead is lost COMMAND is ended, and groupsvc stands
for election again; when COMMAND ends by itself, so does groupsvc. COMMAND finds the name in GROUPSVC_ELECTION, and the
fence of its term in GROUPSVC_FENCE.

{_ABOUT_SIGNALS}"""


def add(commands: Commands) -> None:
    """Add the parsers of this family."""
    lock = running(
        commands, "lock", _lock, help="run a command while holding a lock of the whole domain",
        usage="NAME [options] -- COMMAND [ARGUMENT ...]",
        example="groupsvc lock nightly-report --timeout 60 -- ./report.sh --all",
        description=_LOCK,
    )  # fmt: skip
    timeout_argument(lock, "give up with exit code 124 if it is not to be had")
    lock.add_argument(
        "--try",
        "--nonblock",
        action="store_true",
        dest="only_tries",
        help="do not wait for who holds it, which is --timeout 0; only for the daemon's word if it is free, which may"
        f" take up to {TIMEOUT_S:g} seconds while the domain elects a name server or stands still",
    )
    kind = lock.add_mutually_exclusive_group()
    kind.add_argument(
        "--mode", choices=("shared", "exclusive"),
        help="hold it together with others who say shared, or alone; all who use NAME say --mode: it is another lock"
        " than that without",
    )  # fmt: skip
    kind.add_argument(
        "--slots", type=count, metavar="N",
        help="up to N hold it at a time; all who use NAME say the same: it is another lock than that without",
    )  # fmt: skip
    lock.add_argument(
        "--on-lost", choices=("kill", "warn"), default="kill",
        help="what to do when the lock is lost, or nobody vouches for it any more: end the command and all that it has"
        " started, with exit code 125 (kill, the default), or only say so (warn)",
    )  # fmt: skip
    _about_losing(lock, "lock")

    elect = running(
        commands, "elect", _elect, help="run a command on one node of the domain at a time: on the one that leads",
        usage="NAME [options] -- COMMAND [ARGUMENT ...]",
        example="groupsvc elect scheduler --data 10.0.0.7:4711 -- ./scheduler --port 4711",
        description=_ELECT,
    )  # fmt: skip
    timeout_argument(elect, "give up with exit code 124 if not leading")
    elect.add_argument(
        "--once", action="store_true", help="end with the first term: with exit code 125 if the lead is lost"
    )
    elect.add_argument(
        "--data", default="", metavar="TEXT",
        help="what others see of this candidate, in `groupsvc members _election/NAME`",
    )  # fmt: skip
    _about_losing(elect, "lead")


def _about_losing(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--grace", type=seconds, default=GRACE_S, metavar="S",
        help=f"seconds between SIGTERM and SIGKILL when the {what} is lost (default {GRACE_S:g}; 0: SIGKILL at once)",
    )  # fmt: skip
    parser.add_argument(
        "--patience", type=seconds, default=0.0, metavar="S",
        help=f"let the command go on for S seconds when nobody vouches for the {what}, which may come back; others can"
        " have it meanwhile (default 0)",
    )  # fmt: skip


# --- What both have in common ---------------------------------------------------------------------------------


def _run(options: argparse.Namespace, hold: Hold, *, kind: str, kills: bool) -> int:
    """Run the command in front of a holder that does this; ``kind`` is the variable with the name of what is held."""
    if not options.argv:
        options.runs.error("the command to run is missing; it stands behind --")
    check_program(options.argv)  # before anybody waits for hours to be told that it is mistyped
    fill_standard_streams()
    try:
        with Signals() as signals:
            front = Front(signals, lambda post: _reported(options, hold, post), kills=kills)
            code = front.run(options.argv, lambda fence: environment(options, fence=fence, **{kind: options.name}))
    except Signalled as told:  # nothing ran: it ends us as it would any program
        die_of(told.number)
    if code == 128 + signal.SIGINT:
        die_of(signal.SIGINT)
    return code


def _reported(options: argparse.Namespace, hold: Hold, post: Post) -> int:
    """What a holder does, with its errors told as everywhere."""
    try:
        return hold(options, post)
    except GroupServiceError as error:
        if post.is_gone:  # its front was told to end: so it is no error that it was
            return ExitCode.OK
        say(explained(error, options))
        return code_of(error)


def _connected(options: argparse.Namespace, post: Post) -> Session:
    """Under a name that tells people which process to end."""
    name = f"{socket.gethostname()}:{post.front}"
    session = connect(options.address, name=name, keys=options.keys, timeout=TIMEOUT_S, default_timeout=CLOSING_S)
    post.closes(session.close)
    return session


def environment(options: argparse.Namespace, **more: object) -> dict[str, str]:
    """What the command gets: ours, which daemon we use, and what it holds."""
    found = {**os.environ, **{f"GROUPSVC_{name.upper()}": str(value) for name, value in more.items()}}
    if options.address is not None:
        found["GROUPSVC_ADDRESS"] = options.address
    if isinstance(options.keys, str):
        found["GROUPSVC_KEYS"] = os.path.abspath(options.keys)
    return found


def _first_in_line(lock: Lock) -> str:
    """Who holds it, for people."""
    with contextlib.suppress(GroupServiceError):
        for provider in lock.in_line(timeout=ASKING_S):
            return f"; the first in the line is {provider.name.rpartition('#')[0] or provider.id} at {provider.node}"
    return ""


class Wait:
    """For a turn, and from session to session: a daemon that is started anew costs the place in the line, and no more.

    Who waits has begun nothing yet, so there is nothing that could be done twice.
    """

    def __init__(
        self, options: argparse.Namespace, post: Post, what: str, lock_of: Callable[[Session], Lock], *, tries: bool
    ) -> None:
        self._options = options
        self._post = post
        self._what = what
        self._lock_of = lock_of
        self._tries = tries  # waits for nobody: no holder, and no daemon
        self._is_known = False  # that there is a daemon: whoever never had one has mistyped its address
        self._problem = ""

    @contextlib.contextmanager
    def turn(self) -> Iterator[Lock | None]:
        """What is held from here to the end of the block; None if it was not to be had in time, which is told."""
        with contextlib.ExitStack() as stack:
            yield self._held(stack)

    def _held(self, sessions: contextlib.ExitStack) -> Lock | None:
        until = time.monotonic() + self._options.timeout
        while True:
            try:
                lock = self._lock_of(sessions.enter_context(_connected(self._options, self._post)))
                self._is_known = True
                if self._acquired(lock, until):
                    self._problem = ""
                    return lock
                self._late(_first_in_line(lock) or f"; {lock._why_late}")
                return None
            except (UsageError, PeerProtocolError, PermissionDenied):
                raise
            except GroupServiceError as error:
                if not self._is_known or self._tries or self._post.is_gone:
                    raise
                self._complain(error)
            sessions.close()
            self._post.closes(None)
            left = until - time.monotonic()
            if left <= 0:
                self._late()
                return None
            if self._post.next(min(left, AGAIN_S)) == GONE:
                return None

    def _acquired(self, lock: Lock, until: float) -> bool:
        if self._tries:
            return lock.try_acquire(timeout=TIMEOUT_S)
        return lock.acquire(timeout=max(until - time.monotonic(), SOON_S))

    def _late(self, who_has_it: str = "") -> None:
        in_time = "" if self._tries else f" within {self._options.timeout:g} s"
        say(f"{self._what} is not to be had{in_time}{who_has_it}")

    def _complain(self, error: GroupServiceError) -> None:
        text = error.what  # without an advice: what it says is done here
        if text != self._problem:
            self._problem = text
            say(f"{text}; it is tried again")


# --- lock -----------------------------------------------------------------------------------------------------


def _lock(options: argparse.Namespace) -> int:
    recipe_name(options.name, _kind(options))
    if options.slots == 0 or (options.slots or 0) > PROVIDERS_MAX:
        raise UsageError(f"--slots is {options.slots}; it must be 1 to {PROVIDERS_MAX}")
    if options.only_tries and math.isfinite(options.timeout) and options.timeout > 0:
        raise UsageError(f"--try is --timeout 0, and --timeout says {options.timeout:g}; give one of them")
    return _run(options, _hold_lock, kind="lock", kills=options.on_lost == "kill")


def _hold_lock(options: argparse.Namespace, post: Post) -> int:
    what = _in_words(options)
    tries = options.only_tries or options.timeout == 0
    with Wait(options, post, what, lambda session: _lock_of(session, options), tries=tries).turn() as lock:
        if lock is None:
            return ExitCode.LATE
        return _supervised(lock, what, Rules(options.on_lost, options.grace, options.patience), post).code


def _supervised(lock: Lock, what: str, rules: Rules, post: Post) -> Ended:
    """The command from its start to its end, and the lock is given back."""
    post.closes(None)
    try:
        return Supervision(lock, what, rules, post).run()
    finally:
        with contextlib.suppress(GroupServiceError):  # that it was lost has been said
            lock.release()


def _kind(options: argparse.Namespace) -> str:
    """Of the recipe; each has names of its own."""
    if options.slots is not None:
        return "semaphore"
    return "lock" if options.mode is None else "rwlock"


def _in_words(options: argparse.Namespace) -> str:
    if options.slots is not None:
        return f"a slot of {options.name!r}"
    return f"lock {options.name!r}" + ("" if options.mode is None else f" ({options.mode})")


def _lock_of(session: Session, options: argparse.Namespace) -> Lock:
    if options.slots is not None:
        return session.semaphore(options.name, options.slots)
    if options.mode is None:
        return session.lock(options.name)
    both = session.rwlock(options.name)
    return both.read() if options.mode == "shared" else both.write()


# --- elect ----------------------------------------------------------------------------------------------------


def _elect(options: argparse.Namespace) -> int:
    _line_of(options)  # refused before anybody is asked
    return _run(options, _lead, kind="election", kills=True)


def _lead(options: argparse.Namespace, post: Post) -> int:
    """From term to term, until the command ends by itself, or it is enough."""
    what = f"the lead of {options.name!r}"
    wait = Wait(options, post, what, lambda session: _election_of(session, options), tries=False)
    while True:
        post.say("waits")
        with wait.turn() as lead:
            if lead is None:
                return ExitCode.LATE
            say(f"leads {options.name!r}, fence {lead.fence}")
            ended = _supervised(lead, what, Rules("kill", options.grace, options.patience), post)
        if options.once or not ended.was_lost:
            return ended.code
        say(f"stands for election in {options.name!r} again")


def _election_of(session: Session, options: argparse.Namespace) -> Lock:
    """An election is a lock with other words."""
    return Lock(session._pump, TIMEOUT_S, _line_of(options))


def _line_of(options: argparse.Namespace) -> Line:
    """Where the candidates stand."""
    return election_line(options.name, options.data.encode(errors="surrogateescape"))
