"""The man pages of ``groupsvc``, made from the same text as its --help: one of it all, and one of each command."""

from __future__ import annotations

import re

from .. import __version__
from ..addresses import SYSTEM_SOCKET
from .checks.configuration import USUAL_FILE
from .command_tree import Argument, Command, Option
from .exit_codes import EXIT_CODES_TEXT
from .roff import bold, escaped, italic, item, marked, preformatted, prose, section, title

SECTION = 1

_ENVIRONMENT = {
    "GROUPSVC_ADDRESS": "Where the daemon is, if --address does not say it: `ipc://PATH`, or `tcp://HOST:PORT` on"
    " another machine.",
    "GROUPSVC_KEYS": "The key file for a daemon on another machine, if --keys does not say it.",
    "GROUPSVC_CONFIG": "The configuration of the daemon, for `groupsvc doctor`.",
    "NO_COLOR": "If it is set, nothing is coloured.",
}


def pages(program: Command) -> dict[str, str]:
    """The text of each, by the name of its file."""
    found = {f"groupsvc.{SECTION}": _overview(program)}
    for command in program.commands:
        found[f"{_page(command)}.{SECTION}"] = _of_command(command)
    return found


def _page(command: Command) -> str:
    return "-".join(("groupsvc", *command.words))


def _overview(program: Command) -> str:
    lines = [*title("groupsvc", SECTION, f"groupsvc {__version__}")]
    lines += [*section("Name"), rf"groupsvc \- {escaped(_lowered(program.description))}"]
    lines += [*section("Synopsis"), f"{bold('groupsvc')} {italic('COMMAND')} [{italic('options')}]"]
    lines += [*section("Description"), *prose(program.description), ".PP"]
    lines += [marked("`groupsvc` asks and operates the daemon of a node, `groupsvcd`. Answers go to standard output,"
                     " everything else to standard error.")]  # fmt: skip
    lines += section("Commands")
    for command in program.commands:
        lines += item(f"{bold(_page(command))}({SECTION})", [marked(_sentence(command.help))])
    lines += section("Options")
    for option in program.options:
        lines += item(_head(option), [marked(_sentence(option.help))])
    lines += exit_status(EXIT_CODES_TEXT)
    lines += section("Environment")
    for name, text in _ENVIRONMENT.items():
        lines += item(bold(name), [marked(text)])
    lines += section("Files")
    lines += item(bold(str(SYSTEM_SOCKET)), ["The socket of the daemon of this machine."])
    lines += item(bold(str(USUAL_FILE)), ["Its configuration."])
    lines += see_also([("groupsvcd", 8), ("groupsvcd.toml", 5), *((_page(one), SECTION) for one in program.commands)])
    return "\n".join(lines) + "\n"


def _of_command(command: Command) -> str:
    lines = [*title(_page(command), SECTION, f"groupsvc {__version__}")]
    lines += [*section("Name"), rf"{escaped(_page(command))} \- {marked(command.help)}", *section("Synopsis")]
    for place, one in enumerate(one for one in command.all() if not one.commands):
        lines += ([".br"] if place else []) + [usage_line(one.usage)]
    lines += [*section("Description"), *prose(command.description)]
    for one in command.all():
        lines += _options_of(one, is_whole=one is command)
    example = example_of(command.epilog)
    if example:
        lines += [*section("Examples"), *preformatted(example)]
    lines += [*section("Exit status"), marked("As listed in `groupsvc`(1).")]
    lines += see_also([("groupsvc", 1), ("groupsvcd", 8)])
    return "\n".join(lines) + "\n"


def _options_of(command: Command, *, is_whole: bool) -> list[str]:
    if not command.arguments and not command.options:
        return []
    lines = section("Options") if is_whole else [f'.SS "{escaped(command.name)}"', marked(_sentence(command.help))]
    for argument in command.arguments:
        if argument.help or argument.choices:
            lines += item(italic(argument.name), [marked(_explained(argument))])
    for option in command.options:
        lines += item(_head(option), [marked(_explained(option))])
    return lines


# --- What the page of the daemon needs as well ---------------------------------------------------------------


def option_items(command: Command) -> list[str]:
    """All options, as a list."""
    return [line for option in command.options for line in item(_head(option), [marked(_explained(option))])]


def exit_status(text: str) -> list[str]:
    """The exit codes, as a list; ``text`` has a heading and a line for each."""
    lines = section("Exit status")
    for code, meaning in re.findall(r"^\s+(\d+)\s+(.+)$", text, flags=re.MULTILINE):
        lines += item(bold(code), [marked(_sentence(meaning))])
    return lines


def see_also(others: list[tuple[str, int]]) -> list[str]:
    """The last section of a page."""
    told = [f"{bold(name)}({number})" + ("," if place < len(others) - 1 else "")
            for place, (name, number) in enumerate(others)]  # fmt: skip
    return [*section("See also"), *told]


def example_of(epilog: str) -> str:
    """The lines under "example:"."""
    found = re.search(r"example:\n((?:  .*\n?)+)", epilog)
    return found.group(1) if found else ""


def _head(option: Option) -> str:
    value = f" {italic(option.value)}" if option.value else ""
    return ", ".join(f"{bold(flag)}{value}" for flag in option.flags)


def _explained(one: Option | Argument) -> str:
    return _sentence(one.help) if one.help else f"One of {', '.join(one.choices)}."


def usage_line(usage: str) -> str:
    """What is typed as it stands at the beginning in bold: the program, and its command."""
    match = re.match(r"groupsvcd?(?: [a-z][a-z-]*)*", usage)
    typed = match.group() if match else ""
    return f"{bold(typed)}{escaped(usage[len(typed) :])}"


def _sentence(text: str) -> str:
    """Begins large and ends with a full stop."""
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:].rstrip(".")
