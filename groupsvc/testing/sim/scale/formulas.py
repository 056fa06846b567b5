"""What operations cost, computed: the formulas of docs/SCALE.md.

n nodes, v voters; a group has m members, of which the first s = min(r, m) serve it and R = m - s receive; r is 3.
Counted are messages on the wire, a multicast once per node that hears it. What a node says to itself costs nothing.
Sizes are those of the real codec, for numbers as large as they are in a young domain.
"""

from __future__ import annotations

from groupsvcd.core.parameters import Timers
from groupsvcd.core.peer_messages import (
    PEER_CODEC,
    Alive,
    AliveAck,
    Answered,
    AnyPeerMessage,
    Ask,
    Beat,
    CheckpointHeld,
    Claim,
    Data,
    DataHeld,
    Grant,
    Held,
    Insert,
    Inserted,
    LeaderAlive,
    Leave,
    NodeEntry,
    NodeList,
    NodeListAsk,
    Open,
    Opened,
    Order,
    Promised,
    Repair,
    RepairAsk,
    Seen,
    Submit,
    Tell,
)
from groupsvcd.core.views import View

from .meter import kind_of

TIMERS = Timers()
CALLS_PER_S = 1 / TIMERS.alive_interval
IDLE_BEATS_PER_S = 2 / TIMERS.leader_silent
PROBES_PER_S = 1 / TIMERS.lease
REPLICAS = 3

BUSY_BEATS = 1.5
"""Beats after a message that an idle group would not have: of three at the quick pace one or two are due anyway."""

Cost = dict[str, float]
"""Kind of message → how many."""


def plus(*costs: Cost) -> Cost:
    """All of them together."""
    total: Cost = {}
    for cost in costs:
        for kind, count in cost.items():
            total[kind] = total.get(kind, 0.0) + count
    return total


def times(factor: float, cost: Cost) -> Cost:
    """The same so many times."""
    return {kind: factor * count for kind, count in cost.items()}


# --- Standing costs, per second -----------------------------------------------------------------------


def idle_domain(n: int) -> Cost:
    """The name server calls, everybody answers and is acknowledged."""
    calls = (n - 1) * CALLS_PER_S
    return {"LeaderAlive": calls, "Alive": calls, "AliveAck": calls}


def idle_group(m: int) -> Cost:
    """The leader beats its servers, who answer; receivers ask a server now and then whether there is anything."""
    s = min(REPLICAS, m)
    beats, probes = (s - 1) * IDLE_BEATS_PER_S, (m - s) * PROBES_PER_S
    return {"Beat": beats, "Held": beats, "RepairAsk": probes, "Repair": probes}


# --- Messages -----------------------------------------------------------------------------------------


def _entry(m: int, s: int) -> Cost:
    """One entry is ordered, held and stable. Servers know that by themselves; receivers need a second Order."""
    return {"Order": (m - 1) * (1 if m == s else 2), "Held": s - 1}


def _aftermath(m: int, s: int) -> Cost:
    """Beats until everybody is known to have everything, and a checkpoint is advertised that replaces the history.

    Receivers are told, and answer, three times.
    """
    beats, told = (1 if m == s else BUSY_BEATS) * (s - 1), 3 * (m - s)
    return {"Beat": beats + told, "Held": beats, "Seen": told, "CheckpointHeld": s - 1}


def small(m: int) -> Cost:
    """A small message of a member that does not lead."""
    s = min(REPLICAS, m)
    return plus({"Submit": 1}, _entry(m, s), _aftermath(m, s))


def large(m: int) -> Cost:
    """A large one: the payload goes from its origin to all, the servers report it, the order has a reference."""
    return plus(small(m), {"Data": m - 1, "DataHeld": min(REPLICAS, m) - 1})


# --- Membership ---------------------------------------------------------------------------------------


def command(v: int) -> Cost:
    """A command to the directory, alone: submitted, ordered at the other voters, held, stable, answered."""
    return {"Submit (directory)": 1, "Order (directory)": 2 * (v - 1), "Held (directory)": v - 1, "Answered": 1}


