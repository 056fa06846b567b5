"""Options of the daemons that the domain decides: one value everywhere, whoever was down or in the way (MSG-13)."""

from __future__ import annotations

import pytest

from groupsvc.wire.client_messages import ConfigValue, Problem
from groupsvcd.core.domain.commands import SetConfig
from groupsvcd.core.domain.directory import Directory
from groupsvcd.core.domain.limits import OPTION_VALUE_BYTES_MAX, OPTIONS_MAX
from groupsvcd.core.peer_messages import Answered, NodeList
from tests.unit.core.trio import Trio
from tests.unit.directory.scene import Scene

LEVEL = "daemon/log_level"
CLIENTS = "daemon/limits.clients_max"


def options(trio: Trio, node: str) -> dict[str, str]:
    """What this node has been told."""
    return {key: value for key, (value, _) in trio.engines[node].member.options.items()}


@pytest.mark.parametrize("node", ["A", "B", "D"])
def test_an_option_reaches_every_node_wherever_it_is_set(node: str) -> None:
    trio = Trio.in_service(others="DE")
    number = trio.set(node, LEVEL, "debug")
    trio.run(0.5)
    assert "debug" == trio.value(number)
    assert [{LEVEL: "debug"}] * 5 == [options(trio, name) for name in "ABCDE"]
    reply = trio.replies[number]
    assert isinstance(reply, ConfigValue)
    assert {name: [((LEVEL, "debug", reply.version),)] for name in "ABCDE"} == trio.adopted


def test_a_setting_of_programs_goes_to_nobody_who_does_not_ask() -> None:
    trio = Trio.in_service(others="D")
    trio.set("D", "color", "red")
    trio.run(0.5)
    assert {} == options(trio, "D")
    assert [] == trio.messages(NodeList)
    assert {} == trio.adopted


def test_of_two_operators_one_wins_and_the_other_is_told_the_version_that_there_is() -> None:
    """L1 of options: the one ordered first; both nodes do what it says."""
    trio = Trio.in_service()
    first, second = trio.set("B", LEVEL, "debug"), trio.set("C", LEVEL, "error")
    trio.run(0.5)
    won, lost = sorted((trio.replies[first], trio.replies[second]), key=lambda reply: isinstance(reply, Problem))
    assert isinstance(won, ConfigValue)
    assert isinstance(lost, Problem)
    assert ("stale", won.version) == (lost.code, lost.version)
    assert [{LEVEL: won.value}] * 3 == [options(trio, name) for name in "ABC"]


def _without_d_which_was_told() -> tuple[Trio, int]:
    """D knew the level, and has gone; with the version of the level."""
    trio = Trio.in_service(others="D")
    number = trio.set("A", LEVEL, "debug")
    trio.run(0.5)
    trio.kill("D")
    reply = trio.replies[number]
    assert isinstance(reply, ConfigValue)
    return trio, reply.version


def test_a_change_reaches_a_node_that_was_down_at_its_start() -> None:
    """It begins with what it had, and has what was decided meanwhile when it is in."""
    trio, version = _without_d_which_was_told()
    trio.set("A", LEVEL, "error", if_version=version)
    trio.set("A", CLIENTS, "5")
    trio.run(0.5)
    trio.boot("D")
    assert {LEVEL: "debug"} == options(trio, "D")
    trio.run(2.0)
    assert {LEVEL: "error", CLIENTS: "5"} == options(trio, "D")
    assert {LEVEL: "error", CLIENTS: "5"} == {key: value for key, value, _ in trio.disks["D"].options}


def test_what_was_withdrawn_while_a_node_was_down_is_withdrawn_there() -> None:
    trio, version = _without_d_which_was_told()
    trio.set("A", LEVEL, "", if_version=version)
    trio.run(0.5)
    trio.boot("D")
    trio.run(2.0)
    assert {LEVEL: ""} == options(trio, "D")


def test_options_survive_a_restart_of_all_nodes_before_there_is_a_name_server() -> None:
    trio = Trio.in_service()
    trio.set("A", LEVEL, "debug")
    trio.run(0.5)
    trio.kill(*"ABC")
    trio.boot("B")
    trio.run(2.0)
    assert [] == trio.leaders
    assert {LEVEL: "debug"} == options(trio, "B")


def test_a_name_server_that_dies_between_ordering_and_answering_has_set_it_once() -> None:
    """The command is repeated to the next one under its old number, and gets the answer of the first time."""
    trio = Trio.in_service()
    trio.loses = lambda sender, receiver, message: isinstance(message, Answered)
    number = trio.set("B", LEVEL, "debug", timeout=20.0)
    trio.run(0.5)
    assert number not in trio.replies
    trio.kill("A")
    trio.heal()
    trio.run(6.0)
    reply = trio.replies[number]
    assert isinstance(reply, ConfigValue)
    assert (("debug", reply.version), 1) == (trio.voter("B").directory.config(LEVEL), len(trio.adopted["B"]))


def test_a_command_ordered_twice_is_done_once() -> None:
    scene = Scene()
    first = scene.order(SetConfig(LEVEL, "debug", 0))
    assert first["ok"]
    assert not scene.order(SetConfig(LEVEL, "debug", 0))["ok"]
    assert ((LEVEL, "debug", first["version"]),) == scene.directory.settings.options_since(0)


def test_a_directory_from_a_checkpoint_tells_the_same_options_under_the_same_version() -> None:
    scene = Scene()
    scene.order(SetConfig("color", "red", 0))
    scene.order(SetConfig(LEVEL, "debug", 0))
    scene.order(SetConfig("color2", "red", 0))
    restored = Directory.restore(scene.directory.snapshot())
    assert scene.directory.list_version == restored.list_version
    assert scene.directory.settings.options_since(0) == restored.settings.options_since(0)
    assert scene.directory.digest() == restored.digest()


def test_options_are_few_and_small_whoever_sets_them() -> None:
    """Every node is told of all of them with its list."""
    scene = Scene()
    assert "bytes" in scene.order(SetConfig(LEVEL, "x" * (OPTION_VALUE_BYTES_MAX + 1), 0))["problem"]
    for number in range(OPTIONS_MAX):
        assert scene.order(SetConfig(f"daemon/strange-{number}", "1", 0))["ok"]
    assert "no more fit" in scene.order(SetConfig(LEVEL, "debug", 0))["problem"]
    assert scene.order(SetConfig("color", "red", 0))["ok"]
