"""Nothing waits for ever, though links break, payloads are missed and servers are full."""

from __future__ import annotations

import pytest

from groupsvcd.core.peer_messages import Data, Relay, Submit
from groupsvcd.core.stream import payloads
from tests.unit.core.nodegroups.carriers import Carriers


def test_servers_full_of_what_cannot_be_numbered_yet_take_what_can(monkeypatch: pytest.MonkeyPatch) -> None:
    """B2. G, H and I send four large payloads each; E and F miss the first of each, and are full with the others."""
    monkeypatch.setattr(payloads, "UNORDERED_BYTES_MAX", 8_000)  # two windows of four, as 32 MiB are of 16
    nodes = Carriers.with_group("DEFGHI", "DEFGHI", parameters={"inline_bytes_max": 64})
    assert ["leader", "server", "server"] == nodes.roles("DEF")
    nodes.loses = lambda sender, receiver, message: isinstance(message, Data) and message.n == 1 and receiver in "EF"
    for name in "GHI":
        nodes.submit(name, *(f"{name}{number}".ljust(1_000, ".") for number in range(4)))
    nodes.run(0.05)
    nodes.heal()
    nodes.run(60.0)
    assert 12 == len(nodes.texts("D"))


def test_a_link_that_breaks_while_a_second_server_is_taken_in_does_not_stop_the_group() -> None:
    """V7. D alone has everything; it proposed {D, E}, and the link to E broke. Both reach the name server."""
    nodes = Carriers.with_group("D")
    nodes.join("E")
    nodes.run_until(lambda: nodes.record().pending is not None)
    nodes.cut("D", "E")
    nodes.run(0.1)
    nodes.submit("D", "a")
    nodes.run(60.0)
    assert {} == nodes.halted
    assert ["a"] == nodes.texts("D")


def test_a_number_given_to_a_payload_that_only_a_dead_origin_has() -> None:
    """B2. A large payload lay too long and its number is used again; servers report the old bytes under it.

    The reference is ordered at once, and then the origin dies: nobody has the bytes, and nothing is stable any more.
    """
    nodes = Carriers.with_group("DEF", parameters={"inline_bytes_max": 64}, logical_lifetime=20)
    nodes.send("G", "first")
    nodes.run_until(lambda: 1 == nodes.user("G").accepted_upto)
    nodes.lose((Submit, Relay), "G>D G>E G>F")
    nodes.send("G", "old".ljust(1_000, "."))
    nodes.run(0.05)
    nodes.submit("D", *(f"d-{number}" for number in range(30)))
    nodes.run(0.3)
    nodes.loses = lambda sender, receiver, message: False
    nodes.run_until(lambda: bool(nodes.user("G").failures))
    nodes.users.pop(("G", "jobs"))
    nodes.forget_the_past()
    nodes.send("G", "new".ljust(1_000, "."))
    nodes.run_until(lambda: bool([one for one in nodes.messages(Submit, "G", "D") if one.bodies]))
    nodes.run(0.0025)
    nodes.die("G")
    nodes.run(5.0)
    nodes.submit("E", "after")
    nodes.run(30.0)
    assert "after" in nodes.texts("D")


def test_a_receiver_that_was_not_heard_for_long_is_not_made_the_server_on_which_all_depends() -> None:
    """V7. G is up, but D and G have not reached each other for a while. E leaves: D takes in G, and H is well."""
    nodes = Carriers.with_group("DEGH", "DEGH", replicas=2)
    assert ["leader", "server", "receiver", "receiver"] == nodes.roles("DEGH")
    nodes.cut("G", "D")
    nodes.run(10.0)
    nodes.leave("E")
    nodes.run(60.0)
    nodes.submit("D", "a")
    nodes.submit("H", "b")
    nodes.run(10.0)
    assert {"a", "b"} == set(nodes.texts("H"))