def look_up() -> Cost:
    """A question to the name server."""
    return {"Ask": 1, "Tell": 1}


def form(v: int) -> Cost:
    """A node forms a group: it finds none, and has one made."""
    return plus(look_up(), command(v))


def view_change(v: int, union: int, s: int) -> Cost:
    """The leader has another view granted, recovers from the servers of both, and has it activated."""
    recovery = {"Grant": 1, "Claim": union - 1, "Promised": union - 1, "Open": s - 1, "Opened": s - 1}
    return plus(times(2, command(v)), {kind: float(count) for kind, count in recovery.items()})


def _ahead(m: int, s: int, leaving: int = 0) -> Cost:
    """A beat ahead of a view's first entry, if anybody only follows it; who leaves does not answer."""
    return {"Beat": m - 1, "Held": s - 1, "Seen": m - s - leaving} if m > s else {}


def insert_receiver(m: int) -> Cost:
    """One more member of a group that has its servers; m before."""
    s = min(REPLICAS, m)
    welcome: Cost = {"Insert": 1, "Inserted": 1, "Seen": 1, "Order": 1}
    beats = _aftermath(m, s) if m == s else _aftermath(m + 1, s)  # servers alone say with Held that they have it
    told: Cost = {"Seen": 2, "Beat": 2} if m == s else {"Seen": -1, "Beat": -1}
    return plus(look_up(), welcome, _entry(m, s), beats, told)


def insert_server(v: int, m: int) -> Cost:
    """One more member that is to serve, too: m < r before."""
    welcome: Cost = {"Insert": 1, "Inserted": 1, "Seen": 1, "Order": 1}
    view = plus(view_change(v, m + 1, m + 1), _entry(m + 1, m + 1))
    return plus(look_up(), welcome, _entry(m, m), view, _aftermath(m + 1, m + 1))


def leave_receiver(m: int) -> Cost:
    """A receiver leaves; m before."""
    s = min(REPLICAS, m - 1)
    return plus({"Leave": 1}, _entry(m, s), _aftermath(m - 1, s))


def leave_server(v: int, m: int) -> Cost:
    """A server that does not lead leaves a group without receivers; the new view and the removal are one Order."""
    ahead = _ahead(m, m - 1, leaving=1)
    return plus({"Leave": 2}, view_change(v, m, m - 1), ahead, _entry(m, m - 1), _aftermath(m - 1, m - 1))


def leave_leader(v: int, m: int) -> Cost:
    """The leader of a group without receivers leaves: the next one leads, and removes it."""
    removal = plus(_ahead(m, m - 1, leaving=1), times(2, _entry(m, m - 1)))
    return plus({"Leave": 1}, view_change(v, m, m - 1), removal, _aftermath(m - 1, m - 1))


# --- Deaths -------------------------------------------------------------------------------------------


def list_changes(n_up: int, changes: int) -> Cost:
    """Everybody but the name server asks what has changed, and is told."""
    return {"NodeListAsk": changes * (n_up - 1), "NodeList": changes * (n_up - 1)}


def server_dies(m: int) -> Cost:
    """In a group, between its members: granted anew, recovered, the failure ordered; a receiver takes the place."""
    s = min(REPLICAS, m)
    left = s - 1
    grant: Cost = {"Grant": 1, "Claim": s - 1, "Promised": left - 1, "Open": left - 1, "Opened": left - 1}
    cost = plus(grant, _ahead(m - 1, left), times(2, _entry(m - 1, left)))
    if m > s:
        promotion = {"Grant": 1, "Claim": s - 1, "Promised": s - 1, "Open": s - 1, "Opened": s - 1}
        ahead = _ahead(m - 1, s)
        cost = plus(cost, {kind: float(count) for kind, count in promotion.items()}, ahead, _entry(m - 1, s))
    return plus(cost, _aftermath(m - 1, min(REPLICAS, m - 1)))


