"""A domain with keys: it works as one without, and who is not listed stays outside."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

import groupsvc
from groupsvc import DaemonUnreachable, Keys, SessionState, UsageError, aio
from groupsvc.drivers import curve, dead_links
from groupsvc.drivers.connection import DaemonConnection
from groupsvc.drivers.curve import new_keys
from groupsvc.keys import write_keys
from groupsvc.testing import LocalDomain
from groupsvc.testing.local_node import environment, to_toml
from groupsvc.testing.loopback_ports import PortBlock
from groupsvc.wire import frames
from groupsvc.wire.client_messages import REQUEST_CODEC, StatusAsk
from groupsvc.wire.kinds import FrameKind
from groupsvc.wire.limits import DEAD_LINK_MS, PAYLOAD_BYTES_MAX
from tests.interop.forwarder import Forwarder

ASK = frames.pack(FrameKind.CLIENT_REQUEST, bytes(16), b"client", 1, REQUEST_CODEC.encode([StatusAsk(1)]))


@pytest.fixture(scope="module")
def keyed() -> Iterator[LocalDomain]:
    with LocalDomain(nodes=3, keys=True, name="keyed") as made:
        yield made


def settings_of(domain: LocalDomain, name: str) -> dict[str, object]:
    return dict(domain._node(name).settings)


def test_a_domain_with_keys_forms_and_lives_through_a_death(keyed: LocalDomain) -> None:
    old = keyed.wait_for_name_server()
    keyed.kill(old)
    assert old != keyed.wait_for_name_server()
    keyed.heal()
    for name in keyed.names:
        assert "false name" not in keyed.logs(name)
        assert "stranger" not in keyed.logs(name)


def test_one_more_node_is_let_in_by_its_key(keyed: LocalDomain) -> None:
    keyed.add("n4")
    try:
        with (
            keyed.connect("n4") as one,
            keyed.connect("n1") as two,
            one.join("with-n4", name="one") as at_n4,
            two.join("with-n4", name="two", events=True) as at_n1,
        ):
            at_n4.send(b"hello")
            heard = next(event for event in at_n1.events() if isinstance(event, groupsvc.Message))
            assert b"hello" == heard.payload
    finally:
        keyed.remove("n4")


def test_programs_of_other_machines_join_send_and_vote(keyed: LocalDomain) -> None:
    """A provider that came over tcp with a key and one of the Unix socket are alike."""
    attributes = groupsvc.GroupAttributes(state_phases=groupsvc.Phases.N)
    with (
        groupsvc.connect(keyed.remote_address("n1"), keys=keyed.keys, name="far") as far,
        keyed.connect("n2") as near,
        far.join("both", name="far", attributes=attributes, events=True) as at_far,
        near.join("both", name="near", events=True) as at_near,
    ):
        at_far.send(b"from far")
        at_near.multicast(b"from near")
        at_near.flush()
        messages = []
        for event in at_far.events():
            if isinstance(event, groupsvc.Message):
                messages.append(event.payload)
            if len(messages) == 2:
                break
        assert [b"from far", b"from near"] == messages
        outcome = at_far.propose_state(b"agreed")
        assert outcome.approved
        assert {"far", "near"} == {counted.provider.name for counted in outcome.tally}


async def _far(address: str, keys: Keys) -> str:
    async with aio.connect(address, keys=keys) as session, session.join("async-far") as group:
        await group.send(b"x")
        return session.node


def test_the_same_with_asyncio(keyed: LocalDomain) -> None:
    assert "n2" == asyncio.run(_far(keyed.remote_address("n2"), keyed.keys))


def test_a_program_names_its_key_file_or_the_environment_does(
    keyed: LocalDomain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, _ = write_keys(tmp_path, "client", keyed.keys)
    address = keyed.remote_address("n3")
    with groupsvc.connect(address, keys=secret) as session:
        assert "n3" == session.node
    status = [sys.executable, "-m", "groupsvc.cli", "status", "--address", address]
    found = subprocess.run([*status, "--keys", str(secret)], capture_output=True, text=True, timeout=60)
    assert (0, "") == (found.returncode, found.stderr)
    monkeypatch.setenv("GROUPSVC_KEYS", str(secret))
    with groupsvc.connect(address) as session:
        assert "n3" == session.node


def test_a_program_of_another_machine_that_is_killed_leaves_its_groups(keyed: LocalDomain) -> None:
    """When its grace is over: that its connection broke is all that its daemon can see of it."""
    code = (
        "import sys, groupsvc\n"
        "session = groupsvc.connect(sys.argv[1], keys=sys.argv[2])\n"
        "group = session.join('mourned', name='far')\n"
        "print('in', flush=True)\n"
        "sys.stdin.read()\n"
    )
    secret, _ = write_keys(keyed.directory, "mourner", keyed.keys)
    with keyed.connect("n1") as session, session.join("mourned", name="near", events=True) as group:
        far = subprocess.Popen(
            [sys.executable, "-c", code, keyed.remote_address("n2"), str(secret)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(),
        )  # fmt: skip
        assert far.stdout is not None
        assert b"in\n" == far.stdout.readline()
        far.kill()
        far.communicate()
        left = next(event for event in group.events() if isinstance(event, groupsvc.Left))
        assert ["far"] == [provider.name for provider in left.providers]


@pytest.mark.parametrize("how", ["cut", "fall_silent"])
def test_a_session_outlives_the_network_between(keyed: LocalDomain, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that is cut, or over which nothing comes any more, is given up by both ends and made anew."""
    monkeypatch.setattr(dead_links, "SILENT_LINK_S", 4.0)
    states: list[SessionState] = []
    with (
        Forwarder(keyed.remote_address("n1")) as network,
        groupsvc.connect(network.address, keys=keyed.keys) as session,
        session.join(f"far-{how}") as group,
    ):
        session.on_state(states.append)
        group.send(b"before")
        before = network.connections
        getattr(network, how)()
        keyed.wait_until(lambda: network.connections > before + 1, "it has knocked and connected again")
        keyed.wait_until(lambda: session.state is SessionState.CONNECTED, "it is connected again")
        group.send(b"after")
        assert 1 == len(group.providers)
    assert SessionState.LOST not in states


