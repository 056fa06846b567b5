"""How the calls of D's clients end when answers are lost, forgotten, or come in another order."""

from __future__ import annotations

from groupsvc.wire.client_messages import Problem
from groupsvcd.core.peer_messages import Answered, PeerMessage, Submit, SubmitRefused
from tests.unit.core.trio import Trio


def _problem(trio: Trio, number: int) -> Problem:
    reply = trio.replies[number]
    assert isinstance(reply, Problem), reply
    return reply


def test_an_evicted_answer_ends_the_call_as_unknown_and_frees_its_slot() -> None:
    """L5. The answer to D's first command is lost again and again while the next hundred are done and answered.

    Only so many answers are kept for one origin, and then the first one's is gone: it was done, and nobody knows
    any more what came out. D must not repeat it for ever; with all its slots taken by such calls it could never
    send another.
    """
    trio = Trio.in_service(others="D")
    kept = trio.engines["D"].parameters.answers_kept

    def loses(sender: str, receiver: str, message: PeerMessage) -> bool:
        return isinstance(message, Answered) and receiver == "D" and message.n == 1

    trio.loses = loses
    lost = trio.set("D", "color", "red", timeout=100.0)
    for number in range(kept + 10):
        trio.set("D", f"key-{number}", "value")
        trio.run(0.01)
    trio.run(3.0)
    reply = _problem(trio, lost)
    assert ("unknown", "forgotten") == (reply.family, reply.code)
    trio.forget_the_past()
    trio.run(5.0)
    assert [] == trio.messages(Submit, "D")
    number = trio.set("D", "later", "value")
    trio.run(0.5)
    assert "value" == trio.value(number)


def test_a_forgotten_answer_is_unknown() -> None:
    """L5. The name server says that number 1 was ordered and what came out is no longer kept."""
    trio = Trio.in_service(others="D")
    trio.loses = lambda sender, receiver, message: isinstance(message, Answered) and receiver == "D"
    number = trio.set("D", "color", "red", timeout=100.0)
    trio.run(0.05)
    trio.frame("A", "D", SubmitRefused(0, trio.engines["D"].incarnation, 1, 1, "forgotten"))
    assert ("unknown", "forgotten") == (_problem(trio, number).family, _problem(trio, number).code)
    trio.heal()
    later = trio.set("D", "size", "large")
    trio.run(0.5)
    assert "large" == trio.value(later)


def test_first_submits_out_of_order_are_repaired_not_lost() -> None:
    """L7. D's very first command is lost and its second arrives: a name server that knows nothing of D yet.

    Taken for the remains of a forgotten origin, both would be refused as too old.
    """
    trio = Trio.in_service(others="D")
    submits: list[PeerMessage] = []

    def loses(sender: str, receiver: str, message: PeerMessage) -> bool:
        if sender == "D" and isinstance(message, Submit):
            submits.append(message)
        return submits == [message]

    trio.loses = loses
    first = trio.set("D", "color", "red")
    trio.run(0.005)
    second = trio.set("D", "size", "large")
    trio.run(3.0)
    assert 2 < len(submits)
    assert "red" == trio.value(first)
    assert "large" == trio.value(second)


def test_first_submits_out_of_order_are_repaired_after_a_change_of_name_server_too() -> None:
    """L7. The new name server knows from the directory that D is up and has submitted nothing."""
    trio = Trio.in_service(others="D")
    trio.kill("A")
    trio.run(4.0)
    test = iter([True])
    trio.loses = lambda sender, receiver, message: sender == "D" and isinstance(message, Submit) and next(test, False)
    first = trio.set("D", "color", "red")
    trio.run(0.005)
    second = trio.set("D", "size", "large")
    trio.run(3.0)
    assert ("red", "large") == (trio.value(first), trio.value(second))


def test_a_command_whose_answer_is_lost_is_done_once() -> None:
    """A does it, the answer is lost, A dies; B gives the same answer to the repetition."""
    trio = Trio.in_service(others="D")
    trio.loses = lambda sender, receiver, message: isinstance(message, Answered) and receiver == "D"
    number = trio.set("D", "color", "red", timeout=20.0)
    trio.run(0.05)
    trio.kill("A")
    trio.heal()
    trio.run(6.0)
    assert "red" == trio.value(number)
