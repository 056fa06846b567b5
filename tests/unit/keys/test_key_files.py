"""Key files: made once, readable by their owner alone, and refused with a reason that holds no secret."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import zmq

from groupsvc.drivers.curve import new_keys, problem_with_pair
from groupsvc.errors import Failed, UsageError
from groupsvc.keys import Keys, problem_with_key, public_key, write_keys

SERVER, OTHER = new_keys(), new_keys()


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    for keys in (new_keys(), new_keys((SERVER.public,)), new_keys((SERVER.public, OTHER.public))):
        directory = tmp_path / keys.public.replace("/", "_")
        directory.mkdir()
        secret, public = write_keys(directory, "a", keys)
        assert keys == Keys.read(secret) == Keys.read(str(secret))
        assert keys.public == public_key(str(public)) == public_key(keys.public)
        assert problem_with_pair(keys) is None


def test_the_secret_is_for_its_owner_alone(tmp_path: Path) -> None:
    secret, public = write_keys(tmp_path, "a", SERVER)
    assert 0o600 == stat.S_IMODE(secret.stat().st_mode)
    assert SERVER.secret not in public.read_text()
    for mode in (0o640, 0o604, 0o620, 0o602):
        secret.chmod(mode)
        with pytest.raises(UsageError, match=f"mode {mode:04o} lets others read or change it; chmod 600"):
            Keys.read(secret)
    secret.chmod(0o400)
    assert SERVER == Keys.read(secret)


@pytest.mark.parametrize("there", ["a.key", "a.pub"])
def test_nothing_is_written_over(tmp_path: Path, there: str) -> None:
    (tmp_path / there).write_text("precious")
    with pytest.raises(Failed, match="not written over"):
        write_keys(tmp_path, "a", SERVER)
    assert [there] == [path.name for path in tmp_path.iterdir()]
    assert "precious" == (tmp_path / there).read_text()


def test_a_link_to_nowhere_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a.key").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Failed):
        write_keys(tmp_path, "a", SERVER)
    assert not (tmp_path / "elsewhere").exists()


NO_KEY_FILES = [
    ("", "there is no public key in it"),
    (f'public = "{SERVER.public}"\n', "there is no secret key in it"),
    (
        f'public = "{SERVER.public}"\nsecret = "{SERVER.secret[1:]}"\n',
        "the secret key has 39 characters and not 40",
    ),
    (f'public = "{SERVER.public}"\nsecret = 7\n', "the secret key must be text of 40 characters, not int"),
    (f'public = "{SERVER.public}"\nsecret = "{SERVER.secret}"\nserver = 3\n', "the server key must be text"),
    (
        f'public = "{SERVER.public}"\nsecret = "{SERVER.secret}"\nserver = ["x"]\n',
        "the server key has 1 characters",
    ),
    (
        f'public = "{SERVER.public}"\nsecret = "{SERVER.secret}"\ncolour = 1\n',
        "colour is nothing that a key file has",
    ),
    (f'public = "{SERVER.public}"\nsecret = {SERVER.secret}\n', "is no key file"),
    ("\xff\x00", "is no key file"),
]
"""What is written, and what is said of it; the keys are others in every process, the reasons make the names."""


@pytest.mark.parametrize("text, reason", NO_KEY_FILES, ids=[reason for _, reason in NO_KEY_FILES])
def test_what_is_no_key_file_is_refused_without_telling_a_secret(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "a.key"
    path.write_bytes(text.encode("latin-1"))
    path.chmod(0o600)
    with pytest.raises(UsageError) as caught:
        Keys.read(path)
    assert reason in str(caught.value)
    assert str(path) in str(caught.value)
    assert SERVER.secret not in str(caught.value)
    assert SERVER.secret[1:] not in str(caught.value)


def test_a_missing_file_a_directory_and_the_public_file_are_told_apart(tmp_path: Path) -> None:
    _, public = write_keys(tmp_path, "a", SERVER)
    public.chmod(0o600)
    for path, reason in ((tmp_path / "b.key", "No such file"), (tmp_path, "Is a directory"), (public, "ends in .key")):
        with pytest.raises(UsageError, match=reason):
            Keys.read(path)


def test_servers_can_be_named_beside_the_file(tmp_path: Path) -> None:
    secret, _ = write_keys(tmp_path, "a", new_keys((OTHER.public,)))
    assert (OTHER.public,) == Keys.read(secret).servers
    assert (SERVER.public,) == Keys.read(secret, server=SERVER.public).servers
    with pytest.raises(UsageError, match="at most 16"):
        Keys.read(secret, server=(SERVER.public,) * 17)


def test_a_pair_of_two_halves_is_noticed() -> None:
    assert problem_with_pair(Keys(SERVER.public, OTHER.secret)) is not None


def test_a_public_key_can_be_typed_after_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dash is a character of keys, and at the beginning of a word of a command it means something else."""
    pairs = [
        (b"-" + OTHER.public[1:].encode(), OTHER.secret.encode()),
        (SERVER.public.encode(), SERVER.secret.encode()),
    ]
    monkeypatch.setattr(zmq, "curve_keypair", lambda: pairs.pop(0))
    assert SERVER == new_keys()


def test_no_secret_in_what_is_shown_of_keys() -> None:
    assert SERVER.secret not in repr(SERVER)
    assert SERVER.secret not in str(problem_with_key(SERVER.secret + "x"))


def test_a_file_that_is_nested_without_end_is_no_key_file(tmp_path: Path) -> None:
    file = tmp_path / "a.key"
    file.write_text("public = " + "[" * 5_000)
    file.chmod(0o600)
    with pytest.raises(UsageError, match="is no key file"):
        Keys.read(file)


def test_a_path_that_can_be_none_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        Keys.read("a\0b")
    with pytest.raises(UsageError, match="cannot be read"):
        Keys.read("~nobody-of-this-name/a.key")