def test_a_large_message_gets_through_a_slow_link(keyed: LocalDomain) -> None:
    """Up, and down again: nothing else is heard meanwhile, for longer than the kernel waits for an acknowledgement."""
    payload = bytes(PAYLOAD_BYTES_MAX)
    states: list[SessionState] = []
    with (
        Forwarder(keyed.remote_address("n1")) as network,
        groupsvc.connect(network.address, keys=keyed.keys) as session,
        session.join("slow-link") as group,
    ):
        session.on_state(states.append)
        before = network.connections
        network.slow_down(bytes_per_s=len(payload) / (1.5 * DEAD_LINK_MS / 1_000))
        group.multicast(payload)
        group.flush(timeout=60)
        assert before == network.connections
    assert SessionState.LOST not in states


# --- Who stays outside ----------------------------------------------------------------------------------


def test_a_program_with_a_key_that_is_not_listed_is_told_so(keyed: LocalDomain) -> None:
    stranger = new_keys(keyed.keys.servers)
    with pytest.raises(DaemonUnreachable) as caught:
        groupsvc.connect(keyed.remote_address("n1"), keys=stranger)
    assert f"does not know the key {stranger.public}: it must stand in [client_keys]" in str(caught.value)
    assert stranger.secret not in str(caught.value)
    keyed.wait_until(lambda: stranger.public in keyed.logs("n1"), "the daemon said whom it refused")


def test_a_daemon_with_another_key_than_expected_is_not_spoken_with(keyed: LocalDomain) -> None:
    mine = keyed.keys
    for servers in ((new_keys().public,), (new_keys().public, mine.public)):
        with pytest.raises(DaemonUnreachable, match="the server key may be wrong"):
            groupsvc.connect(keyed.remote_address("n1"), keys=Keys(mine.public, mine.secret, servers))


def test_a_key_of_a_node_opens_no_door_of_programs(keyed: LocalDomain) -> None:
    node = Keys.read(str(settings_of(keyed, "n2")["key_file"]), server=keyed.keys.servers)
    with pytest.raises(DaemonUnreachable, match="does not know the key"):
        groupsvc.connect(keyed.remote_address("n1"), keys=node)


def test_without_keys_nothing_is_heard_of_the_daemon(keyed: LocalDomain) -> None:
    with pytest.raises(DaemonUnreachable, match="it asks for keys"):
        groupsvc.connect(keyed.remote_address("n1"), keys=False)
    context = zmq.Context()
    doors = [keyed.remote_address("n1"), keyed.peer_address("n1")]
    askers = [context.socket(zmq.DEALER) for _ in doors]
    for asker, address in zip(askers, doors, strict=True):
        asker.connect(address)
        asker.send(ASK)
    publisher = keyed.peer_address("n1").rpartition(":")
    listener = context.socket(zmq.SUB)
    listener.setsockopt(zmq.SUBSCRIBE, b"")
    listener.connect(f"{publisher[0]}:{int(publisher[2]) + 1}")
    assert [0, 0, 0] == [one.poll(700) for one in (listener, *askers)]
    context.destroy(linger=0)


def test_a_domain_without_keys_has_no_secret_door(keyed: LocalDomain) -> None:
    """CURVE at a socket that asks for none: no connection, and no answer."""
    context = zmq.Context()
    asker = context.socket(zmq.DEALER)
    curve.show(asker, keyed.keys)
    curve.expect(asker, keyed.keys.servers[0])
    asker.connect(keyed.address("n1"))
    asker.send(ASK)
    assert 0 == asker.poll(300)
    context.destroy(linger=0)


def test_a_node_with_a_key_that_is_not_listed_stays_outside(keyed: LocalDomain) -> None:
    keyed.add("n9", wait=False)
    try:
        keyed.wait_until(lambda: "stranger: " in keyed.logs("n1"), "n1 refused it")
        keyed.wait_until(lambda: "not listed: " in keyed.logs("n9"), "n9 said why it is outside")
        assert "n9" not in known_to(keyed, "n1")
    finally:
        keyed.remove("n9")


