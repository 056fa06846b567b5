"""A number of a submission means one thing, also when what had it was given up."""

from __future__ import annotations

from groupsvcd.core.peer_messages import Accepted, Relay, Submit, SubmitRefused
from tests.unit.core.nodegroups.carriers import Carriers


def test_what_is_submitted_after_too_old_is_not_taken_for_a_late_copy() -> None:
    """B2, K1. G's n=1 lies too long; its n=2, which was young, is on its way through a slow relay meanwhile.

    G begins anew with 1. The late n=2 is numbered behind it, and the new n=2 is taken for a copy of it.
    """
    nodes = Carriers.with_group("DEFG", logical_lifetime=20)
    nodes.lose((Submit, Relay), "G>D G>E G>F")
    nodes.submit("G", "old-1")
    nodes.run(0.01)
    nodes.submit("D", *(f"d-{number}" for number in range(30)))
    nodes.run(0.05)
    nodes.submit("G", "old-2")
    nodes.run(0.01)
    late = next(one for one in nodes.messages(Submit, "G") if one.bodies == (b"old-2",))
    nodes.heal()
    nodes.run(2.0)
    assert 1 == len(nodes.user("G").losses)  # "what became of them is not known"
    nodes.join("G")
    nodes.run(1.0)
    nodes.submit("G", "new-1")
    nodes.run(0.1)
    nodes.frame("G", "D", late)
    nodes.run(0.1)
    nodes.submit("G", "new-2")
    nodes.run(0.1)
    nodes.submit("G", "new-3")
    nodes.run(3.0)
    assert 0 == nodes.engines["G"].groups.outstanding("jobs")  # G counts all of them as ordered
    assert [] == nodes.user("G").losses
    assert ["new-1", "new-2", "new-3"] == [text for text in nodes.texts("D") if text.startswith("new")]


def test_a_second_refusal_of_the_same_submission_does_no_harm() -> None:
    """B2, K1. G, a stranger, repeated what is too old before the first refusal came: so there are two refusals.

    Between them G has begun anew, and what it sends is numbered. After the second one it uses that number again.
    """
    nodes = Carriers.with_group("DEF", logical_lifetime=20)
    nodes.send("G", "first")
    nodes.run_until(lambda: 1 == nodes.user("G").accepted_upto)
    nodes.lose((Submit, Relay), "G>D G>E G>F")
    nodes.send("G", "old")
    nodes.run(0.05)
    nodes.submit("D", *(f"d-{number}" for number in range(30)))
    nodes.run(0.05)
    nodes.loses = lambda sender, receiver, message: False
    nodes.run_until(lambda: bool(nodes.messages(SubmitRefused, "D", "G")))
    refused = nodes.messages(SubmitRefused, "D", "G")[0]
    nodes.run_until(lambda: bool(nodes.user("G").failures))
    nodes.lose(Accepted, "D>G")
    nodes.forget_the_past()
    nodes.users.pop(("G", "jobs"))
    nodes.send("G", "X")
    nodes.run(0.05)
    where = nodes.messages(Accepted, "D", "G")
    nodes.frame("D", "G", where[-1])  # the stream is there: X may be sent
    nodes.run_until(lambda: "X" in nodes.texts("D"))
    nodes.frame("D", "G", refused)  # its twin, a little late
    nodes.heal()
    nodes.users.pop(("G", "jobs"))
    nodes.send("G", "Y")
    nodes.run(3.0)
    assert nodes.user("G").accepted_upto  # "what was sent from outside is stable"
    assert "Y" in nodes.texts("D")
