"""Promises that early delivery and late handing up put at risk: each test says what must be so."""

from __future__ import annotations

from groupsvcd.core.effects import Afterwards, Journal
from groupsvcd.core.events import LocalCall
from groupsvcd.core.nodegroups.controls import ViewStarted, decode_control, encode_control
from groupsvcd.core.nodegroups.phases import Phase
from groupsvcd.core.peer_messages import Answered, Claim, Data, DataHeld, Held, NodeEntry, NodeList, Order, Tell
from groupsvcd.core.stream.entries import decode_entry, encode_entry, is_reference
from groupsvcd.core.stream.server import Server
from tests.unit.core.nodegroups.carriers import Carriers


def _ordered(nodes: Carriers, leader: str = "D") -> list[Order]:
    return [order for order in nodes.messages(Order, leader, "E") if order.stream == nodes.id() and order.entries]


def _payload_of_a_dead_origin() -> Carriers:
    """G (member) sent a large payload: E and F have it, D does not; what E and F say of it is late. G dies."""
    nodes = Carriers.with_group("DEFG", parameters={"inline_bytes_max": 64})
    nodes.lose(Data, "G>D E>D F>D")
    nodes.lose(DataHeld, "E>D F>D")
    nodes.submit("G", "x" * 1_000)
    nodes.run(0.05)
    said = [(name, nodes.messages(DataHeld, name, "D")[-1]) for name in "EF"]
    nodes.die("G")
    nodes.run_until(lambda: bool(_ordered(nodes)))  # NodesFailed has its number, and nobody has it yet
    nodes.heal()
    for name, late in said:
        nodes.frame(name, "D", late)
    return nodes


def test_a_leader_whose_group_ends_has_delivered_before_what_it_called_stable() -> None:
    """B4. The last member leaves, and the answer of the directory comes before the entries were handed up."""
    nodes = Carriers.with_group("D")
    engine, part = nodes.engines["D"], nodes.part("D")
    effects = engine.step(LocalCall(lambda: engine.groups.submit(part.name, [b"a"]) and None), nodes.now)
    late = [effect.action for effect in effects if isinstance(effect, Afterwards)]
    assert 1 == len(late)
    effects = engine.step(LocalCall(lambda: part.end("left")), nodes.now)
    effects += engine.step(LocalCall(late[0]), nodes.now)
    ops = [effect.op for effect in effects if isinstance(effect, Journal) and effect.op in ("delivered", "group_lost")]
    assert ["delivered", "group_lost"] == ops
    assert ["a"] == nodes.texts("D")


def test_nothing_of_a_node_is_numbered_after_its_failure() -> None:
    nodes = _payload_of_a_dead_origin()
    nodes.run(0.1)
    kinds = []
    for order in _ordered(nodes):
        for raw in order.entries:
            if is_reference(raw):
                kinds.append("reference")
            else:
                entry = decode_entry(raw)
                kinds.append(type(decode_control(entry.body)).__name__ if not entry.origin else entry.origin)
    assert ["NodesFailed"] == kinds


def test_a_group_goes_on_when_the_origin_of_a_large_payload_has_died() -> None:
    nodes = _payload_of_a_dead_origin()
    nodes.run(1.0)
    nodes.submit("E", "after")
    nodes.run(30.0)
    assert ["after"] * 3 == [(nodes.texts(name) or ["nothing"])[-1] for name in "DEF"]


def test_a_node_that_learns_that_it_was_declared_down_delivers_nothing_more() -> None:
    """A leads and is name server: behind an order, in one frame, the list in which E is down. It says no Held."""
    nodes = Carriers.with_group("AEF")
    nodes.lose(Order, "A>E")
    nodes.submit("A", "a")
    nodes.run(0.0005)
    order = _ordered(nodes, "A")[-1]
    member = nodes.engines["E"].member
    mine = member.nodes["E"]
    down = NodeEntry("E", mine.incarnation, "down", mine.address, mine.state_id, mine.voter, member.list_version + 1)
    nodes.frame("A", "E", order, NodeList(member.leader_epoch, member.list_version, member.list_version + 1, (down,)))
    assert member.isolated
    assert [] == nodes.texts("E")


def _announced_and_not_handed_up() -> Carriers:
    """D announces "a" and is stopped before it hands it up itself, until its lease has ended."""
    nodes = Carriers.with_group("DEFG")
    nodes.cut("D", "A", "B", "C")
    nodes.run(1.0)
    nodes.lose(Held)
    nodes.submit("D", "a")
    nodes.run(0.01)
    held = [one for one in nodes.messages(Held, "E", "D") if one.stream == nodes.id()][-1]
    nodes.now = nodes.engines["D"].member.lease_until - 0.001
    nodes.frame("E", "D", held)
    nodes.now += 0.002
    nodes.run(0.01)
    assert nodes.engines["D"].member.isolated
    return nodes


