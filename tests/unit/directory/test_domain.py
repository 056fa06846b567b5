"""The rules for formation, name servers, voters and settings; entries, answers and snapshots."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from groupsvc.errors import PeerProtocolError
from groupsvcd.core.domain import origins as origins_module
from groupsvcd.core.domain import settings as settings_module
from groupsvcd.core.domain.commands import (
    FormDomain,
    NodeUp,
    SetConfig,
    ViewStarted,
    VoterReplaced,
    decode_command,
    encode_command,
)
from groupsvcd.core.domain.directory import Directory, Snapshot
from groupsvcd.core.domain.origins import StoredOrigin
from groupsvcd.core.records import NO_DOMAIN
from tests.unit.directory.scene import DOMAIN, VOTERS, Scene


def set_entry(key: str, value: str, if_version: int = 0) -> bytes:
    return encode_command(SetConfig(key, value, if_version))


# --- Formation, name servers, voters ----------------------------------------------------------------


def test_before_formation_nothing_else_is_accepted() -> None:
    directory = Directory()
    assert not directory.apply(1, SetConfig("k", "v", 0))["ok"]
    assert (NO_DOMAIN, 0) == (directory.domain, directory.generation)
    assert directory.apply(2, FormDomain(DOMAIN, VOTERS, {}))["ok"]
    assert (DOMAIN, 1, dict(VOTERS)) == (directory.domain, directory.generation, directory.voters)


def test_a_domain_is_formed_once() -> None:
    scene = Scene()
    assert scene.order(FormDomain(DOMAIN, VOTERS, {}))["ok"]
    assert not scene.order(FormDomain(bytes([7] * 16), VOTERS, {}))["ok"]
    assert DOMAIN == scene.directory.domain


@pytest.mark.parametrize(
    "command",
    [
        FormDomain(NO_DOMAIN, VOTERS, {}),
        FormDomain(b"short", VOTERS, {}),
        FormDomain(DOMAIN, (), {}),
        FormDomain(DOMAIN, (("a", "1"), ("a", "2")), {}),
        FormDomain(DOMAIN, (("a", "1"), ("b", "1")), {}),
        FormDomain(DOMAIN, (("a b", "1"),), {}),
    ],
)
def test_a_formation_that_makes_no_sense_is_refused(command: FormDomain) -> None:
    directory = Directory()
    assert not directory.apply(1, command)["ok"]
    assert 0 == directory.generation


def test_name_servers_follow_each_other_with_growing_epochs() -> None:
    scene = Scene()
    assert scene.order(ViewStarted(5, "b", VOTERS, 2))["ok"]
    assert scene.order(ViewStarted(5, "b", VOTERS, 2))["ok"]
    assert not scene.order(ViewStarted(5, "c", VOTERS, 2))["ok"]
    assert not scene.order(ViewStarted(4, "a", VOTERS, 2))["ok"]
    assert not scene.order(ViewStarted(6, "stranger", VOTERS, 2))["ok"]
    assert (5, "b") == (scene.directory.view.epoch, scene.directory.view.leader)


def test_a_replaced_state_directory_never_comes_back() -> None:
    """It missed what its successor promised; a late command must not let it vote again."""
    scene = Scene()
    assert scene.order(VoterReplaced("b", "new"))["ok"]
    assert scene.order(VoterReplaced("b", "new"))["ok"]
    refused = scene.order(VoterReplaced("b", "disk-b"))
    assert "replaced before" in refused["problem"]
    assert {"name": "b", "state_id": "new"} == refused["voter"]
    assert not scene.order(VoterReplaced("c", "disk-b"))["ok"]


def test_only_voters_are_replaced_and_by_a_disk_of_their_own() -> None:
    scene = Scene()
    assert not scene.order(VoterReplaced("x", "new"))["ok"]
    assert not scene.order(VoterReplaced("b", "disk-a"))["ok"]
    assert not scene.order(VoterReplaced("b", ""))["ok"]
    assert dict(VOTERS) == scene.directory.voters


def test_a_voter_missing_at_formation_is_made_known_later() -> None:
    directory = Directory()
    directory.apply(1, FormDomain(DOMAIN, (("a", "1"), ("b", ""), ("c", "")), {}))
    assert directory.apply(2, VoterReplaced("b", "2"))["ok"]
    assert {"a": "1", "b": "2", "c": ""} == directory.voters


# --- Settings ---------------------------------------------------------------------------------------


def test_of_two_that_set_from_the_same_version_the_first_wins() -> None:
    scene = Scene()
    won = scene.order(SetConfig("k", "v", 0))
    assert {"ok": True, "version": scene.seq} == won
    lost = scene.order(SetConfig("k", "v", 0))
    assert not lost["ok"]
    assert won["version"] == lost["version"]
    assert ("v", won["version"]) == scene.directory.config("k")
    assert scene.order(SetConfig("k", "w", won["version"]))["ok"]
    assert ("", 0) == scene.directory.config("other")


@pytest.mark.parametrize("key, value", [("", "v"), ("_k", "v"), ("k" * 201, "v"), ("k", "\u00fc" * 32_769)])
def test_settings_beyond_the_limits_are_refused(key: str, value: str) -> None:
    assert not Scene().order(SetConfig(key, value, 0))["ok"]


def test_all_settings_together_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_module, "CONFIG_BYTES_MAX", 10)
    monkeypatch.setattr(settings_module, "CONFIG_KEYS_MAX", 2)
    scene = Scene()
    first = scene.order(SetConfig("a", "12345678", 0))
    assert "together" in scene.order(SetConfig("b", "1", 0))["problem"]
    assert scene.order(SetConfig("a", "1", first["version"]))["ok"]
    assert scene.order(SetConfig("b", "1", 0))["ok"]
    assert not scene.order(SetConfig("c", "1", 0))["ok"]


NO_TEXT = encode_command(SetConfig("key", "value", 0)).replace(b"key", b"k\xffy")
"""Its form is right, but a name in it is no UTF-8: who took it for a command stopped at it, after a restart again."""


# --- Entries and answers ----------------------------------------------------------------------------


def test_bytes_that_are_no_command_are_answered_and_change_nothing() -> None:
    scene = Scene()
    for n, body in enumerate((b"", b"\xc1", b"\x91\x63", b"\x80", b"x" * 600_000, NO_TEXT), start=1):
        answer = scene.directory.apply_entry(scene.seq + 1, ("x", 1), n, body)
        assert "no command" in answer["problem"]
        assert answer == scene.directory.answer_for(("x", 1), n)
    assert decode_command(b"\x91\x63") is None


def test_a_repeated_number_gets_its_answer_again_and_is_not_applied_twice() -> None:
    scene = Scene()
    body = set_entry("k", "v")
    first = scene.directory.apply_entry(scene.seq + 1, ("x", 1), 1, body)
    again = scene.directory.apply_entry(scene.seq + 1, ("x", 1), 1, body)
    assert first["ok"]
    assert first == again == scene.directory.answer_for(("x", 1), 1)
    assert (1, scene.seq - 1) == scene.directory.origins[("x", 1)]


def test_only_the_last_answers_are_kept() -> None:
    directory = Directory(answers_kept=2)
    for n in (1, 2, 3):
        directory.apply_entry(n, ("x", 1), n, b"")
    assert directory.answer_for(("x", 1), 1) is None
    assert directory.answer_for(("x", 1), 2) is not None
    assert "no longer kept" in directory.apply_entry(4, ("x", 1), 1, b"")["problem"]


def test_the_oldest_answers_go_when_all_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    directory = Directory()
    directory.apply_entry(1, ("x", 1), 1, b"")
    monkeypatch.setattr(origins_module, "ANSWERS_BYTES_MAX", 100)
    directory.apply_entry(2, ("y", 1), 1, b"")
    directory.apply_entry(3, ("y", 1), 2, b"")
    assert directory.answer_for(("x", 1), 1) is None
    assert directory.answer_for(("y", 1), 2) is not None
    assert ("x", 1) in directory.origins


def test_an_origin_is_forgotten_when_it_is_gone_or_has_a_successor() -> None:
    scene = Scene()
    scene.up("x", "y")
    for name in ("x", "y"):
        scene.directory.apply_entry(scene.seq + 1, (name, 1), 1, b"")
    scene.down("x")
    assert ("x", 1) in scene.directory.origins
    scene.gone("x")
    assert [("y", 1)] == list(scene.directory.origins)
    scene.up("y", incarnation=2)
    assert {} == scene.directory.origins
    assert scene.directory.answer_for(("y", 1), 1) is None


def test_a_late_entry_of_a_forgotten_origin_makes_no_row() -> None:
    scene = Scene()
    scene.up("x")
    scene.up("x", incarnation=2)
    scene.directory.apply_entry(scene.seq + 1, ("x", 1), 7, b"")
    assert {} == scene.directory.origins


def test_an_origin_is_not_forgotten_because_it_is_silent() -> None:
    directory = Directory()
    directory.apply_entry(1, ("x", 1), 1, b"")
    for seq in range(2, 200):
        directory.apply_entry(seq, ("y", 1), seq - 1, b"")
    assert (1, 1) == directory.origins["x", 1]


def test_entries_are_applied_once_and_in_order() -> None:
    scene = Scene()
    with pytest.raises(ValueError, match="in order"):
        scene.directory.apply(scene.seq, SetConfig("k", "v", 0))


# --- Snapshots --------------------------------------------------------------------------------------


def test_a_restored_directory_is_the_same_and_goes_on_the_same() -> None:
    scene = Scene()
    scene.up("a", "x", "y")
    scene.serve(scene.form("jobs", "x", delivery="fast"), ("x", 1), ("y", 1), k=2)
    scene.directory.apply_entry(scene.seq + 1, ("x", 1), 1, set_entry("k", "v"))
    scene.order(VoterReplaced("b", "new"))
    restored = Directory.restore(scene.directory.snapshot())
    assert scene.directory.snapshot() == restored.snapshot()
    assert scene.directory.digest() == restored.digest()
    assert scene.directory.answer_for(("x", 1), 1) == restored.answer_for(("x", 1), 1)
    last = encode_command(NodeUp("x", 2, "", "tcp://x", voter=False))
    for directory in (scene.directory, restored):
        directory.apply_entry(directory.applied + 1, ("a", 1), 1, last)
    assert scene.directory.snapshot() == restored.snapshot()
    assert not restored.apply(restored.applied + 1, VoterReplaced("b", "disk-b"))["ok"]


@pytest.mark.parametrize("state", [b"", b"\x90", b"garbage", b"\x80"])
def test_what_is_no_snapshot_is_refused_with_a_reason(state: bytes) -> None:
    with pytest.raises(PeerProtocolError, match="no snapshot"):
        Directory.restore(state)


def _changed_snapshot(**changes: Any) -> bytes:
    scene = Scene()
    scene.up("a", "x")
    scene.form("jobs", "x")
    scene.directory.apply_entry(scene.seq + 1, ("x", 1), 1, set_entry("k", "v"))
    stored = msgspec.msgpack.decode(scene.directory.snapshot(), type=Snapshot)
    changed = {name: change(getattr(stored, name)) for name, change in changes.items()}
    return msgspec.msgpack.encode(msgspec.structs.replace(stored, **changed))


def test_a_snapshot_in_which_something_stands_twice_is_refused() -> None:
    """The tables have indexes, which would be wrong from then on."""
    twice: list[dict[str, Any]] = [
        {"nodes": lambda nodes: (*nodes, nodes[-1])},
        {"voters": lambda voters: (*voters, voters[-1])},
        {"groups": lambda groups: (*groups, groups[-1])},
        {"groups": lambda groups: (*groups, msgspec.structs.replace(groups[-1], id=groups[-1].id + 1))},
        {"settings": lambda settings: (*settings, settings[-1])},
        {"origins": lambda rows: (*rows, rows[-1])},
        {"origins": lambda rows: (msgspec.structs.replace(rows[0], answers=rows[0].answers * 2), *rows[1:])},
    ]
    assert Directory.restore(_changed_snapshot())
    for changes in twice:
        with pytest.raises(PeerProtocolError, match="no snapshot of a directory"):
            Directory.restore(_changed_snapshot(**changes))


def test_a_snapshot_with_an_answer_that_cannot_be_read_is_refused() -> None:
    """Now, and not when the node asks again for what it was answered."""

    def garbled(rows: tuple[StoredOrigin, ...]) -> tuple[StoredOrigin, ...]:
        return (msgspec.structs.replace(rows[0], answers=((1, rows[0].seq, b"\xc1"),)), *rows[1:])

    with pytest.raises(PeerProtocolError, match="no answer of the directory"):
        Directory.restore(_changed_snapshot(origins=garbled))


def test_a_snapshot_of_another_version_is_refused() -> None:
    state = bytearray(Directory().snapshot())
    assert 1 == state[1]
    state[1] = 2
    with pytest.raises(PeerProtocolError, match="version 2"):
        Directory.restore(bytes(state))
