"""The first part of the tutorial, played: two Python prompts, each a process, typed into line by line.

A block of the page that is marked ``<!-- terminal 1 -->`` is typed into the first one. What a line prints must be what
stands below it on the page, but for the numbers.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping

import attrs

TYPING_S = 0.2
"""A person is not faster, and so sees at one terminal what was done at the other."""

_MARK = "\x1e"
_block = re.compile(r"^<!-- terminal (\d) -->\n```(pycon|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@attrs.frozen
class Typed:
    """One statement or command: where, what, and what is said to come of it."""

    terminal: str
    is_python: bool
    text: str
    prints: str


def typed_on(page: str) -> Iterator[Typed]:
    """Everything that the page has its reader type, in order."""
    for terminal, language, content in _block.findall(page):
        yield from _statements(terminal, language == "pycon", content)


def _statements(terminal: str, is_python: bool, content: str) -> Iterator[Typed]:
    prompt, more = (">>> ", "... ") if is_python else ("$ ", "> ")
    text: list[str] = []
    prints: list[str] = []
    for line in [*content.splitlines(), prompt]:
        if line.startswith(prompt):
            if text:
                yield Typed(terminal, is_python, "\n".join(text), "\n".join(prints))
            text, prints = [line.removeprefix(prompt)], []
        elif line.startswith(more.rstrip()) and not prints:
            text.append(line.removeprefix(more.rstrip()).removeprefix(" "))
        else:
            prints.append(line)


def agrees(page: str, printed: str) -> bool:
    """Whether this is what the page says; numbers differ from run to run."""
    return _without_numbers(page) == _without_numbers(printed)


def _without_numbers(text: str) -> str:
    return re.sub(r"\d+", "#", text).strip()


class Prompt:
    """A Python at whose prompt one types; a context manager."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-iqu", "-c", "import sys; sys.ps1 = sys.ps2 = ''"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**environment, "PYTHONSTARTUP": "", "PYTHON_BASIC_REPL": "1"},
        )

    def type(self, text: str) -> str:
        """What it prints, until the prompt comes back or the process is gone."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        time.sleep(TYPING_S)
        ends = "\n\n" if "\n" in text else "\n"
        self._process.stdin.write(f"{text}{ends}print({_MARK!r})\n")
        self._process.stdin.flush()
        printed: list[str] = []
        for line in self._process.stdout:
            if line.rstrip("\n") == _MARK:
                break
            printed.append(line)
        return "".join(printed)

    def wait(self) -> int:
        """How it ended."""
        return self._process.wait(timeout=20)

    def __enter__(self) -> Prompt:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue
