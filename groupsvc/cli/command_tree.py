"""All commands with their options and arguments, read from the parsers: completion and man pages are made from it.

So what a shell proposes and what a page explains is what the command takes, and nobody has to write it twice.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import attrs


@attrs.frozen
class Option:
    """One option; ``value`` is what its value is called, "" if it has none."""

    flags: tuple[str, ...]
    value: str
    choices: tuple[str, ...]
    help: str


@attrs.frozen
class Argument:
    """What is given by its place."""

    name: str
    choices: tuple[str, ...]
    help: str
    is_optional: bool
    repeats: bool


@attrs.frozen
class Command:
    """A command, by the words that call it (none: the program itself); ``runs``: another command stands behind --."""

    words: tuple[str, ...]
    help: str
    usage: str
    description: str
    epilog: str
    options: tuple[Option, ...]
    arguments: tuple[Argument, ...]
    commands: tuple[Command, ...]
    runs: bool

    @property
    def name(self) -> str:
        """As it is typed, without the program."""
        return " ".join(self.words)

    def all(self) -> Iterator[Command]:
        """This one, and all below it."""
        yield self
        for command in self.commands:
            yield from command.all()


def commands_below(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """By name; empty if this parser has none."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def tree_of(parser: argparse.ArgumentParser, words: tuple[str, ...] = (), help: str = "") -> Command:
    """Everything that this parser takes."""
    options, arguments, commands = [], [], []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            said = {one.dest: one.help or "" for one in action._choices_actions}
            commands = [
                tree_of(below, (*words, name), _text(said[name]))
                for name, below in action.choices.items()
                if name in said  # others are second names
            ]
        elif action.help is argparse.SUPPRESS:
            continue
        elif action.option_strings:
            options.append(_option(action, parser))
        else:
            arguments.append(_argument(action, parser))
    return Command(
        words, help, _usage(parser), parser.description or "", parser.epilog or "", tuple(options), tuple(arguments),
        tuple(commands), runs=parser.get_default("runs") is not None,
    )  # fmt: skip


def _option(action: argparse.Action, parser: argparse.ArgumentParser) -> Option:
    value = "" if action.nargs == 0 else _name(action)
    return Option(tuple(action.option_strings), value, _choices(action), _text(_help(action, parser)))


def _argument(action: argparse.Action, parser: argparse.ArgumentParser) -> Argument:
    return Argument(
        _name(action), _choices(action), _text(_help(action, parser)),
        is_optional=action.nargs in ("?", "*"), repeats=action.nargs in ("*", "+"),
    )  # fmt: skip


def _name(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    choices = _choices(action)
    return "|".join(choices) if choices else action.dest.upper().replace("_", "-")


def _choices(action: argparse.Action) -> tuple[str, ...]:
    return tuple(str(one) for one in action.choices or ())


def _help(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    if not action.help:
        return ""
    return (
        action.help % {**vars(action), "prog": parser.prog} if "%(" in action.help else action.help.replace("%%", "%")
    )


def _text(text: str) -> str:
    return " ".join(text.split())


def _usage(parser: argparse.ArgumentParser) -> str:
    """In one line."""
    return " ".join(parser.format_usage().removeprefix("usage: ").split())
