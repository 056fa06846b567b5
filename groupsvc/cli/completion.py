"""``groupsvc completion SHELL``: a script with which bash, zsh or fish complete what is typed.

It is made from the parsers of the commands, so it proposes what they take. Which groups and nodes there are is asked of
the daemon while somebody types: once, for a short time, and without a word if it does not answer.

bash and zsh share their tables: functions with one ``case`` each, in the part of the language that both speak. fish
takes a list of rules.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ..drivers.connection import DaemonConnection
from ..errors import GroupServiceError
from .command_tree import Argument, Command, Option, tree_of
from .exit_codes import EXIT_CODES_TEXT, ExitCode
from .options import reaching_arguments

if TYPE_CHECKING:
    from .options import Commands

ASKING_S = 1.0
"""Somebody has pressed a key and waits; after this nothing is proposed."""

KINDS = {"GROUP": "groups", "NODE": "nodes", "FILE": "files", "DIR": "directories"}
"""What an argument is called, and what it is completed with. Groups and nodes are asked for."""

_DESCRIPTION = """\
Print a script that lets a shell complete commands, options, and the names of groups and nodes:

  bash   source <(groupsvc completion bash)        in ~/.bashrc
  zsh    source <(groupsvc completion zsh)         in ~/.zshrc, behind compinit
  fish   groupsvc completion fish | source         in ~/.config/fish/config.fish

For all users: write it to /usr/share/bash-completion/completions/groupsvc, /usr/share/zsh/site-functions/_groupsvc, or
/usr/share/fish/vendor_completions.d/groupsvc.fish."""


def add(commands: Commands, whole: Callable[[], argparse.ArgumentParser]) -> None:
    """Add the parser of this command; ``whole`` is that of all."""
    parser = commands.add_parser(
        "completion", help="print a script that lets bash, zsh or fish complete groupsvc", description=_DESCRIPTION,
        epilog=f"example:\n  groupsvc completion bash > /usr/share/bash-completion/completions/groupsvc\n\n"
        f"{EXIT_CODES_TEXT}", formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument(
        "shell", choices=tuple(SCRIPTS), metavar="SHELL", help=f"one of {', '.join(SCRIPTS)}", nargs="?"
    )
    # Asked by the scripts.
    parser.add_argument("--words", choices=("groups", "nodes", "options"), help=argparse.SUPPRESS)
    reaching_arguments(parser)

    def completion(options: argparse.Namespace) -> ExitCode:
        if options.words:
            print("\n".join(words(options)))
            return ExitCode.OK
        if options.shell is None:
            parser.error(f"SHELL is missing: one of {', '.join(SCRIPTS)}")
        print(SCRIPTS[options.shell](tree_of(whole())), end="")
        return ExitCode.OK

    parser.set_defaults(command=completion)


def words(options: argparse.Namespace) -> list[str]:
    """The names of all groups, nodes or options; none if nobody answers in time."""
    try:
        if options.words == "nodes":
            with DaemonConnection(options.address, ASKING_S, client="groupsvc", keys=options.keys) as connection:
                return sorted(node.name for node in connection.status().nodes)
        if options.words == "options":
            with DaemonConnection(options.address, ASKING_S, client="groupsvc", keys=options.keys) as connection:
                return sorted(line.key for line in connection.options().options)
        from .. import connect

        with connect(
            options.address, name="groupsvc-cli", keys=options.keys, timeout=ASKING_S, default_timeout=ASKING_S
        ) as session:
            return sorted(group.name for group in session.groups())
    except (GroupServiceError, OSError):
        return []


# --- What both bash and zsh read -----------------------------------------------------------------------------


def _tables(program: Command) -> str:
    """Functions of the command that was typed so far; what is proposed is printed, one word a line."""
    commands = list(program.all())
    below = {one.name: " ".join(sub.words[-1] for sub in one.commands) for one in commands if one.commands}
    options = {one.name: " ".join(flag for option in one.options for flag in option.flags) for one in commands}
    values = {
        f"{one.name}:{flag}": _proposed(option) for one in commands for option in one.options if option.value
        for flag in option.flags
    }  # fmt: skip
    arguments = {
        f"{one.name}:{'*' if argument.repeats else place}": _proposed(argument)
        for one in commands
        for place, argument in enumerate(one.arguments)
    }
    running = {one.name: "yes" for one in commands if one.runs}
    tables = (
        ("commands", below), ("options", options), ("values", values), ("arguments", arguments), ("runs", running),
    )  # fmt: skip
    return "\n".join(_table(name, content) for name, content in tables)


def _proposed(one: Option | Argument) -> str:
    """Words, or with an @ before it a kind of them."""
    if one.choices:
        return " ".join(one.choices)
    name = one.value if isinstance(one, Option) else one.name
    if name == "KEY" and isinstance(one, Argument):  # of `groupsvc config`; as a value of an option it is a public key
        return "@options"
    return f"@{KINDS.get(name, 'nothing')}"


def _table(name: str, content: dict[str, str]) -> str:
    cases = "\n".join(
        f"    {_pattern(key)}) printf '%s\n' {shlex.quote(text)} ;;" for key, text in content.items() if text
    )
    return f'_groupsvc_{name}() {{\n  case "$1" in\n{cases}\n  esac\n}}\n'


def _pattern(key: str) -> str:
    if key.endswith(":*"):  # at this place and all that follow
        return shlex.quote(key[:-1]) + "*"
    return shlex.quote(key) if key else "''"


_LOOK = r"""
# Sets command (the words of it), place (how many arguments stand before), before (an option that waits for its value)
# and behind (whether what is typed is part of another command), from the words that are there already.
_groupsvc_look() {
  command='' place=0 before='' behind=0
  local word below
  for word in "$@"; do
    if [ "$behind" != 0 ]; then behind=$((behind + 1)); continue; fi
    if [ -n "$before" ]; then before=''; continue; fi
    if [ "$word" = -- ] && [ -n "$(_groupsvc_runs "$command")" ]; then behind=1; continue; fi
    case "$word" in
      --*=*) ;;
      -*) if [ -n "$(_groupsvc_values "$command:$word")" ]; then before="$word"; fi ;;
      *)
        below=" $(_groupsvc_commands "$command") "
        case "$below" in
          *" $word "*) command="${command:+$command }$word" place=0 ;;
          *) place=$((place + 1)) ;;
        esac ;;
    esac
  done
}

