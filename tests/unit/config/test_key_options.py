"""Keys in the configuration: what is asked of them, and what the operator is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupsvc.drivers.curve import new_keys
from groupsvc.keys import Keys, write_keys
from groupsvcd.__main__ import main
from tests.unit.config.test_config import loaded, problems

N1, N2, N3, CLIENT, NEW = (new_keys() for _ in range(5))
NODE_KEYS = f'[node_keys]\nn1 = "{N1.public}"\nn2 = ["{N2.public}", "{NEW.public}"]\nn3 = "{N3.public}"\n'
VOTERS = """[voters]
n1 = "tcp://192.0.2.1:7400"
n2 = "tcp://192.0.2.2:7400"
n3 = "tcp://192.0.2.3:7400"
"""
CLIENT_KEYS = f'[client_keys]\nreports = "{CLIENT.public}"\n'
OWN = 'node = "n1"\nkey_file = "n1.key"\nstate_directory = "state"\n'


@pytest.fixture
def own(tmp_path: Path) -> Path:
    write_keys(tmp_path, "n1", N1)
    return tmp_path


def test_with_keys_a_daemon_goes_beyond_its_machine(own: Path) -> None:
    made = loaded(own, OWN + 'listen_clients = "tcp://0.0.0.0:7500"\n' + VOTERS + NODE_KEYS + CLIENT_KEYS)
    assert N1 == made.keys
    assert (N2.public, NEW.public) == made.node_keys["n2"]
    assert {"reports": (CLIENT.public,)} == made.client_keys
    assert [] == made.warnings()


def test_the_environment_has_room_for_keys(own: Path) -> None:
    environment = {
        "GROUPSVC_KEY_FILE": "n1.key",
        "GROUPSVC_NODE_KEYS": f"n1={N1.public}, n2={N2.public},n2={NEW.public},n3={N3.public}",
        "GROUPSVC_KEYS": "for/clients/only.key",
    }
    made = loaded(own, 'node = "n1"\nstate_directory = "s"\n' + VOTERS, environment)
    assert (N2.public, NEW.public) == made.node_keys["n2"]
    assert N1 == made.keys


def test_without_keys_nothing_beyond_loopback_is_listened_at(tmp_path: Path) -> None:
    """A daemon that anybody could speak to does not start unless somebody has written that it shall."""
    text = 'node = "n1"\nlisten_clients = "tcp://192.0.2.1:7500"\naddress = "tcp://192.0.2.1:7400"\n'
    found = problems(tmp_path, text)
    assert 2 == len(found), found
    assert all("groupsvc keygen" in problem and "insecure = true" in problem for problem in found)
    made = loaded(tmp_path, text + "insecure = true\n")
    assert "tcp://192.0.2.1:7500" == made.listen_clients
    assert "tcp://127.0.0.1:7500" == loaded(tmp_path, 'listen_clients = "tcp://127.0.0.1:7500"').listen_clients


def test_check_config_refuses_and_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.toml"
    path.write_text('listen_clients = "tcp://0.0.0.0:7500"\n')
    for arguments in (["--config", str(path), "--check-config"], ["--config", str(path)]):
        assert 2 == main(arguments)
        assert "c.toml:1: listen_clients: 0.0.0.0 is not loopback, and there are no keys" in capsys.readouterr().err


PROBLEMS = [
    (NODE_KEYS, "key_file: is required: there are [node_keys]"),
    (CLIENT_KEYS, "key_file: is required: there are [client_keys]"),
    (OWN + CLIENT_KEYS, "listen_clients: is required: there are [client_keys]"),
    (OWN + 'listen_clients = "ipc:///x"\n', "listen_clients: 'ipc:///x' is not tcp://HOST:PORT"),
    (OWN + VOTERS, "node_keys: has no key of n2, n3"),
    (OWN + f'[node_keys]\nn1 = "{N2.public}"', "node_keys.n1: does not have the key in"),
    (OWN + "[node_keys]\nn2 = 5", "node_keys.n2: must be text of 40 characters, not int"),
    (OWN + "[node_keys]\nn2 = []", "node_keys.n2: has 0 keys"),
    (OWN + f'[node_keys]\nn2 = ["{N1.public}", "{N2.public}", "{N3.public}"]', "node_keys.n2: has 3 keys"),
    (OWN + '[node_keys]\nn2 = "short"', "node_keys.n2: has 5 characters and not 40"),
    (OWN + f'[node_keys]\nn2 = "{N2.public[:-1]}~"', "node_keys.n2: has characters that no key has"),
    (OWN + f'[node_keys]\n"n 2" = "{N2.public}"', "node_keys.n 2: 'n 2' is no name"),
    (OWN + f'[node_keys]\nn2 = "{N2.public}"\nn3 = "{N2.public}"', "node_keys.n3: is the key of n2 as well"),
    ("node_keys = 3\n", "node_keys: is a table"),
    ('node_kees = "x"\n', "did you mean node_keys?"),
    ('key_file = "none.key"\n', "none.key: the key file cannot be read: No such file"),
    ('key_file = "open.key"\n', "open.key: mode 0644 lets others read or change it; chmod 600"),
    ('key_file = "mixed.key"\n', "the public key does not belong to the secret key"),
    ('key_file = "n1.pub"\n', "key_file: "),
]
"""What is written, and what is said of it; the keys are others in every process, the reasons make the names."""


@pytest.mark.parametrize("text, expected", PROBLEMS, ids=[reason for _, reason in PROBLEMS])
def test_a_problem_with_keys_names_the_place_and_the_reason(own: Path, text: str, expected: str) -> None:
    for name in ("open", "mixed"):
        write_keys(own, name, Keys(N1.public, N2.secret))
    (own / "open.key").chmod(0o644)
    found = problems(own, text)
    assert any(expected in problem for problem in found), found
    assert not any(N1.secret in problem or N2.secret in problem for problem in found)


def test_a_secret_is_in_no_text_about_a_configuration(own: Path) -> None:
    made = loaded(own, OWN)
    assert N1.secret not in repr(made)
    assert N1.public in repr(made)


def test_a_door_for_new_nodes_alone_is_allowed_and_warned_of(own: Path) -> None:
    """Who shows a token comes in there, and stands in no file."""
    found = loaded(own, OWN + 'listen_clients = "tcp://0.0.0.0:1"\n').warnings()
    assert ["listen_clients without [client_keys]: nobody but new nodes with a token can connect to it"] == found


def test_insecure_beside_keys_is_warned_of(own: Path) -> None:
    assert any("remove it" in warning for warning in loaded(own, OWN + "insecure = true\n").warnings())
