"""A guide as a program: its Python blocks in order, and what each of them prints according to the page.

The program has the lines of the page: what is no code becomes an empty line, so that the number in a traceback is the
line of the page. The line that closes a block prints a mark, by which the output is cut into pieces again.
"""

from __future__ import annotations

import re

import attrs

MARK = "\x1e"

_fenced = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@attrs.frozen
class Block:
    """One block of code: the line where it begins, and the text below it, which is what it prints."""

    line: int
    code: str
    prints: str


def blocks_of(page: str) -> list[Block]:
    """The Python blocks of a page; ``ValueError`` for output that stands below no code."""
    found: list[Block] = []
    end_of_code = -1
    for fence in _fenced.finditer(page):
        language, content = fence.groups()
        line = page.count("\n", 0, fence.start()) + 1
        if language == "python":
            found.append(Block(line, content, ""))
            end_of_code = fence.end()
        elif language == "text":
            if end_of_code < 0 or page[end_of_code : fence.start()].strip():
                raise ValueError(f"line {line}: this output stands below no code")
            found[-1] = attrs.evolve(found[-1], prints=content)
    return found


def program_of(blocks: list[Block]) -> str:
    """All blocks as one program with the line numbers of the page."""
    lines: list[str] = []
    for block in blocks:
        lines += [""] * (block.line - len(lines))
        lines += [*block.code.splitlines(), f"print({MARK!r}, flush=True)"]
    return "\n".join(lines) + "\n"
