"""A refusal that comes twice, once late, says nothing of what was submitted since."""

from __future__ import annotations

from groupsvcd.core.peer_messages import Beat, Order, Relay, Repair, Submit, SubmitRefused
from tests.unit.core.nodegroups.carriers import Carriers


def _refused_and_back() -> tuple[Carriers, SubmitRefused]:
    nodes = Carriers.with_group("DEFG", logical_lifetime=5)
    nodes.lose((Submit, Relay), "G>D G>E G>F")
    nodes.submit("G", "from another age")
    for _ in range(4):
        nodes.submit("E", *"abc")
        nodes.run(0.02)
    nodes.heal()
    nodes.run(2.0)
    assert ["submissions lay too long: what became of them is not known"] == nodes.user("G").losses
    refusal = nodes.messages(SubmitRefused, "D", "G")[0]
    nodes.join("G")
    nodes.run(2.0)
    assert 1 == len(nodes.user("G").joined_at)
    return nodes, refusal


def test_a_late_refusal_of_a_number_that_was_given_anew_ends_nothing() -> None:
    nodes, refusal = _refused_and_back()
    nodes.lose((Order, Beat, Repair), "D>G E>G F>G")
    nodes.submit("G", "new")
    nodes.run(0.05)
    nodes.frame("D", "G", refusal)  # the same message, again
    nodes.heal()
    nodes.run(1.0)
    assert [] == nodes.user("G").losses


def test_what_is_submitted_after_a_late_refusal_is_ordered() -> None:
    """B2. The leader has numbered G's number 1, and G gives it once more."""
    nodes, refusal = _refused_and_back()
    nodes.lose((Order, Beat, Repair), "D>G E>G F>G")
    nodes.submit("G", "new")
    nodes.run(0.05)
    assert "new" in nodes.texts("E")
    nodes.frame("D", "G", refusal)
    nodes.heal()
    nodes.run(2.0)
    nodes.join("G")
    nodes.run(2.0)
    assert nodes.submit("G", "newer")
    nodes.run(20.0)
    assert "newer" in nodes.texts("E")


def test_a_stranger_that_is_told_accepted_has_its_entries_in_the_stream() -> None:
    """K1, B2. C's number 1 was too old; it gives it anew, the refusal comes once more, and it gives it a third time."""
    from groupsvcd.core.peer_messages import Accepted

    nodes = Carriers.with_group("DEF", logical_lifetime=5)
    nodes.loses = lambda sender, receiver, message: (
        sender == "C" and isinstance(message, Submit) and message.stream != 0 and bool(message.bodies)
    )
    nodes.send("C", "from another age")
    nodes.run(0.05)
    for _ in range(4):
        nodes.submit("E", *"abc")
        nodes.run(0.02)
    nodes.heal()
    nodes.run(1.0)
    assert ["it lay too long: what became of it is not known"] == nodes.user("C").failures
    refusal = next(one for one in nodes.messages(SubmitRefused, "D", "C") if one.reason == "too old")
    del nodes.users["C", "jobs"]
    nodes.loses = lambda sender, receiver, message: isinstance(message, Accepted) and message.upto_n > 0
    nodes.send("C", "new")
    nodes.run(0.05)
    assert "new" in nodes.texts("E")
    assert 0 == nodes.user("C").accepted_upto
    nodes.frame("D", "C", refusal)  # the same message, again
    nodes.heal()
    del nodes.users["C", "jobs"]
    nodes.send("C", "newer")
    nodes.run(3.0)
    assert 0 == nodes.user("C").accepted_upto or "newer" in nodes.texts("E"), nodes.texts("E")


def test_who_led_before_and_could_not_write_refuses_nothing_that_is_done() -> None:
    """B2. D could not write, and was replaced; what it refused meanwhile arrives when E has long ordered it."""
    nodes = Carriers.with_group("DEF", durable=True)
    nodes.hang_disk("D")
    assert nodes.submit("F", "a")
    nodes.run(4.0)
    assert "E" == nodes.record().active.leader
    assert ["a"] == nodes.texts("F")
    nodes.frame("D", "F", SubmitRefused(nodes.id(), nodes.incarnation("F"), 1, 0, "no disk"))
    assert nodes.submit("F", "b")
    nodes.run(0.5)
    assert ["a", "b"] == nodes.texts("F")


def test_a_stranger_that_waits_for_nothing_does_not_count_how_long_it_is_refused() -> None:
    """S4. It is patient with whoever cannot write, however long ago another one could not."""
    nodes = Carriers.with_group("DE", durable=True)
    nodes.send("F", "a")
    nodes.run(0.5)
    late = SubmitRefused(nodes.id(), nodes.incarnation("F"), 1, 0, "no disk")
    nodes.frame("D", "F", late)
    nodes.run(60.0)
    for name in "DE":
        nodes.hang_disk(name)
    nodes.submit("E", "b")
    nodes.run(2.5)
    nodes.send("F", "c")
    nodes.run(1.0)
    assert [] == nodes.user("F").failures
    for name in "DE":
        nodes.mend_disk(name)
    nodes.run(4.0)
    assert ["a", "b", "c"] == nodes.texts("E")