# What may come next: words, or with an @ before it a kind of them.
_groupsvc_next() {
  local current="$1" found
  if [ -n "$before" ]; then _groupsvc_values "$command:$before"; return; fi
  case "$current" in
    --*=*) _groupsvc_values "$command:${current%%=*}"; return ;;
    -*) _groupsvc_options "$command"; return ;;
  esac
  found="$(_groupsvc_commands "$command")"
  if [ -z "$found" ]; then found="$(_groupsvc_arguments "$command:$place")"; fi
  if [ -z "$found" ] || [ "$found" = @nothing ]; then found="$(_groupsvc_options "$command")"; fi
  printf '%s\n' "$found"
}

# Asks the daemon; which one may stand in the line.
_groupsvc_ask() {
  local kind="$1" line="$2" address=''
  case "$line" in
    *--address[=\ ]*) address="${line#*--address}"; address="${address#[=\ ]}"; address="${address%% *}" ;;
  esac
  if [ -n "$address" ]; then
    command groupsvc completion --words "$kind" --address "$address" 2>/dev/null
  else
    command groupsvc completion --words "$kind" 2>/dev/null
  fi
}
"""

_BASH = r"""
_groupsvc() {
  local command place before behind current found typed line="${COMP_LINE:0:COMP_POINT}"
  read -ra typed <<<"$line"  # and not COMP_WORDS, which cuts addresses into pieces
  case "$line" in
    *' ') typed+=('') ;;
  esac
  current="${typed[${#typed[@]}-1]}"
  _groupsvc_look "${typed[@]:1:${#typed[@]}-2}"
  COMPREPLY=()
  if [ "$behind" = 1 ]; then
    mapfile -t COMPREPLY < <(compgen -c -- "$current")
    return
  elif [ "$behind" != 0 ]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    return
  fi
  found="$(_groupsvc_next "$current")"
  case "$current" in
    --*=*) current="${current#*=}" ;;
  esac
  case "$found" in
    @files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    @directories) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
    @nothing) ;;
    @*) mapfile -t COMPREPLY < <(compgen -W "$(_groupsvc_ask "${found#@}" "$line")" -- "$current") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$found" -- "$current") ;;
  esac
}
complete -F _groupsvc groupsvc
"""

_ZSH = r"""
_groupsvc() {
  local command place before behind current="${words[CURRENT]}" found
  _groupsvc_look "${(@)words[2,CURRENT-1]}"
  if [ "$behind" = 1 ]; then
    _command_names -e
    return
  elif [ "$behind" != 0 ]; then
    _files
    return
  fi
  found="$(_groupsvc_next "$current")"
  case "$current" in
    --*=*) compset -P '*=' ;;
  esac
  case "$found" in
    @files) _files ;;
    @directories) _files -/ ;;
    @nothing) ;;
    @*) compadd -- ${(f)"$(_groupsvc_ask "${found#@}" "$BUFFER")"} ;;
    *) compadd -- ${(s: :)found} ;;
  esac
}
if [ "$funcstack[1]" = _groupsvc ]; then
  _groupsvc "$@"
