"""``groupsvc doctor``: looks at everything that is wrong with installations most often, and says what to do about it.

First the files of this machine, then the daemon, then what all nodes say of one another. Each check says OK, WARN or
FAIL. With a daemon that is down it says what can be said without, which is most often why it is down.

Nothing is changed, and nothing depends on the answers: it can be run at any time, also on a domain that is at work.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..addresses import ADDRESS_VARIABLE, IPC, checked_address, default_address
from ..drivers.connection import DaemonConnection
from ..errors import DaemonUnreachable, Failed, GroupServiceError
from ..wire.client_messages import Status
from ..wire.survey_messages import NodeFindings
from ..wire.table_lines import OptionLine
from .advice import explained
from .checks import configuration, domain, files
from .checks.configuration import Judged
from .checks.findings import Finding, Level, fail, warn
from .colours import Paint, Style, colour_argument, paint_for
from .exit_codes import ExitCode
from .options import asking
from .tables import one_line

if TYPE_CHECKING:
    from .options import Commands

_STYLES: dict[Level, Style] = {Level.OK: "good", Level.WARN: "doubtful", Level.FAIL: "bad"}


def add(commands: Commands) -> None:
    """Add the parser of this command."""
    doctor = asking(
        commands, "doctor", _doctor, help="look whether all is well with the daemon, its files and its domain, and say"
        " what to do", example="groupsvc doctor --config /etc/groupsvc/groupsvcd.toml",
    )  # fmt: skip
    doctor.add_argument(
        "--config", metavar="FILE",
        help=f"configuration of the daemon (default: {configuration.CONFIG_VARIABLE}, else {configuration.USUAL_FILE},"
        " else the one that the daemon has read)",
    )  # fmt: skip
    colour_argument(doctor)


def _doctor(options: argparse.Namespace) -> ExitCode:
    found = examine(options)
    is_well = not any(one.level is Level.FAIL for one in found)
    if options.json:
        print(json.dumps({"healthy": is_well, "findings": [one.as_object() for one in found]}, indent=2))
    else:
        print("\n".join(lines_of(found, paint_for(options.color, sys.stdout))))
    return ExitCode.OK if is_well else ExitCode.UNHEALTHY


def examine(options: argparse.Namespace) -> list[Finding]:
    """All checks, in the order in which one would mend what they find."""
    given = options.address
    if given is not None:
        checked_address(given)
    is_here = given is None or given.startswith(IPC)
    file = configuration.file_of(options.config)
    judged, found = configuration.judge(file) if file else (Judged(""), [])
    address = _address(given, judged, is_named=bool(file))
    status, nodes, of_daemon, lines = _ask(address, options)
    if not file and is_here:
        file = configuration.file_read_by(lines)
        judged, found = configuration.judge(file) if file else (Judged(""), configuration.not_looked_at(lines))
    found += configuration.look_at_keys(judged)
    found += files.look_at_socket(address)
    stranger = _another(judged, status)
    if stranger:
        advice = "name the file of that daemon with --config, or the daemon of this file with --address"
        text = f"the file is that of {judged.text('node')}, and the daemon at {address} is {stranger}"
        found.append(warn(domain.DAEMON, text, advice))
    if file:
        if not stranger:  # who has the state of this file, nobody has asked
            found += files.look_at_state(judged, runs=_is_of(judged, status))
        found += files.look_at_disk(judged)
        found += files.look_at_descriptors(
            judged, nodes=max(len(status.nodes) - 1 if status else 0, len(_voters(judged)))
        )
    found += of_daemon
    if status is not None:
        found += domain.look_at_status(status)
        found += domain.look_at_survey(nodes, domain.who_should_answer(status))
    if is_here:
        found += domain.look_at_ports(_others(judged, status))
    return found


def _address(given: str | None, judged: Judged, *, is_named: bool) -> str:
    """Of the daemon: as in all commands, but that a configuration tells it better than a guess."""
    if given is not None:
        return given
    if not os.environ.get(ADDRESS_VARIABLE) and is_named and judged.text("client_address"):
        return judged.text("client_address")
    return default_address()


def _ask(
    address: str, options: argparse.Namespace
) -> tuple[Status | None, Sequence[NodeFindings], list[Finding], Sequence[OptionLine]]:
    """The status of the daemon, what all nodes say, what went wrong with asking, and the options of the daemon."""
    status: Status | None = None
    lines: Sequence[OptionLine] = ()
    try:
        with DaemonConnection(address, options.timeout, client="groupsvc", keys=options.keys) as connection:
            status = connection.status()
            lines = connection.options().options
            survey = connection.survey()
    except DaemonUnreachable as error:
        return status, (), [fail(domain.DAEMON, explained(error, options))], lines
    except Failed as error:
        return status, (), [warn(domain.REACH, explained(error, options), "run it again")], lines
    except GroupServiceError as error:
        advice = "" if status is None else "it may be of another version: it does not know this question"
        return status, (), [fail(domain.DAEMON, explained(error, options), advice)], lines
    left_out = [warn(domain.NODES, f"{survey.left_out} nodes were not asked: there are too many at once")]
    return status, survey.nodes, left_out if survey.left_out else [], lines


def _is_of(judged: Judged, status: Status | None) -> bool:
    """Whether the daemon that answered is the one of this configuration."""
    return status is not None and status.node == judged.text("node")


def _another(judged: Judged, status: Status | None) -> str:
    """The node of the daemon that answered, if the configuration names another one; else ""."""
    named = judged.text("node")
    return status.node if status is not None and named and status.node != named else ""


def _voters(judged: Judged) -> dict[str, str]:
    found: dict[str, str] = dict((judged.content or {}).get("voters") or {})
    found.pop(judged.text("node"), None)
    return found


def _others(judged: Judged, status: Status | None) -> dict[str, str]:
    """The other nodes that should be reachable from here: the voters, and whoever is up."""
    found = _voters(judged)
    if status is not None:
        found |= {one.name: one.address for one in status.nodes if one.address and (one.status == "up" or one.voter)}
        found.pop(status.node, None)
    return found


def lines_of(found: Iterable[Finding], paint: Paint) -> list[str]:
    """A line for each finding, what to do below it, and how many of each there are."""
    all_of_them = list(found)
    width = max((len(one.check) for one in all_of_them), default=0)
    lines = []
    for one in all_of_them:
        level = paint(f"{one.level.value:4}", _STYLES[one.level])
        lines.append(f"{level}  {one.check:{width}}  {one_line(one.text)}")
        if one.advice:
            lines.append(f"{'':4}  {'':{width}}  {paint(one_line('-> ' + one.advice), 'strong')}")
    counts = Counter(one.level for one in all_of_them)
    lines.append(", ".join(f"{counts[level]} {level.value}" for level in Level))
    return lines
