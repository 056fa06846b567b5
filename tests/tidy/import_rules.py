"""Who may import whom, read from the source and not from what happens to be loaded.

The order is ``groupsvc.wire`` <- ``groupsvcd.core`` <- ``groupsvcd.io`` <- ``groupsvcd.__main__``. What makes
the simulator's word worth something is that the engine cannot reach a socket, a clock or a disk even by
accident, so the rule for ``core`` (and for the wire below it) is a list of what *may* be imported. An unknown
module is refused until somebody argues for it here.

The client library has the same: ``groupsvc.sansio`` is pure, and ``groupsvc.drivers`` is what touches the machine.

``problems_in`` is a function of source text, so that the tests can feed it violations.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import attrs

VALUE_MODULES = frozenset(
    {
        "__future__", "bisect", "collections", "dataclasses", "enum", "functools", "heapq", "itertools",
        "math", "operator", "random", "struct", "typing", "zlib",
    }
)  # fmt: skip
"""Modules of the standard library that hold values and functions of values; nothing in them waits, reads
a clock or touches the machine (``random`` does when used as a module, which is checked apart)."""

CLIENT_VALUES = tuple(
    f"groupsvc.{name}"
    for name in (
        "attributes",
        "errors",
        "events",
        "machines",
        "positions",
        "session_states",
        "views",
        "voting",
        "voting_words",
    )
)
"""What both the machine of a session and its users speak of."""

IMPURE_CALLS = {
    "print": "prints",
    "input": "reads the terminal",
    "open": "opens a file",
    "eval": "runs text as code",
    "exec": "runs text as code",
    "__import__": "imports behind the back of this test",
    "breakpoint": "stops for a debugger",
    "hash": "differs from run to run (PYTHONHASHSEED)",
    "id": "differs from run to run (addresses)",
}
"""Built-in functions the engine must not call, and why."""

UNSAFE_MODULES = frozenset({"pickle", "marshal", "shelve", "dill", "cloudpickle"})
"""Decoders that run what they read. Not in the product, anywhere."""


@attrs.frozen
class Import:
    """One imported thing: ``from base import name``, or ``import base`` with an empty name."""

    line: int
    base: str
    name: str = ""

    @property
    def readings(self) -> tuple[str, ...]:
        """The modules it can mean: in ``from a import b``, b may be a module or a value in a."""
        return (self.base, f"{self.base}.{self.name}") if self.name else (self.base,)

    def is_under(self, *packages: str) -> bool:
        """Whether any reading is one of ``packages`` or inside it."""
        return any(reading == p or reading.startswith(p + ".") for reading in self.readings for p in packages)


def imports_of(tree: ast.Module, module: str, is_package: bool) -> Iterator[Import]:
    """Every import, also those inside functions and under ``if TYPE_CHECKING``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = module.split(".")
                above = above[: len(above) - node.level + is_package]
                base = ".".join([*above, base] if base else above)
            for alias in node.names:
                yield Import(node.lineno, base, alias.name)


def problems_in(text: str, module: str, is_package: bool = False) -> list[str]:
    """Every breach of the rules in ``text``, were it the source of ``module``; sentences with line numbers."""
    tree = ast.parse(text)
    found: list[str] = []
    for imported in imports_of(tree, module, is_package):
        problem = _problem_with_import(module, imported)
        if problem is not None:
            found.append(f"{module}:{imported.line}: {problem}")
    if _is_in(module, "groupsvcd.core"):
        found += [f"{module}:{line}: {problem}" for line, problem in _impure_uses(tree)]
    return found


def _problem_with_import(module: str, imported: Import) -> str | None:
    wanted = imported.readings[-1]
    if imported.is_under(*UNSAFE_MODULES):
        return f"imports {wanted}: it runs what it reads, use msgspec"
    if _is_in(module, "groupsvc.wire"):
        if not imported.is_under(*VALUE_MODULES, "attrs", "msgspec", "groupsvc.wire", "groupsvc.errors"):
            return f"imports {wanted}; the wire is pure and at the bottom: value modules, attrs, msgspec, errors"
    elif _is_in(module, "groupsvc.sansio"):
        values = (*VALUE_MODULES, "copy", "logging", "re", "attrs", "msgspec", "groupsvc.wire", *CLIENT_VALUES)
        if not imported.is_under(*values, "groupsvc.sansio"):
            return f"imports {wanted}; the machine of a session has no I/O: value modules, attrs, msgspec, wire, values"
    elif _is_in(module, "groupsvcd.core"):
        allowed = (*VALUE_MODULES, "attrs", "msgspec", "groupsvc.wire", "groupsvc.errors", "groupsvcd.core")
        if not imported.is_under(*allowed):
            return f"imports {wanted}; the engine has no I/O: value modules, attrs, msgspec, wire, errors, core"
    elif _is_in(module, "groupsvcd") and module != "groupsvcd.__main__":
        if imported.is_under("groupsvcd.__main__"):
            return f"imports {wanted}; __main__ is the top and nobody's library"
    elif (
        _is_in(module, "groupsvc")
        and imported.is_under("groupsvcd")
        # The one exception: the simulator *is* a driver of the engine, as the daemon is.
        and not _is_in(module, "groupsvc.testing.sim")
    ):
        return f"imports {wanted}; applications get along without the daemon's code (groupsvc.testing.sim excepted)"
    return None


def _impure_uses(tree: ast.Module) -> Iterator[tuple[int, str]]:
    random_names = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "random"
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
            yield node.lineno, f"calls {node.func.id}(), which {IMPURE_CALLS[node.func.id]}"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in random_names and node.attr != "Random":
                yield node.lineno, f"uses random.{node.attr}; randomness is injected as a random.Random"
        elif isinstance(node, ast.ImportFrom) and node.module == "random" and not node.level:
            for alias in node.names:
                if alias.name != "Random":
                    yield node.lineno, f"imports random.{alias.name}; randomness is injected as a random.Random"


def _is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")
