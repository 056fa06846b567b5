"""Files: journals and what an audit makes of them, keys, configurations, what a state directory says of options.

They are the operator's own. But journals are read because somebody may have changed them, a file may be damaged or
another one than was meant; and whoever starts a daemon wants to hear what is wrong, not a traceback.
"""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from groupsvc import tokens
from groupsvc.cli.checks.files import _format
from groupsvc.cli.checks.findings import Level
from groupsvc.errors import UsageError
from groupsvc.journals.auditing import Audit
from groupsvc.journals.reading import Journal, SegmentLines
from groupsvc.keys import Keys, public_key
from groupsvc.wire import history
from groupsvcd import config
from groupsvcd.io.state_directory import APPLICATION_ID, DATABASE, FORMAT_VERSION, StateDirectory, StateRefused
from groupsvcd.io.store import _marked, _packed_mark, options_in
from tests.fuzz.family import Family

FOLDER = Path("/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir())
"""In memory, if that can be had."""


@contextlib.contextmanager
def as_file(name: str, content: bytes) -> Iterator[Path]:
    file = FOLDER / f"groupsvc-fuzz-{os.getpid()}-{name}"
    file.touch(mode=0o600)
    file.write_bytes(content)
    try:
        yield file
    finally:
        file.unlink()


# --- Journals ---


def read_line(data: bytes) -> None:
    """A line is refused, or its event survives a round trip."""
    try:
        event = history.from_line(data)
    except msgspec.DecodeError:
        return
    once = history.to_line(event)
    assert history.to_line(history.from_line(once)) == once


def read_journal(data: bytes) -> None:
    """Every line is read, or told as unreadable, or torn; and an audit says what it thinks of it."""
    with as_file("journal.ndjson", data) as file:
        lines = SegmentLines(file)
        read = sum(1 for _ in lines)
        assert read + len(lines.unreadable) == data.count(b"\n")
        assert bool(lines.torn_bytes) == (not data.endswith(b"\n") and data != b"")
        journals = [Journal(node, 1, ((1, SegmentLines(file)),)) for node in ("n1", "n2")]
        assert 2 * read == Audit().of(journals).lines


def _lines() -> bytes:
    args: list[tuple[str, dict[str, object]]] = [
        ("journal", {"clock": "boot"}),
        ("started", {"state_id": "", "voter": True}),
        ("members", {"members": [["n1", 1], ["n2", 1]], "era": 0, "leader": "n1", "fence": 5}),
        ("view_installed", {"leader": "n1", "members": ["n1", "n2"]}),
        ("joined", {"era": 0}),
        ("delivered", {"first": 7, "base": 6, "digest": "abc"}),
        ("provider_joined", {"provider": ["n1", 1, 1], "fence": 6}),
        ("barrier_entered", {"barrier": "gate", "provider": ["n1", 1, 1], "round": 1}),
        ("barrier_over", {"barrier": "gate", "round": 1, "end": "released", "arrived": [["n1", 1, 1]]}),
        ("journal_lost", {"lines": 2}),
    ]
    return b"".join(
        history.to_line(history.HistoryEvent(v=1, i=number, t=0.5, node="n1", inc=1, op=op, group=7, seq=7, args=what))
        for number, (op, what) in enumerate(args, 1)
    )


# --- Keys and configurations ---

KEY = 40 * "a"


def read_keys(data: bytes) -> None:
    """Keys, or a reason that quotes nothing of the file."""
    for read in (Keys.read, lambda file: public_key(str(file))):
        with as_file("a.key", data) as file:
            refusal = ""
            try:
                read(file)
            except UsageError as problem:
                refusal = str(problem)
            assert KEY[:8] not in refusal


def read_token(data: bytes) -> None:
    """A token whose line says the same again, or a reason that quotes nothing of it; also behind a right checksum."""
    body = base64.urlsafe_b64encode(data + zlib.crc32(data).to_bytes(4, "big")).decode().rstrip("=")
    for line in (data.decode("latin-1"), tokens.PREFIX + data.decode("latin-1"), tokens.PREFIX + body):
        refusal = ""
        try:
            token = tokens.Token.parse(line)
            assert token == tokens.Token.parse(token.line())
        except UsageError as problem:
            refusal = str(problem)
        assert KEY[:8] not in refusal


def read_configuration(data: bytes) -> None:
    """A configuration, or all that is wrong with it."""
    with as_file("groupsvcd.toml", data) as file, contextlib.suppress(config.BadConfig):
        config.load(file, {})


def read_environment(data: bytes) -> None:
    """The same for variables, as the kernel hands them over: no zero in them, and any bytes."""
    pairs = [part.partition(b"=") for part in data.replace(b"\0", b"").split(b"\n")]
    found = {os.fsdecode(b"GROUPSVC_" + name): os.fsdecode(value) for name, _, value in pairs}
    with contextlib.suppress(config.BadConfig):
        config.load(None, found)


# --- The state directory ---


def read_header(data: bytes) -> None:
    """A database of ours, or a refusal that has changed nothing; and the doctor has an opinion about it."""
    directory = FOLDER / f"groupsvc-fuzz-{os.getpid()}-state"
    directory.mkdir()
    database = directory / DATABASE
    try:
        database.write_bytes(data)
        is_taken = True
        try:
            StateDirectory(directory).close()
        except StateRefused:
            is_taken = False
        ours = (HEADER[:16], HEADER[60:64], HEADER[68:72])
        assert is_taken == (len(data) >= len(HEADER) and ours == (data[:16], data[60:64], data[68:72]))
        assert database.read_bytes() == data
        (finding,) = _format(database, FORMAT_VERSION)
        assert not is_taken or finding.level is Level.OK
    finally:
        shutil.rmtree(directory)


def read_mark(data: bytes) -> None:
    """The number that was written, or none."""
    with as_file("mark", data) as file:
        found = _marked(file)
    assert found == 0 or data.startswith(_packed_mark(found))


HEADER = b"".join(
    (
        b"SQLite format 3\0".ljust(60, b"\1"),
        FORMAT_VERSION.to_bytes(4, "big"),
        bytes(4),
        APPLICATION_ID.to_bytes(4, "big"),
    )
).ljust(100, b"\0")

EXAMPLE = (Path(__file__).parents[2] / "daemon" / "config" / "groupsvcd.example.toml").read_bytes()
CONFIGURATION = b"""node = "n1"
state_directory = "~/state"
preference = 2
form_without = ["n3"]
[voters]
n1 = "tcp://127.0.0.1:7400"
n2 = "ipc:///run/n2.peer"
[timers]
lease = 2.5
[limits]
clients_max = 10
[[access]]
who = ["user:root", "group:0", "*"]
groups = ["db-*"]
may = ["join", "*"]
"""
OPTIONS = msgspec.json.encode((("option.log_level", "debug", 7), ("option.limits.clients_max", "10", 9)))


FILES = Family(
    name="files",
    about="journals and their audit, key files, tokens, configurations, options, marks and headers of the state",
    decoders=(
        "groupsvc.wire.history:_decoder",
        "groupsvc.keys:_parsed",
        "groupsvc.tokens:_content_decoder",
        "groupsvcd.config.reading:read_file",
        "groupsvcd.io.store:_options",
        "groupsvcd.io.store:_marked",
        "groupsvcd.io.state_directory:_refuse_other_format",
        "groupsvc.cli.checks.files:_format",
    ),
    readers=(
        (read_line, (_lines().splitlines(keepends=True)[2],)),
        (read_journal, (_lines(), _lines()[:-3])),
        (read_keys, (f'public = "{KEY}"\nsecret = "{KEY[:-1]}b"\nserver = ["{KEY}"]\n'.encode(),)),
        (read_token, (f'["n4","d","tcp://127.0.0.1:7400","{KEY}",9,"{KEY}"]'.encode(),)),
        (read_configuration, (CONFIGURATION, EXAMPLE[:4_000])),
        (read_environment, (b"NODE=n1\nVOTERS=n1=tcp://127.0.0.1:7400,n2=x\nTIMERS_LEASE=3\nNODE_KEYS=a=b",)),
        (options_in, (OPTIONS,)),
        (read_header, (HEADER, HEADER + bytes(4_000))),
        (read_mark, (_packed_mark(7), _packed_mark(2**40) + b"more")),
    ),
)
