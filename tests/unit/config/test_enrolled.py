"""Keys that the domain lists, beside those in the file: which of them a node believes."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupsvc.cli.enrolling import _settings
from groupsvc.drivers.curve import new_keys
from groupsvc.keys import write_keys
from groupsvc.wire.enrolment_messages import Enrolled
from groupsvcd.config.acquired import Acquired
from groupsvcd.core.access import TOKEN_MARK
from groupsvcd.core.domain.listed_keys import NodeKey, Token, setting_of
from tests.unit.config.test_config import loaded

N1, N2, F, D, E, EVIL, T = (new_keys() for _ in range(7))
FILE = f"""node = "n1"
key_file = "n1.key"
state_directory = "state"
[voters]
n1 = "tcp://127.0.0.1:7400"
n2 = "tcp://127.0.0.1:7500"
[node_keys]
n1 = "{N1.public}"
n2 = "{N2.public}"
far = "{F.public}"
"""


def told(node: str, public: str, version: int = 5) -> tuple[str, str, int]:
    return (setting_of(node), NodeKey(public, T.public, 0).line(), version)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    write_keys(tmp_path, "n1", N1)
    return tmp_path


def test_a_node_that_the_domain_lists_stands_beside_those_in_the_file(own: Path) -> None:
    config = Acquired(loaded(own, FILE), (told("d", D.public),)).in_force()
    assert {"n1": (N1.public,), "n2": (N2.public,), "far": (F.public,), "d": (D.public,)} == config.node_keys
    assert (T.public,) == config.client_keys[TOKEN_MARK + T.public]


@pytest.mark.parametrize("node", ["n1", "n2", "far"])
@pytest.mark.parametrize(
    "line", [NodeKey(EVIL.public, T.public, 0).line(), Token(T.public, 1 << 33).line()], ids=["key", "token"]
)
def test_the_file_alone_says_which_keys_its_nodes_have(own: Path, node: str, line: str) -> None:
    """However the line came to be listed; with a second key for n2 somebody would speak as a voter."""
    written = loaded(own, FILE)
    config = Acquired(written, ((setting_of(node), line, 9),)).in_force()
    assert (written.node_keys, written.client_keys) == (config.node_keys, config.client_keys)


def test_of_a_key_in_the_file_the_domain_gives_nothing_to_another_name(own: Path) -> None:
    written = loaded(own, FILE)
    assert written.node_keys == Acquired(written, (told("d", N2.public),)).in_force().node_keys


def test_a_key_that_was_revoked_is_in_no_file_that_was_written_meanwhile(own: Path) -> None:
    """E is enrolled, then D, whose file has what stands in the one of n1; then E is revoked."""
    written = loaded(own, FILE)
    n1 = Acquired(written, (told("e", E.public),))
    assert (E.public,) == n1.in_force().node_keys["e"]
    enrolled = Enrolled(1, 6, "d", dict(written.voters), dict(written.node_keys), {})
    write_keys(own, "d", D)
    d = loaded(own, _settings("d", "tcp://127.0.0.1:7600", own / "d.key", enrolled))
    assert (E.public,) == Acquired(d, (told("e", E.public),)).in_force().node_keys["e"]
    assert "e" not in Acquired(d, ((setting_of("e"), "", 7),)).in_force().node_keys
