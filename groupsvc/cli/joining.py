"""``groupsvc join``: be a provider of a group from a shell, see what happens in it, and vote.

Who stays in a group has a vote in it. ``--vote`` says which: the same one always, what is typed (``ask``), or what a
command of the user's finds out (``--vote-by``), which is how a script takes part in decisions. A vote that cannot be
found out is not made up: when the phase ends the group casts its default vote, and shows for whom.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from .. import GroupServiceError, Proposal, Vote, clock
from .colours import colour_argument
from .exit_codes import ExitCode
from .group_changes import NAME, provider_text
from .group_questions import about, connected, proposal_object
from .options import asking, group_argument, seconds
from .tables import one_line
from .watching import print_events, print_view

if TYPE_CHECKING:
    from .options import Commands

VOTES = {"approve": Vote.APPROVE, "reject": Vote.REJECT, "continue": Vote.CONTINUE}
"""What can be typed."""

EXIT_VOTES = {0: Vote.APPROVE, 1: Vote.REJECT, 2: Vote.CONTINUE}
"""What the exit code of the user's command means."""

Voter = Callable[[Proposal], Vote | None]


def add(commands: Commands) -> None:
    """Add the parser of this family."""
    join = asking(
        commands, "join", _join, help="be a provider of a group and vote in it, one line for each event, until Ctrl-C",
        example="groupsvc join db --name guard --vote-by 'jq -e \".state != null\"'",
    )  # fmt: skip
    group_argument(join)
    join.set_defaults(ends_unread=True)
    join.add_argument(
        "--name", type=provider_text, default=NAME, metavar="NAME", help=f"what the others see (default {NAME})"
    )
    join.add_argument("--no-create", action="store_true", help="only if the group is there already")
    how = join.add_mutually_exclusive_group()
    how.add_argument(
        "--vote", choices=("approve", "reject", "ask"), default="approve",
        help="on whatever is proposed; ask: read approve, reject or continue from standard input (default approve)",
    )  # fmt: skip
    how.add_argument(
        "--vote-by", metavar="COMMAND",
        help="run COMMAND in a shell for each phase, with the proposal as JSON on its standard input;"
        " exit code 0: approve, 1: reject, 2: continue, others: the group casts its default vote when the phase ends",
    )  # fmt: skip
    join.add_argument(
        "--for", type=seconds, default=math.inf, dest="duration", metavar="S", help="leave after S seconds"
    )
    colour_argument(join)


def _join(options: argparse.Namespace) -> ExitCode:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # who is asked to end leaves, and has not failed
    try:
        with connected(options) as session, session.join(
            options.group, name=options.name, create=False if options.no_create else None,
            on_proposal=_voter(options), events=True,
        ) as group:  # fmt: skip
            print_view(group.view, options)
            try:
                code = print_events(group, options)
            except KeyboardInterrupt:  # this is how one ends it; the block is left as always, with a leave
                return ExitCode.OK
            if code is ExitCode.LOST:
                print(one_line(f"groupsvc: the others have sent us away from group {options.group!r}"), file=sys.stderr)
            return code
    except KeyboardInterrupt:  # while it comes or goes
        return ExitCode.OK


# --- Who votes ---------------------------------------------------------------------------------------------


def _voter(options: argparse.Namespace) -> Voter:
    if options.vote_by is not None:
        return _Command(options.vote_by)
    if options.vote == "ask":
        return _Typed()
    vote = VOTES[options.vote]
    return lambda _: vote


class _Typed:
    """Asks at the terminal. A word counts for what was asked last, if it can still be voted on."""

    def __init__(self) -> None:
        self._asked: Proposal | None = None
        threading.Thread(target=self._read, name="groupsvc-votes", daemon=True).start()

    def __call__(self, proposal: Proposal) -> None:
        """Ask; whoever sits there may take the whole time of the phase."""
        self._asked = proposal
        _say(f"{about(proposal)}, phase {proposal.phase}: {', '.join(VOTES)}? {proposal.time_limit:g} s")

    def _read(self) -> None:
        for line in sys.stdin:
            word, asked = line.strip(), self._asked
            if word not in VOTES:
                _say(f"{word!r} is none of {', '.join(VOTES)}")
            elif asked is None:
                _say("nothing is to be voted on")
            else:
                _cast(asked, VOTES[word])
        _say("nothing more can be read from standard input: the group casts the default vote from now on")


class _Command:
    """Lets a command of the user's decide, in a thread for each phase: nobody must wait for it in the callback."""

    def __init__(self, command: str) -> None:
        self._command = command

    def __call__(self, proposal: Proposal) -> None:
        """Start to find out."""
        threading.Thread(target=self._decide, args=(proposal,), name="groupsvc-votes", daemon=True).start()

    def _decide(self, proposal: Proposal) -> None:
        code = self._exit_code(proposal)
        if code in EXIT_VOTES:
            _cast(proposal, EXIT_VOTES[code])
        else:
            why = "did not end in time" if code is None else f"ended with {code}"
            _say(f"{about(proposal)}: the command {why}, so the group casts the default vote")

    def _exit_code(self, proposal: Proposal) -> int | None:
        environment = {
            **os.environ,
            "GROUPSVC_GROUP": proposal.group,
            "GROUPSVC_KIND": proposal.kind.name,
            "GROUPSVC_PHASE": str(proposal.phase),
            "GROUPSVC_PROPOSAL": proposal.id,
        }
        process = subprocess.Popen(
            ["/bin/sh", "-c", self._command], stdin=subprocess.PIPE, stdout=sys.stderr, env=environment, text=True,
            start_new_session=True,
        )  # fmt: skip
        try:
            process.communicate(json.dumps(proposal_object(proposal)), max(proposal.deadline - clock.now(), 0.0))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # it, and what it has started; nobody waits for its vote any more
            process.wait()
            return None
        return process.returncode


def _cast(proposal: Proposal, vote: Vote) -> None:
    try:
        proposal.vote(vote)
    except GroupServiceError as error:  # too late, or voted already
        _say(str(error))


def _say(text: str) -> None:
    print(one_line(f"groupsvc: {text}"), file=sys.stderr, flush=True)
