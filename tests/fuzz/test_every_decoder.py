"""A decoder that no family names is not fuzzed: this test is red until it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.families import FAMILIES

ROOT = Path(__file__).parents[2]
PACKAGES = {"groupsvc": ROOT / "groupsvc", "groupsvcd": ROOT / "daemon" / "groupsvcd"}
MAKERS = {"Codec", "Reader", "Decoder"}
"""Who makes one makes a decoder."""
READS = {("msgspec", "decode"), ("msgpack", "decode"), ("json", "decode"), ("json", "loads"), ("tomllib", "loads")}
"""Who calls one of these reads without making one."""
BY_HAND = {"unpack", "unpack_from", "iter_unpack", "from_bytes", "recv", "recv_into", "recv_multipart"}
"""Who calls one of these takes bytes apart, or takes them from a socket, without any library."""
OURS = {("frames", "unpack")}
"""Is a decoder itself, and is found where it is made."""

OTHERWISE = {
    "groupsvc.cli.checks.configuration:judge": "reads what its own child has printed",
    "groupsvc.journals.parquet:_made_of": "tests/unit/journals/test_compacting.py: pyarrow reads, not we",
    "groupsvc.journals.parquet:lines_in": "tests/unit/journals/test_compacting.py: pyarrow reads, not we",
    "groupsvc.testing.sim.application_tables:_rows": "the simulator reads what its applications have written",
    "groupsvc.testing.sim.application_tables:_writes": "the simulator reads what its applications have written",
    "groupsvc.testing.sim.ledger:_entries": "the ledger is in the repository",
    "groupsvc.testing.sim.spoken:words_for": "the simulator reads what its nodes have written",
    "groupsvc.testing.scripted_daemon:_serve": "a daemon that is played reads its own client",
    "groupsvc.testing.scripted_daemon:cut": "a daemon that is played reads its own client",
    "groupsvc.drivers.daemon_socket:raise_if_not_let_in": "libzmq's own word about a connection",
    "groupsvc.drivers.daemon_socket:receive": "a frame, for groupsvc.wire.frames:unpack",
    "groupsvcd.io.clients:_pidfd_of": "the kernel says whose connection it is",
    "groupsvcd.io.clients:_receive_one": "a frame, for groupsvc.wire.frames:unpack, and libzmq's name of it",
    "groupsvcd.io.peers:_forget_what_came_back": "is forgotten unread",
    "groupsvcd.io.principals:_other_groups": "the kernel says whose connection it is",
    "groupsvcd.io.principals:_user": "the kernel says whose connection it is",
    "groupsvcd.io.publisher:_receive_into": "tests/unit/io/test_gate.py: first byte and length of a subscription",
    "groupsvcd.io.sockets:drop_rest": "is forgotten unread",
    "groupsvcd.io.sockets:monitor_events": "libzmq's own word about a connection",
    "groupsvcd.io.sockets:new_context": "our own chance",
    "groupsvcd.io.subscribers:receive": "a frame, for groupsvc.wire.frames:unpack",
}
"""What is not fuzzed, and why it need not be."""


def decoders_in(source: str) -> Iterator[str]:
    """The names under which decoders are made or used: of a variable, else of the class or function around."""

    def walk(node: ast.AST, around: str) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Call) and _is_decoder(child.func):
                yield around
            inner = around
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                inner = around if child.name == "__init__" else child.name
            elif isinstance(child, ast.ClassDef):
                inner = child.name
            elif isinstance(child, ast.Assign | ast.AnnAssign) and isinstance(node, ast.Module):
                target = child.targets[0] if isinstance(child, ast.Assign) else child.target
                inner = target.id if isinstance(target, ast.Name) else around
            yield from walk(child, inner)

    yield from walk(ast.parse(source), "")


def _is_decoder(called: ast.expr) -> bool:
    if isinstance(called, ast.Subscript):  # Reader[int](…)
        called = called.value
    if isinstance(called, ast.Name):
        return called.id in MAKERS
    if not isinstance(called, ast.Attribute):
        return False
    of = called.value.attr if isinstance(called.value, ast.Attribute) else getattr(called.value, "id", "")
    if (of, called.attr) in OURS:
        return False
    return called.attr in MAKERS or called.attr in BY_HAND or (of, called.attr) in READS


def decoders_of_the_product() -> set[str]:
    found = set()
    for package, folder in PACKAGES.items():
        for file in folder.rglob("*.py"):
            module = ".".join((package, *file.relative_to(folder).with_suffix("").parts)).removesuffix(".__init__")
            found |= {f"{module}:{name}" for name in decoders_in(file.read_text())}
    return found


def test_every_decoder_is_named_by_a_family_of_the_fuzzer() -> None:
    named = {name for family in FAMILIES.values() for name in family.decoders}
    found = decoders_of_the_product()
    assert set() == found - named - OTHERWISE.keys(), "not fuzzed: give it a reader in tests/fuzz"
    assert set() == (named | OTHERWISE.keys()) - found, "there is no such decoder any more"


def test_a_new_decoder_would_be_found_however_it_is_written() -> None:
    assert ["_a", "_b", "read", "Kept", "_c", "load", "mark", "heard", "number"] == list(
        decoders_in(
            "_a: Reader[int] = Reader(int, 'number')\n"
            "_b = msgspec.json.Decoder(int)\n"
            "def read(x): return msgspec.msgpack.decode(x)\n"
            "class Kept:\n"
            "    def __init__(self): self._d = msgspec.msgpack.Decoder(int)\n"
            "_c = Reader[int](int, 'number')\n"
            "class Other:\n"
            "    def load(self, x): return tomllib.loads(x)\n"
            "_d = bytes.decode(b'')\n"
            "def mark(x): return struct.unpack('>I', x)\n"
            "def heard(x): return x.socket.recv(100)\n"
            "def number(x): return int.from_bytes(x[:2], 'big')\n"
            "def frame(x): return frames.unpack(x)\n"
        )
    )


def test_every_family_begins_with_something_valid_for_each_of_its_readers() -> None:
    for family in FAMILIES.values():
        assert all(seeds for _, seeds in family.readers), family.name
