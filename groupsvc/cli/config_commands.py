"""``groupsvc config``: the options of a daemon, and those that the whole domain decides.

``list`` shows what the daemon that is asked does, from its own memory: it answers also where no domain does. ``get`` of
one option and ``set`` speak of the domain as of now. An option is set over the version that was seen, so of two
operators who set it at once one is told so. What the domain says already is not said again: a script may repeat itself.
"""

from __future__ import annotations

import argparse
import difflib
import json
from typing import TYPE_CHECKING, Any

import msgspec

from ..drivers.connection import DaemonConnection
from ..errors import UsageError
from ..wire.client_messages import ConfigValue, OptionsAre
from ..wire.option_messages import OPTION_PREFIX
from ..wire.table_lines import OptionLine
from .exit_codes import ExitCode
from .options import asking, count, readable
from .tables import aligned, one_line

if TYPE_CHECKING:
    from .options import Commands

EXAMPLES = """example:
  groupsvc config list
  groupsvc config get log_level
  groupsvc config set log_level debug
  groupsvc config unset log_level"""

KINDS = {"essential": "same on all nodes", "domain": "the domain may decide", "node": "each node's own"}


def add(commands: Commands) -> None:
    """Add the parsers of this family."""
    config = commands.add_parser(
        "config", help="the options of a daemon, and those that the domain decides",
        description="Show the options of a daemon and where each value comes from: the environment, the domain, the"
        " file or the default, the first of them that says something. Set those that the whole domain may decide; every"
        " daemon does so without a restart, and those that are down when they are started again.",
        epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    config.set_defaults(command=lambda options: _help(config))
    ways = config.add_subparsers(title="commands", metavar="COMMAND")
    asking(ways, "list", _list, help="every option of this daemon", example="groupsvc config list")
    get = asking(
        ways, "get", _get, help="one option, or all that the domain may decide", example="groupsvc config get log_level"
    )
    get.add_argument("key", type=readable, nargs="?", metavar="KEY", help="the option, as limits.clients_max")
    setting = asking(
        ways, "set", _set, help="decide an option for the whole domain", example="groupsvc config set log_level debug"
    )
    setting.add_argument("key", type=readable, metavar="KEY", help="the option, as limits.clients_max")
    setting.add_argument("value", type=readable, metavar="VALUE", help="what it is to be")
    unset = asking(
        ways, "unset", _unset, help="leave an option to each node's own configuration again",
        example="groupsvc config unset log_level",
    )  # fmt: skip
    unset.add_argument("key", type=readable, metavar="KEY", help="the option")
    for parser in (setting, unset):
        text = "only if it still has this version (default: the one that it has now)"
        parser.add_argument("--if-version", type=count, metavar="N", help=text)


def _help(parser: argparse.ArgumentParser) -> ExitCode:
    parser.print_help()
    return ExitCode.USAGE


# --- Looking --------------------------------------------------------------------------------------------


def _list(options: argparse.Namespace) -> ExitCode:
    with _connected(options) as connection:
        found = connection.options()
    _show(options, found, found.options)
    return ExitCode.OK


def _get(options: argparse.Namespace) -> ExitCode:
    with _connected(options) as connection:
        found = connection.options()
        if options.key is None:
            _show(options, found, tuple(line for line in found.options if line.kind == "domain"))
            return ExitCode.OK
        line = _line(found, options.key)
        if line.kind == "domain":
            now = connection.config_get(OPTION_PREFIX + line.key)
            line = msgspec.structs.replace(line, domain_value=now.value, version=now.version)
    if options.json:
        print(json.dumps({"node": found.node, **msgspec.structs.asdict(line)}, indent=2))
        return ExitCode.OK
    print(one_line(f"{line.key} = {line.value}  ({_source(line)})"))
    if line.domain_value and line.domain_value != line.value:
        print(one_line(f"the domain says {line.domain_value}, version {line.version}"))
    return ExitCode.OK


def _show(options: argparse.Namespace, found: OptionsAre, lines: tuple[OptionLine, ...]) -> None:
    if options.json:
        print(json.dumps({"node": found.node, "options": [msgspec.structs.asdict(line) for line in lines]}, indent=2))
        return
    rows = [["OPTION", "VALUE", "FROM", "WHOSE"]]
    rows += [[line.key, line.value or "-", _source(line), KINDS[line.kind]] for line in lines]
    print(f"options of {one_line(found.node)}:")
    print("\n".join(aligned(rows)))
    for line in lines:
        if line.domain_value and line.source != "domain":
            text = f"the domain says {line.key} = {line.domain_value}, version {line.version}; here it is {line.source}"
            print(one_line(text))


def _source(line: OptionLine) -> str:
    return f"domain, version {line.version}" if line.source == "domain" else line.source


def _line(found: OptionsAre, key: str) -> OptionLine:
    for line in found.options:
        if line.key == key:
            return line
    ends = [line.key for line in found.options if line.key.endswith(f".{key}")]
    close = ends or difflib.get_close_matches(key, [line.key for line in found.options], n=1)
    raise UsageError(f"there is no option {key}" + (f"; did you mean {close[0]}?" if close else ""))


# --- Deciding -------------------------------------------------------------------------------------------


def _set(options: argparse.Namespace) -> ExitCode:
    return _decide(options, options.value)


def _unset(options: argparse.Namespace) -> ExitCode:
    return _decide(options, "")


def _decide(options: argparse.Namespace, value: str) -> ExitCode:
    with _connected(options) as connection:
        line = _line(connection.options(), options.key)  # a daemon would name it as it is called on the wire
        decided = _decided(connection, line, value, options.if_version)
    said: dict[str, Any] = {"key": options.key, "value": decided.value, "version": decided.version}
    if options.json:
        print(json.dumps(said, indent=2))
    elif decided.value:
        print(one_line(f"the domain says {options.key} = {decided.value}, version {decided.version}"))
    else:
        print(one_line(f"the domain says nothing about {options.key}, version {decided.version}"))
    return ExitCode.OK


def _decided(connection: DaemonConnection, line: OptionLine, value: str, if_version: int | None) -> ConfigValue:
    key = OPTION_PREFIX + line.key
    if if_version is None:
        present = connection.config_get(key)
        is_said = present.value == value and (present.version or not value)
        if is_said and line.kind == "domain":  # what the domain cannot decide is refused, also when it says nothing
            return present
        if_version = present.version
    return connection.config_set(key, value, if_version=if_version)


def _connected(options: argparse.Namespace) -> DaemonConnection:
    return DaemonConnection(options.address, options.timeout, client="groupsvc", keys=options.keys)