def test_a_node_with_the_key_of_another_name_stays_outside(keyed: LocalDomain) -> None:
    """N5 comes with the key of n6: it gets in as n6, and nothing that it says as n5 is believed."""
    write_keys(keyed.directory, "of-n6", keyed._node_keys["n6"])
    keyed.add("n5", wait=False, settings={"key_file": str(keyed.directory / "of-n6.key")})
    try:
        told = "false name: a frame from n6 says that it is from 'n5'"
        keyed.wait_until(lambda: any(told in keyed.logs(name) for name in ("n1", "n2", "n3")), "it was found out")
        assert "n5" not in known_to(keyed, "n1")
    finally:
        keyed.remove("n5")


def test_a_voter_changes_its_key_while_the_others_serve() -> None:
    """Everybody lists both keys, the voter takes the new one, everybody drops the old one."""
    with LocalDomain(nodes=3, keys=True) as domain:
        new = new_keys()
        write_keys(domain.directory, "n3-new", new)
        for listed in ([domain._node_keys["n3"].public, new.public], [new.public]):
            for name in ("n1", "n2"):
                node = domain._node(name)
                keys = {**settings_of(domain, name)["node_keys"], "n3": listed}  # type: ignore[dict-item]
                node.write_config({**node.settings, "node_keys": keys})
                domain.restart(name)
            if len(listed) == 2:
                domain.wait_until_up()
                node = domain._node("n3")
                node.write_config({**node.settings, "key_file": str(domain.directory / "n3-new.key")})
                domain.restart("n3")
        domain.wait_until_up()
        domain.hand_over("n3")
        with domain.connect("n1") as session, session.join("changed") as group:
            assert group.send(b"x").approved


def test_loopback_needs_no_keys_for_programs_either() -> None:
    block = PortBlock()
    with LocalDomain(nodes=1, settings={"listen_clients": block.address}) as domain:
        with groupsvc.connect(block.address) as session, session.join("plain") as group:
            group.send(b"x")
        status = [sys.executable, "-m", "groupsvc.cli", "status", "--address", block.address, "--keys", "none"]
        assert 0 == subprocess.run(status, capture_output=True, timeout=60, env=environment()).returncode
        assert "no pidfd" not in domain.logs("n1")
        assert "every user of this machine may connect" in domain.logs("n1")
    block.close()


@pytest.mark.parametrize("keys", [[], ["--keys", "none"]])
def test_the_command_line_says_what_can_be_typed_about_keys(keyed: LocalDomain, keys: list[str]) -> None:
    address = keyed.remote_address("n1") if keys else "tcp://192.0.2.1:7500"
    status = [sys.executable, "-m", "groupsvc.cli", "status", "--address", address, *keys]
    found = subprocess.run(status, capture_output=True, text=True, timeout=60, env=environment())
    assert found.returncode == (3 if keys else 2)
    assert "give --keys FILE, or set GROUPSVC_KEYS" in found.stderr
    assert "keys=" not in found.stderr


# --- Before it starts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["address", "listen_clients"])
def test_a_daemon_beyond_loopback_without_keys_does_not_start(tmp_path: Path, option: str) -> None:
    config = tmp_path / "groupsvcd.toml"
    config.write_text(to_toml({"node": "n1", "runtime_directory": str(tmp_path), option: "tcp://192.0.2.1:7400"}))
    found = subprocess.run(
        [sys.executable, "-m", "groupsvcd", "--config", str(config)],
        capture_output=True, text=True, timeout=60, env=environment(),
    )  # fmt: skip
    assert 2 == found.returncode
    assert (
        f"{option}: 192.0.2.1 is not loopback, and there are no keys: make them with `groupsvc keygen`" in found.stderr
    )


@pytest.mark.parametrize(
    "keys, reason", [(None, "there are no keys"), ("none.key", "cannot be read"), (3, "keys is int")]
)
def test_an_address_of_another_machine_is_not_tried_without_good_keys(keys: object, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        groupsvc.connect("tcp://192.0.2.1:7500", keys=keys)  # type: ignore[arg-type]


def test_where_nobody_listens_one_is_told_what_is_missing() -> None:
    with pytest.raises(DaemonUnreachable, match=r"nobody listens there; .*listen_clients"):
        DaemonConnection("tcp://127.0.0.1:9", keys=False)


def test_the_local_socket_takes_no_keys(keyed: LocalDomain) -> None:
    with pytest.raises(UsageError, match="needs no keys"):
        keyed.connect("n1", keys=keyed.keys)
    with pytest.raises(UsageError, match=r"the public key of the daemon at .* is not known"):
        groupsvc.connect(keyed.remote_address("n1"), keys=new_keys())


def known_to(domain: LocalDomain, name: str) -> set[str]:
    status = domain.status(name)
    assert status is not None
    return {node.name for node in status.nodes}