def test_a_leader_that_lost_its_lease_before_handing_up_does_so_later() -> None:
    nodes = _announced_and_not_handed_up()
    status = nodes.about("D")
    assert status is not None
    assert status.stable > status.delivered
    nodes.heal()
    nodes.run(0.3)
    print(nodes.incarnation("D"), nodes.user("D").losses)
    assert ["a"] == nodes.texts("D")


def test_who_has_announced_what_a_forced_view_lacks_has_lost_the_group() -> None:
    """As who has delivered it: it was stable here, and others have delivered it."""
    nodes = _announced_and_not_handed_up()
    nodes.cut("D", "E", "F", "G")
    nodes._cut -= {("D", "A"), ("A", "D"), ("D", "B"), ("B", "D"), ("D", "C"), ("C", "D")}
    nodes.loses = lambda sender, receiver, message: False
    nodes.run_until(lambda: not nodes.engines["D"].member.isolated)
    status = nodes.about("D")
    assert status is not None
    assert (status.stable, status.stable - 1) == (status.last, status.delivered)
    epoch, began = status.epoch + 100, status.stable
    started = encode_control(ViewStarted(epoch, "G", (nodes.node("G"),), 1, epoch << 20, True))
    entries = (encode_entry("", 0, 0, started), encode_entry("G", nodes.incarnation("G"), 1, b"b"))
    nodes.frame("G", "D", Order(nodes.id(), epoch, began, entries, began + 1, 0, began))
    nodes.run(0.01)
    assert [] == nodes.texts("D")
    assert 1 == len(nodes.user("D").losses)


def test_nothing_is_delivered_in_a_group_that_has_ended() -> None:
    """D alone ends its group. Just before it learns so it orders that a stranger has failed, and announces that."""
    nodes = Carriers.with_group("D")
    nodes.send("G", "from outside")
    nodes.run(0.1)
    assert ["from outside"] == nodes.texts("D")
    nodes.lose((Answered, Tell), "A>D B>D C>D")
    group, part = nodes.id(), nodes.part("D")
    nodes.forget_the_past()
    nodes.leave("D")
    nodes.run(0.02)
    answer = nodes.messages(Answered, "A", "D")[-1]
    assert answer.answer.get("ok"), answer
    member = nodes.engines["D"].member
    old = member.nodes["G"]
    down = NodeEntry("G", old.incarnation, "down", old.address, old.state_id, old.voter, member.list_version + 1)
    nodes.forget_the_past()
    nodes.frame("A", "D", NodeList(member.leader_epoch, member.list_version, member.list_version + 1, (down,)))
    nodes.frame("A", "D", answer)
    assert part.phase is Phase.OVER
    ended = [line.op for line in nodes.journal if line.node == "D" and line.group == group]
    nodes.run(0.01)
    after = [line.op for line in nodes.journal if line.node == "D" and line.group == group][len(ended) :]
    assert [] == after
    assert group not in nodes.engines["D"].links._needed


def test_a_receiver_that_opens_the_log_of_its_own_epoch_keeps_what_comes_meanwhile() -> None:
    """G is to be the third server, hears of it late, and waits for a payload when it does; the stream goes on."""
    nodes = Carriers.with_group("DEFG", parameters={"inline_bytes_max": 64})
    nodes.lose(Claim, "E>G")
    nodes.die("D")
    nodes.run_until(lambda: nodes.record().active.names == ("E", "F", "G"))
    nodes.run(0.02)
    nodes.lose(Data, "E>G F>G")
    nodes.submit("F", "x" * 1_000)
    nodes.run(0.01)
    nodes.heal()
    nodes.lose(Data, "E>G F>G")
    nodes.run_until(lambda: isinstance(nodes.seat("G").role, Server) and nodes.seat("G").role.builder is not None)
    nodes.submit("F", "b")
    nodes.run(0.01)
    nodes.heal()
    nodes.run(1.0)
    assert {} == nodes.halted
    assert [2] * 3 == [len(nodes.texts(name)) for name in "EFG"]


def test_a_server_that_lost_the_order_learns_by_the_next_beat() -> None:
    """As the decision says. D and E alone; E loses one order."""
    nodes = Carriers.with_group("DE")
    nodes.lose(Order, "D>E")
    nodes.submit("D", "a")
    nodes.run(0.001)
    nodes.heal()
    began = nodes.now
    nodes.run_until(lambda: bool(nodes.texts("E")))
    assert nodes.now - began < 0.3, nodes.now - began
