"""All man pages, of ``groupsvc``, ``groupsvcd`` and its configuration: ``python -m groupsvcd.man OUTDIR``.

The pages of commands are made from the text of their --help, that of the configuration from the example that is
shipped, in which every option stands with its meaning and its default. So there is one text of each.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from groupsvc import __version__
from groupsvc.cli import man
from groupsvc.cli.checks.configuration import USUAL_FILE
from groupsvc.cli.command_tree import tree_of
from groupsvc.cli.main import whole_parser
from groupsvc.cli.roff import bold, escaped, italic, item, marked, preformatted, prose, section, subsection, title

from .command_line import parser

EXAMPLE = Path(__file__).parents[1] / "config" / "groupsvcd.example.toml"
SOURCE = f"groupsvc {__version__}"


def pages(example: Path = EXAMPLE) -> dict[str, str]:
    """The text of each, by the name of its file."""
    return {
        **man.pages(tree_of(whole_parser())),
        "groupsvcd.8": _daemon(),
        "groupsvcd.toml.5": _configuration(example.read_text(encoding="utf-8")),
    }


def write(directory: Path, example: Path = EXAMPLE) -> list[Path]:
    """Write them all, as ``directory/man1/groupsvc.1`` and so on."""
    found = []
    for name, text in pages(example).items():
        path = directory / f"man{name[-1]}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
        found.append(path)
    return found


def _daemon() -> str:
    command = tree_of(parser())
    about, _, codes = command.epilog.partition("Exit codes: ")
    lines = [
        *title("groupsvcd", 8, SOURCE),
        *section("Name"),
        rf"groupsvcd \- {escaped('the groupsvc daemon of a node')}",
    ]
    lines += [*section("Synopsis"), man.usage_line(command.usage)]
    lines += [*section("Description"), *prose(f"{command.description} {about.strip()}")]
    lines += [*section("Options"), *man.option_items(command)]
    lines += man.exit_status("\n" + "\n".join(f"  {one}" for one in codes.rstrip(".").split(", ")))
    lines += [*section("Files"), *item(bold(str(USUAL_FILE)), [marked("The configuration: see `groupsvcd.toml`(5).")])]
    lines += man.see_also([("groupsvc", 1), ("groupsvc-doctor", 1), ("groupsvcd.toml", 5)])
    return "\n".join(lines) + "\n"


# --- The configuration ---------------------------------------------------------------------------------------


def _configuration(example: str) -> str:
    lines = [*title("groupsvcd.toml", 5, SOURCE), *section("Name")]
    lines += [rf"groupsvcd.toml \- {escaped('configuration of groupsvcd, the daemon of a node')}"]
    beginning, *parts = re.split(r"^# --- (.+?) -+$", example, flags=re.MULTILINE)
    lines += [*section("Description"), *_comments(beginning)]
    lines += section("Options")
    for name, part in zip(parts[::2], parts[1::2], strict=True):
        lines += [*subsection(name), *_part(part)]
    lines += man.see_also([("groupsvcd", 8), ("groupsvc-doctor", 1), ("groupsvc-keygen", 1)])
    return "\n".join(lines) + "\n"


_option = re.compile(r"#?([a-z0-9_]+) = (.+)")
_table = re.compile(r"#?\[([a-z_]+)\]")


def _part(text: str) -> list[str]:
    """Blocks with empty lines between them: a comment, and the options that it explains."""
    lines: list[str] = []
    table = ""
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        comment = "\n".join(
            line for line in block.splitlines() if line == "#" or line.startswith("# ") or line[:5] == "#    "
        )
        rest = [line for line in block.splitlines() if line not in comment.splitlines()]
        heads = []
        for line in rest:
            option, head = _option.fullmatch(line), _table.fullmatch(line)
            if head is not None:
                table = head.group(1)
                heads.append(bold(f"[{table}]"))
            elif option is not None:
                name = option.group(1)
                heads.append(rf"{bold(name)} = {italic(option.group(2))}")
        if not heads:
            lines += _comments(comment)
            continue
        lines += [line for place, head in enumerate(heads) for line in ([".TP"] if not place else [".TQ"]) + [head]]
        told = _comments(comment)
        lines += [".IP" if line == ".PP" and place else line for place, line in enumerate(told[1:], start=1)]
    return lines


def _comments(text: str) -> list[str]:
    """The words of a comment; what is indented in it, or begins a list, stays line by line."""
    found: list[str] = []
    plain: list[str] = []

    def flush() -> None:
        if plain:
            found.extend([".PP", marked(" ".join(plain))])
            plain.clear()

    example: list[str] = []
    for line in [*text.splitlines(), ""]:
        words = line.removeprefix("#").removeprefix(" ")
        if words.startswith("  ") and words.strip():
            flush()
            example.append(words)
            continue
        if example:
            found.extend(preformatted("\n".join(example)))
            example.clear()
        if words.strip():
            plain.append(words.strip())
        else:
            flush()
    return found


def main(arguments: list[str]) -> int:
    """Write the pages into the directory that is named."""
    if len(arguments) != 1:
        print("usage: python -m groupsvcd.man OUTDIR", file=sys.stderr)
        return 2
    for path in write(Path(arguments[0])):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
