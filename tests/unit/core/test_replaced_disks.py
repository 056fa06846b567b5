"""The disk behind a voter's word: a replaced one never counts again, and a word counts only once it is written.

Node C's state directory burnt down, an empty one took its place and was admitted. Months later somebody finds the
old one and puts it back. It has forgotten everything its successor promised and held.
"""

from __future__ import annotations

from groupsvc.wire.client_messages import ConfigValue
from groupsvcd.core.peer_messages import Alive, Claim, Held, LeaderAlive, Opened, Promised, Support, Unwelcome
from tests.unit.core.trio import Disk, Trio


def _replaced() -> tuple[Trio, Disk]:
    """C runs on a new disk that the domain has admitted; the old one lies in a drawer."""
    trio = Trio.in_service()
    old = trio.disks["C"].copy()
    trio.kill("C")
    trio.boot_on("C", Disk("disk-C-new"))
    trio.run(6.0)
    assert "disk-C-new" == trio.voter("A").directory.voters["C"]
    assert trio.voter("C").formed
    return trio, old


def test_a_disk_put_back_does_not_make_the_domain_forget_what_was_acknowledged() -> None:
    """S1. A and the new C acknowledge a value that B has not; A dies, and the old disk goes back into C.

    Would the old C count, then B and C were a majority of a domain in which the value was never set.
    """
    trio, old = _replaced()
    trio.cut("A", "B")
    number = trio.set("A", "color", "red")
    trio.run(0.3)
    assert "red" == trio.value(number)
    new = trio.disks["C"]
    trio.kill("A", "C")
    trio.heal()
    trio.boot_on("C", old)
    trio.forget_the_past()
    trio.run(8.0)
    assert [] == trio.lines("office")
    assert "B" in trio.engines
    trio.kill("C")
    trio.boot_on("C", new)
    trio.run(5.0)
    number = trio.get("B", "color")
    trio.run(1.0)
    assert "red" == trio.value(number)


def test_a_disk_put_back_promises_nothing() -> None:
    """S1. B claims with a log that names C's new disk: the old one keeps silent."""
    trio, old = _replaced()
    trio.kill("A", "C")
    trio.boot_on("C", old)
    trio.forget_the_past()
    trio.run(6.0)
    assert trio.messages(Claim, "B", "C"), "B did ask"
    assert [] == trio.messages(Promised, "C")


def test_a_disk_put_back_cannot_lead_even_with_the_promise_of_a_lagging_voter() -> None:
    """S1. The old C claims on the strength of its old log; B's report tells that this disk was replaced."""
    trio, old = _replaced()
    trio.kill("A", "C")
    trio.boot_on("C", old)
    trio.forget_the_past()
    claim = Claim(0, trio.voter("B").server.promised + 5, (("A", "disk-A"), ("B", "disk-B"), ("C", "disk-C")))
    trio.run(2.0)
    trio.frame("C", "B", claim)
    trio.run(6.0)
    assert [] == trio.lines("office")


def test_a_disk_put_back_cannot_lead_even_with_the_promises_of_all_others() -> None:
    """S1. The leader is silent for a moment; the old C, the best candidate, claims, and A and B both promise.

    Would it lead, it were one of the two that make an entry stable: with A it acknowledges a value. Then the newer
    disk goes back into C, A dies, and B and C know nothing of the value.
    """
    trio = Trio.in_service(of={"C": {"preference": 9}})
    old = trio.disks["C"].copy()
    trio.kill("C")
    trio.boot_on("C", Disk("disk-C-new"))
    trio.run(8.0)
    new = trio.disks["C"]
    trio.kill("C")
    trio.run(1.0)
    (leader,) = trio.leaders
    (other,) = {"A", "B"} - {leader}
    trio.loses = lambda sender, receiver, message: isinstance(message, Unwelcome)
    trio.boot_on("C", old)
    trio.run(0.5)
    trio.forget_the_past()
    trio.loses = lambda sender, receiver, message: isinstance(message, Unwelcome | LeaderAlive)
    trio.run_until(lambda: trio.leaders == [])
    trio.loses = lambda sender, receiver, message: isinstance(message, Unwelcome)
    trio.run_until(lambda: any(line.args["phase"] == "open" for line in trio.lines("office")))
    first = trio.leaders[0]
    trio.cut(other, "C", leader)
    number = trio.set(leader, "color", "red", timeout=0.5)
    trio.run(0.1)
    told = trio.replies.get(number)
    trio.kill("C", leader)
    trio.heal()
    trio.boot_on("C", new)
    trio.run(6.0)
    asked = trio.get(other, "color")
    trio.run(1.0)
    assert not isinstance(told, ConfigValue) or "red" == trio.value(asked)
    assert "C" != first


def test_a_disk_put_back_neither_backs_the_name_server_nor_holds_for_it() -> None:
    """S1. A leads with B; then B is cut off, and C comes back on its old disk, answering everything as it did.

    Would its answers or its Held count, A could acknowledge without a majority.
    """
    trio, old = _replaced()
    trio.kill("C")
    trio.loses = lambda sender, receiver, message: isinstance(message, Unwelcome)  # or C would stop at once
    trio.boot_on("C", old)
    trio.cut("B", "A", "C")
    number = trio.set("A", "color", "red")
    trio.run(0.2)
    office, server = trio.office("A"), trio.voter("A").server
    backed, last = office.roll.backed_n, server.log.last
    assert backed < office.roll.n
    for echo in range(backed + 1, office.roll.n + 1):
        trio.frame("C", "A", Alive(office.epoch, echo, 1, "disk-C"))
    trio.frame("C", "A", Opened(0, office.epoch, last), Held(0, office.epoch, last, last))
    assert backed == office.roll.backed_n
    assert server.stable < last
    trio.run(2.0)
    assert number not in trio.replies
    assert [] == trio.leaders


def test_a_disk_put_back_is_refused_with_a_reason() -> None:
    """S1. The operator is told what is wrong and what to do."""
    trio, old = _replaced()
    trio.kill("C")
    trio.boot_on("C", old)
    trio.run(4.0)
    assert ["C"] == list(trio.halted)
    assert "the state directory of C was replaced by another one" in trio.halted["C"]
    assert "start it with an empty one" in trio.halted["C"]
    assert ["A"] == trio.leaders


def test_a_voter_backs_a_name_server_only_once_its_log_is_on_disk() -> None:
    """S4. A forms the domain; C has the first entry in memory and its write hangs.

    Would C's answers count, A could give out leases that nobody remembers after C is started again.
    """
    trio = Trio()
    trio.boot("A", "B", "C")
    trio.run_until(lambda: trio.voter("C").formed)
    trio.hang_disk("C")
    log = trio.disks["C"].log
    assert log is not None
    assert 0 == log.accepted
    trio.run(1.0)
    answers = trio.messages(Alive, "C")
    assert answers
    assert {""} == {answer.state_id for answer in answers}
    trio.mend_disk("C")
    trio.run(1.0)
    assert "disk-C" == trio.messages(Alive, "C")[-1].state_id


def test_a_name_server_whose_voters_have_nothing_on_disk_acknowledges_nothing() -> None:
    """S4. Both B and C hang while the domain is formed: there is no domain yet that anything could be said for."""
    trio = Trio()
    trio.boot("A", "B", "C")
    trio.run_until(lambda: trio.messages(LeaderAlive) != [])
    trio.hang_disk("B")
    trio.hang_disk("C")
    trio.run(0.9)
    assert all(trio.status(name).suspended for name in "ABC")


def test_the_support_of_a_blank_voter_puts_nobody_into_office() -> None:
    """C lost its disk. Its support is given to whoever canvasses, but it says that nothing stands behind it."""
    trio = Trio.in_service()
    trio.kill("A", "C")
    trio.disks["C"] = Disk("disk-C-new")
    trio.boot("C")
    trio.forget_the_past()
    trio.run(6.0)
    assert not any(support.formed for support in trio.messages(Support, "C"))
    assert [] == trio.lines("office")


def test_a_leader_that_learns_of_a_replacement_by_recovery_claims_with_the_new_disk() -> None:
    """Five voters. A was cut off while E's disk was replaced; it wins with C's log, which names the new one.

    A's own log still names the old disk when it claims. From then on it must ask E by the new one, or E, which was away
    meanwhile, never gets back in.
    """
    trio = Trio.in_service("ABCDE", of={name: {"candidate": False} for name in "CDE"})
    trio.cut("A", "B", "C", "D", "E")
    trio.run(3.0)
    trio.kill("E")
    trio.boot_on("E", Disk("disk-E-new"))
    trio.run(8.0)
    assert trio.voter("E").formed
    trio.kill("B", "E")
    trio.heal()
    assert ("E", "disk-E-new") not in trio.voter("A").voters_in_log()
    trio.run_until(lambda: trio.leaders == ["A"])
    trio.boot("E")
    trio.run(4.0)
    assert trio.voter("A").server.log.accepted == trio.voter("E").server.log.accepted
    assert not trio.status("E").suspended