def receiver_dies(m: int) -> Cost:
    """In a group: only its failure is ordered."""
    s = min(REPLICAS, m - 1)
    return plus(_entry(m - 1, s), _aftermath(m - 1, s))


def election(v: int) -> Cost:
    """The voters that are left elect another name server and recover the directory; nobody else takes part."""
    others = v - 2  # besides the new one and the dead
    asked = {"Canvass": v - 1, "Support": others, "Claim (directory)": v - 1, "Promised (directory)": others}
    return {
        kind: float(count)
        for kind, count in {**asked, "Open (directory)": others, "Opened (directory)": others}.items()
    }


# --- Sizes --------------------------------------------------------------------------------------------


def sizes(*, body: int = 0, entry: int = 0, payload: int = 0) -> dict[str, float]:
    """Bytes of one message of each kind, without the frame around it; a body becomes an entry with its origin."""
    inc, epoch, group, seq, name = 1_700_000_000_000_000, 40_000, 30_000, 20, "n500"
    view = View(epoch, name, ((name, inc), (name, inc), (name, inc)), 2, base=epoch, replaces=epoch, activated=epoch)
    record = {"id": group, "name": "g5000", "attributes": {}, "newest_epoch": epoch, "active": view.as_answer(),
              "pending": None}  # fmt: skip
    samples: list[AnyPeerMessage] = [
        LeaderAlive(3, 250, epoch, epoch), AliveAck(inc, 3, 250, 1.8), Alive(3, 250, 250, ""),
        Beat(group, epoch, seq, seq, seq, seq, seq, seq, 0, ((0, 0),), 150, 1 << 31),
        CheckpointHeld(group, epoch, ((seq, 150, 1 << 31),)), Held(group, epoch, seq, seq), Seen(group, epoch, seq),
        RepairAsk(group, seq, 1045), Repair(group, epoch, seq, seq, (), began=seq, views=((0, 0),)),
        Submit(group, 1, seq, (bytes(body),), 0), Submit(0, 20, epoch, (bytes(45),)),
        Data(group, name, inc, 1, bytes(payload)), DataHeld(group, ((name, inc, 1),)),
        Ask(20, "find", "g5000"), Tell(inc, 3, 20, {"group": record}), Insert(group, 20, 0),
        Inserted(group, inc, 20, epoch, seq, bytes(60 + 3 * 17 + 3 * 18)),
        Leave(group, 20), Answered(inc, 3, 20, {"ok": True, "epoch": epoch, "group": record}),
        Held(0, 3, epoch, epoch), Grant(group, "g5000", {}, view, view), Claim(group, epoch, view=view),
        Promised(group, epoch, epoch, seq, seq, seq, views=((0, 0),)),
        Open(group, epoch, epoch, seq, seq, seq, view, ((0, 0),)),
        Opened(group, epoch, seq), NodeListAsk(epoch),
        NodeList(3, epoch, epoch, (NodeEntry(name, inc, "down", "sim:n500", "", False, epoch),)),
    ]  # fmt: skip
    found = {kind_of(message): float(len(PEER_CODEC.encode([message])) - 1) for message in samples}
    for kind, size in (("Order", entry or body + 20), ("Order (directory)", 65)):
        found[kind] = sum(order_sizes(size)) / 2
    return found


def order_sizes(entry: int) -> tuple[float, float]:
    """Bytes of an Order with one entry of this size, and of one without any."""
    full, empty = (Order(30_000, 40_000, 20, entries, 20, 20, 20, 20) for entries in ((bytes(entry),), ()))
    return len(PEER_CODEC.encode([full])) - 1.0, len(PEER_CODEC.encode([empty])) - 1.0


def sizes_of_forming() -> dict[str, float]:
    """What is smaller than usual when a group is formed: no record is found, and the command is short."""
    nothing = Tell(1_700_000_000_000_000, 3, 20, {"group": None})
    return {"Tell": len(PEER_CODEC.encode([nothing])) - 1.0, "Order (directory)": 35.0, "Submit (directory)": 35.0}
