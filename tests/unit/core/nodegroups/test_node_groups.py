"""All groups of a node: who wants which, which message is for which, and what is done without a lease."""

from __future__ import annotations

from collections.abc import Sequence

from groupsvcd.core.nodegroups.node_groups import CARRIED_TOLD_MAX, NodeGroups
from groupsvcd.core.peer_messages import (
    AliveAck,
    Answered,
    Beat,
    Claim,
    Held,
    Insert,
    Inserted,
    Leave,
    NotLeader,
    Order,
    Promised,
    Repair,
    RepairAsk,
    Submit,
    Tell,
)
from groupsvcd.core.stream.entries import Entry
from groupsvcd.core.views import View
from tests.unit.core.nodegroups.carriers import Carriers, Witness

# --- Joining and leaving ---


def test_the_first_who_asks_forms_the_group_and_the_others_are_inserted() -> None:
    """GS-03, GS-05. At the same moment from four nodes: one leads, and nobody is told anything else."""
    nodes = Carriers.in_service(others="DEFG")
    users = [nodes.join(name) for name in "DEFG"]
    nodes.run(2.0)
    assert 1 == nodes.roles("DEFG").count("leader")
    assert [[]] * 4 == [user.losses for user in users]
    assert 1 == len({user.members for user in users})
    assert sorted("DEFG") == sorted(users[0].names)


def test_a_node_joins_once_for_all_its_users() -> None:
    """GS-02. The second is given everything from the moment it came; the first who leaves takes nobody with it."""
    nodes = Carriers.with_group("DEF")
    first = nodes.user("F")
    nodes.submit("E", "a")
    nodes.run(0.1)
    second = nodes.join("F")
    nodes.submit("E", "b")
    nodes.run(0.1)
    assert [] == nodes.messages(Insert, "F")
    assert (["a", "b"], ["b"]) == (first.texts, second.texts)
    nodes.act("F", lambda groups: groups.leave("jobs", first))
    nodes.submit("E", "c")
    nodes.run(1.0)
    assert (["left"], ["a", "b"]) == (first.losses, first.texts)
    assert ([], ["b", "c"]) == (second.losses, second.texts)


def test_who_joins_while_its_node_is_leaving_is_let_in_again() -> None:
    """GS-07. The node leaves first, and then comes back: the user is told of neither."""
    nodes = Carriers.with_group("DEFG")
    nodes.leave("G")
    user = nodes.join("G")
    nodes.run(2.0)
    nodes.submit("E", "a")
    nodes.run(0.1)
    assert ([], ["a"], 1) == (user.losses, user.texts, len(user.joined_at))


def test_who_leaves_before_it_was_inserted_is_no_member() -> None:
    """Its Insert may have been ordered: then the node leaves again, in due form."""
    nodes = Carriers.with_group("DEF")
    user = nodes.join("G")
    nodes.run_until(lambda: bool(nodes.messages(Insert, "G")))
    nodes.leave("G")
    nodes.run(2.0)
    assert (["left"], "none") == (user.losses, nodes.roles("G")[0])
    assert "DEF" == nodes.user("D").names


def test_who_leaves_before_the_answer_of_the_name_server_has_joined_nothing() -> None:
    """Nothing was asked of the group yet."""
    nodes = Carriers.with_group("DEF")
    user = nodes.join("G")
    nodes.leave("G")
    nodes.run(1.0)
    assert ([], "none", []) == (nodes.messages(Insert), nodes.roles("G")[0], user.joined_at)


def test_an_answer_that_is_lost_delays_a_join_and_no_more() -> None:
    """GS-06. Every question and every Insert is repeated."""
    nodes = Carriers.with_group("DEF")
    lost: list[type] = []

    def loses(sender: str, receiver: str, message: object) -> bool:
        if isinstance(message, Tell | Insert | Inserted) and type(message) not in lost and "G" in (sender, receiver):
            lost.append(type(message))
            return True
        return False

    nodes.loses = loses
    user = nodes.join("G")
    nodes.run(3.0)
    assert {Tell, Insert, Inserted} == set(lost)
    assert 1 == len(user.joined_at)


def test_who_asks_a_leader_that_leads_no_more_is_sent_on() -> None:
    """GS-09. The answer of the name server was old when it came."""
    nodes = Carriers.with_group("DEF")
    user = nodes.join("G")
    nodes.run_until(lambda: bool(nodes.messages(Tell, "A", "G")))
    nodes.act("D", lambda groups: groups.leave("jobs", nodes.user("D")))
    nodes.lose(Insert, "G>D")
    nodes.run(0.5)
    nodes.heal()
    nodes.run(2.0)
    assert 1 == len(user.joined_at)
    assert "EFG" == user.names


def test_a_group_that_cannot_be_formed_says_why() -> None:
    """The name begins with a character that is reserved."""
    nodes = Carriers.in_service(others="D")
    user = nodes.join("D", "_secret")
    nodes.run(1.0)
    assert 1 == len(user.losses)
    assert "_, which is reserved" in user.losses[0]


def test_a_group_that_was_formed_is_not_led_without_a_lease() -> None:
    """L5. When D hears that the group is its own, its lease is over: it leads when it has one again."""
    nodes = Carriers.in_service(others="DE")
    nodes.lose((Answered, AliveAck), "A>D")
    user = nodes.join("D")
    nodes.run(2.5)
    nodes.heal()
    nodes.lose(AliveAck, "A>D")
    nodes.run(1.5)
    assert nodes.messages(Answered, "A", "D")
    assert ([], []) == (user.joined_at, nodes.lines("view_active"))
    nodes.heal()
    nodes.run(0.5)
    assert ([0], ["leader"]) == (user.joined_at, nodes.roles("D"))


# --- Many groups ---


def test_groups_are_independent() -> None:
    """GS-02. Own members, own numbers, own leader; one that stands still holds up no other."""
    nodes = Carriers.in_service(others="DEF")
    for group, carriers in {"one": "DEF", "two": "EF", "three": "FD"}.items():
        for name in carriers:
            nodes.join(name, group)
            nodes.run(0.3)
    nodes.run(0.5)
    assert ["leader", "leader", "leader"] == [
        nodes.roles(name, group)[0] for name, group in [("D", "one"), ("E", "two"), ("F", "three")]
    ]
    nodes.cut("D", "F")
    nodes.submit("E", "a", group="two")
    nodes.run(0.1)
    assert ["a"] == nodes.texts("F", "two")
    assert [] == nodes.texts("F", "one")


def test_a_late_message_to_a_group_that_has_ended_reaches_no_other_of_its_name() -> None:
    """Frames carry ids, and an id is never used again."""
    nodes = Carriers.with_group("D")
    old = nodes.id()
    nodes.leave("D")
    nodes.run(0.5)
    nodes.join("D")
    nodes.run(0.5)
    assert old != nodes.id()
    nodes.frame("E", "D", Submit(old, 1, 0, (b"for the dead",)))
    nodes.run(0.1)
    assert [] == nodes.texts("D")
    assert [NotLeader(old, 0, "")] == nodes.messages(NotLeader, "D", "E")


def test_many_idle_groups_are_not_looked_at_in_every_step() -> None:
    """A heap knows which one is next; a step touches only those that something happened to."""
    nodes = Carriers.in_service("A", "")
    for number in range(50):
        nodes.join("A", f"group-{number}")
    nodes.run(1.0)
    groups = nodes.engines["A"].groups
    touched: list[int] = []
    settle = groups.settle

    def counted() -> None:
        touched.append(len(groups._touched))
        settle()

    groups.settle = counted  # type: ignore[method-assign]
    nodes.submit("A", "a", group="group-7")
    nodes.run(0.0)
    assert 0 < max(touched) <= 2
    assert ["a"] == nodes.texts("A", "group-7")


# --- Ghosts ---


def test_who_is_taken_for_a_member_of_what_it_does_not_carry_leaves() -> None:
    """An old Insert was ordered after its node had given up."""
    nodes = Carriers.with_group("DEF")
    term = nodes.engines["G"].groups._keys
    for message in (
        Inserted(nodes.id(), nodes.incarnation("G"), term, 13, 7, b""),
        Order(nodes.id(), 13, 8, (), 7),
        Beat(nodes.id(), 13, 7, 7, 0),
    ):
        nodes.forget_the_past()
        nodes.frame("D", "G", message)
        assert [Leave(nodes.id(), term)] == nodes.messages(Leave, "G", "D")


def test_a_ghost_is_removed_by_the_leader() -> None:
    """It was inserted, and its node has forgotten why."""
    nodes = Carriers.with_group("DEF")
    nodes.engines["D"].links.need_too(nodes.id(), "G", "at:G")
    nodes.frame("G", "D", Insert(nodes.id(), 0, 0))
    nodes.run(1.0)
    assert [("DEFG", "DEF")] == [
        (
            "".join(name for name, _ in lines[0].args["members"]),
            "".join(name for name, _ in lines[-1].args["members"]),
        )
        for lines in [[line for line in nodes.lines("members") if line.node == "D"]]
    ]


def test_who_asks_a_node_without_the_group_is_told_to_look_it_up_again() -> None:
    """Unless nobody knows the asker: who is not up gets no answer."""
    nodes = Carriers.with_group("DEF")
    for message in (Insert(99, 1, 0), Leave(99, 1), Submit(99, 1, 0, (b"a",))):
        nodes.forget_the_past()
        nodes.frame("E", "G", message)
        assert [NotLeader(99, 0, "")] == nodes.messages(NotLeader, "G", "E")
    nodes.forget_the_past()
    nodes.frame("E", "G", Insert(99, 1, 0), incarnation=nodes.incarnation("E") + 1)
    assert [] == nodes.messages(NotLeader)


# --- Without a lease ---


def _isolated(name: str) -> Carriers:
    """A group on D, E and F; one of them has heard no voter for longer than its lease, but hears the others."""
    nodes = Carriers.with_group("DEF", commit_k=3)
    nodes.cut(name, *"ABC")
    nodes.run_until(lambda: nodes.engines[name].member.isolated, within=3.0)
    nodes.forget_the_past()
    return nodes


def test_a_server_without_a_lease_holds_nothing() -> None:
    """L5. It says no Held, so what needs it does not become stable; and it delivers nothing."""
    nodes = _isolated("F")
    nodes.submit("E", "a")
    nodes.run(0.2)
    assert ([], []) == (nodes.messages(Held, "F"), nodes.texts("F"))
    assert [] == nodes.texts("D")


def test_a_leader_without_a_lease_orders_and_delivers_nothing() -> None:
    """L5. Another one may lead already."""
    nodes = _isolated("D")
    nodes.submit("D", "a")
    nodes.submit("E", "b")
    nodes.run(0.2)
    assert ([], []) == (nodes.messages(Order, "D"), nodes.texts("D"))
    assert [] == nodes.messages(Beat, "D")


def test_without_a_lease_a_node_still_promises_and_gives_repairs() -> None:
    """GS-11. What it has may be needed by who takes over."""
    nodes = _isolated("F")
    id, last = nodes.id(), nodes.seat("F").replica.log.last
    nodes.frame("E", "F", Claim(id, 10_000, view=View(10_000, "E", (nodes.node("E"),), 1)))
    assert [10_000] == [report.epoch for report in nodes.messages(Promised, "F", "E")]
    nodes.frame("E", "F", RepairAsk(id, last, last))
    assert 1 == len(nodes.messages(Repair, "F", "E"))


def test_with_its_lease_back_a_node_goes_on_where_it_was() -> None:
    """It was cut off for longer than its lease, and nobody had declared it down yet."""
    nodes = _isolated("F")
    nodes.submit("E", "a")
    nodes.heal()
    nodes.run(1.0)
    assert ["a"] == nodes.texts("F") == nodes.texts("D")
    assert [] == nodes.user("F").losses


def test_who_was_declared_down_loses_its_groups_and_may_join_again() -> None:
    """GS-08. The others went on without it; under its new incarnation it begins anew."""
    nodes = Carriers.with_group("DEF")
    old = nodes.incarnation("F")
    nodes.cut("F", *"ABCDE")
    nodes.run(4.0)
    assert "DE" == nodes.user("D").names
    nodes.heal()
    nodes.run(1.0)
    assert ["this node was declared down"] == nodes.user("F").losses
    assert nodes.incarnation("F") > old
    user = nodes.join("F")
    nodes.run(1.0)
    nodes.submit("F", "a")
    nodes.run(0.1)
    assert (["a"], ["a"]) == (user.texts, nodes.texts("D"))


# --- What users see ---


def test_a_user_may_act_from_within_what_it_is_told() -> None:
    """Whatever it does there happens in the same step, or in a later one; never in the middle."""
    nodes = Carriers.with_group("DE")

    class Echo(Witness):
        def __init__(self, groups: NodeGroups) -> None:
            super().__init__()
            self.groups = groups

        def delivered(self, first_seq: int, entries: Sequence[Entry]) -> None:
            super().delivered(first_seq, entries)
            for entry in entries:
                if entry.body == b"ping":
                    self.groups.submit("jobs", [b"pong"])
                if entry.body == b"pong":
                    self.groups.leave("jobs", self)

    echo = Echo(nodes.engines["F"].groups)
    nodes.act("F", lambda groups: groups.join("jobs", {}, echo))
    nodes.run(1.0)
    nodes.submit("E", "ping")
    nodes.run(2.0)
    assert ["ping", "pong"] == nodes.texts("D")
    assert (["ping", "pong"], ["left"]) == (echo.texts, echo.losses)
    assert "DE" == nodes.user("D").names


def test_the_window_is_full_until_something_is_stable() -> None:
    """X1. What is not taken has no number; the user tries again."""
    nodes = Carriers.with_group("DEF")
    nodes.lose(Submit, "E>D")
    assert 1 == nodes.submit("E", *(["x"] * 4_000))
    assert 0 == nodes.submit("E", *(["y"] * 200))
    nodes.heal()
    nodes.run(1.0)
    assert 4_001 == nodes.submit("E", "z")


def test_submitting_to_a_group_that_this_node_does_not_carry_is_not_taken() -> None:
    """There is ``send`` for that."""
    nodes = Carriers.with_group("DEF")
    assert 0 == nodes.submit("G", "a")


def test_who_serves_many_groups_tells_the_name_server_of_them_in_turn() -> None:
    """GS-02: an answer to a call stays small, whatever a node carries; within a few calls every group was in one."""
    nodes = Carriers.in_service(others="D")
    for number in range(CARRIED_TOLD_MAX + 20):
        nodes.join("D", f"g{number}")
    nodes.run(1.0)
    groups = nodes.engines["D"].groups
    told = [groups.carried() for _ in range(4)]
    assert all(len(some) <= CARRIED_TOLD_MAX for some in told)
    assert {status.id for status in groups.status()} == {group_id for some in told for group_id, _ in some}
    assert CARRIED_TOLD_MAX + 20 == len(groups.status())


# --- Grants to who cannot take them ---


def test_a_grant_to_a_node_that_no_longer_carries_the_group_goes_to_another() -> None:
    """E has ended its part without a word, and is to lead now: it says so, and F leads with all that was stable."""
    nodes = Carriers.with_group("DEFG", replicas=4, commit_k=3)
    nodes.submit("F", "a")
    nodes.run(0.2)
    nodes.act("E", lambda groups: nodes.part("E").end("the test wants it so"))
    nodes.die("D")
    nodes.run(1.0)
    assert ["none", "leader", "server"] == nodes.roles("EFG")
    assert not nodes.record().active.forced
    nodes.submit("F", "b")
    nodes.run(0.5)
    assert ["a", "b"] == nodes.texts("F") == nodes.texts("G")


def test_a_view_with_a_server_that_no_longer_carries_the_group_is_replaced() -> None:
    """F is only to serve: E, who leads, would wait for it for ever if all must hold an entry."""
    nodes = Carriers.with_group("DEF", commit_k=3)
    nodes.act("F", lambda groups: nodes.part("F").end("the test wants it so"))
    nodes.die("D")
    nodes.run(1.0)
    nodes.submit("E", "b")
    nodes.run(0.5)
    assert (["leader", "none"], ["b"]) == (nodes.roles("EF"), nodes.texts("E"))