else
  compdef _groupsvc groupsvc
fi
"""


def bash(program: Command) -> str:
    """For bash, with or without its package of completions."""
    return f"# Completion of groupsvc for bash, made by `groupsvc completion bash`.\n{_tables(program)}{_LOOK}{_BASH}"


def zsh(program: Command) -> str:
    """For zsh, sourced or as a file of its function path."""
    return (
        "#compdef groupsvc\n# Completion of groupsvc for zsh, made by `groupsvc completion zsh`.\n"
        f"{_tables(program)}{_LOOK}{_ZSH}"
    )


# --- fish ----------------------------------------------------------------------------------------------------


def fish(program: Command) -> str:
    """For fish: one rule for each command, option and argument."""
    lines = ["# Completion of groupsvc for fish, made by `groupsvc completion fish`.", "complete -c groupsvc -f"]
    for command in program.all():
        lines += _fish_rules(command)
    return "\n".join(lines) + "\n"


def _fish_rules(command: Command) -> Iterable[str]:
    seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in command.words)
    for below in command.commands:
        names = " ".join(one.words[-1] for one in command.commands)
        not_yet = f"not __fish_seen_subcommand_from {names}"
        where = f"{seen}; and {not_yet}" if seen else not_yet
        yield f"complete -c groupsvc -n {_fish(where)} -a {below.words[-1]} -d {_fish(below.help)}"
    where = f" -n {_fish(seen)}" if seen else ""
    for option in command.options:
        flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
        takes = f" -r{_fish_values(option)}" if option.value else ""
        yield f"complete -c groupsvc{where} {flags}{takes} -d {_fish(option.help)}"
    for argument in command.arguments:
        values = _fish_values(argument)
        if values:
            yield f"complete -c groupsvc{where}{values}"


def _fish_values(one: Option | Argument) -> str:
    found = _proposed(one)
    if found == "@nothing":
        return ""
    if found in ("@files", "@directories"):
        return " -F" if isinstance(one, Option) else ""
    if found.startswith("@"):
        return f" -a '(command groupsvc completion --words {found[1:]} 2>/dev/null)'"
    return f" -a {_fish(found)}"


def _fish(text: str) -> str:
    """In quotes, as fish reads them."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SCRIPTS: dict[str, Callable[[Command], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
