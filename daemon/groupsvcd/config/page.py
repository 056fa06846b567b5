"""The reference page of all options, made from the example configuration and from the code.

What an option means is written once, in the example that operators start from; its type, its variable and whose
business it is are in ``options``. A test compares the page with both. To write it anew::

    python -m groupsvcd.config.page daemon/config/groupsvcd.example.toml > docs/reference/configuration.md
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from .acquired import kind_of
from .options import OPTIONS, environment_name
from .values import words_for

BEGINNING = """\
# Configuration

<!-- Made by `python -m groupsvcd.config.page`; the words are those of daemon/config/groupsvcd.example.toml. -->

A value comes from the first of these that says something:

1. the **environment** of the daemon,
2. the **domain**, for the options that it may decide: `groupsvc config set log_level debug` at any node, and every
   daemon does so at once, without a restart; one that is down does so from when it starts again. `groupsvc config
   unset` leaves an option to each node,
3. the **file**,
4. the **default**.

What the domain has decided is in the state directory of each node, and so in force from the start, before the node is
let in. Without a state directory it is in force when the node is in. What is overruled is said in the log, and
`groupsvc config list` shows all options of a daemon and where each value comes from.

An option that is *the same on all nodes* is compared when nodes meet: who differs is not let in, and its log names
every difference, in both values, with the line to correct. To change one, change it on all nodes and start them all
again. The line `ready` in the log of a daemon has a digest of them, `essentials=`.

## The file
"""

WHOSE = {
    "essential": "the same on all nodes",
    "domain": "the domain may decide it (`groupsvc config set`)",
    "node": "each node's own",
}

_section = re.compile(r"# --- (.+?) -+")
_option = re.compile(r"#([a-z][a-z0-9_]*) = (.+)")
_table = re.compile(r"#?\[([a-z_]+)\]")


def page(example: str) -> str:
    """The whole page."""
    return "\n".join([BEGINNING, *_body(example)]).rstrip() + "\n"


def _body(example: str) -> Iterator[str]:
    blocks = [block.splitlines() for block in example.strip().split("\n\n")]
    table = ""
    for lines in blocks:
        section = _section.fullmatch(lines[0])
        if section is not None:
            table = ""
            yield f"## {section.group(1)}\n"
            continue
        heads = [found.group(1) for line in lines if (found := _table.fullmatch(line))]
        options = [line[1:] for line in lines if _option.fullmatch(line)]
        text = [
            line for line in lines if line.startswith("#") and not _option.fullmatch(line) and not _table.match(line)
        ]
        if heads and options:
            yield from _entry([heads[0]], [f"[{heads[0]}]", *options], text)
        elif options:
            names = [option.partition(" = ")[0] for option in options]
            yield from _entry([f"{table}.{name}" if table else name for name in names], options, text)
        else:
            yield from _paragraphs(text)
        table = heads[0] if heads and not options else table


def _entry(keys: Sequence[str], lines: Sequence[str], text: Sequence[str]) -> Iterator[str]:
    """One option, or some that are explained together; a free table is one."""
    yield f"### {', '.join(keys)}\n"
    yield "```toml\n" + "\n".join(lines) + "\n```\n"
    variables = ", ".join(f"`{environment_name(key)}`" for key in keys)
    kind = words_for(OPTIONS[keys[0]]) if keys[0] in OPTIONS else "a table"
    yield f"{variables} · {kind} · {WHOSE[kind_of(keys[0])]}\n"
    yield from _paragraphs(text)


def _paragraphs(lines: Sequence[str]) -> Iterator[str]:
    """Comments as text; what is indented in them stands as it is."""
    gathered: list[str] = []
    literal = False
    for line in [*lines, "#"]:
        content = line.removeprefix("#").removeprefix(" ")
        if not content.strip() or content.startswith("  ") != literal:
            if gathered:
                yield ("```\n" + "\n".join(gathered) + "\n```" if literal else "\n".join(gathered)) + "\n"
            gathered = []
            literal = content.startswith("  ")
        if content.strip():
            gathered.append(content.strip() if literal else content)


def main() -> None:
    """Print the page of the example that is named."""
    print(page(Path(sys.argv[1]).read_text(encoding="utf-8")), end="")


if __name__ == "__main__":
    main()
