"""The large run: a domain begins, forms its groups, idles, works, and loses a node and its name server.

Each act is a window in which every message is counted, and adds lines to the table: computed, and measured. Deeds are
paced so that none is served together with the next: a busy domain batches, and costs less.
"""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Callable, Sequence
from typing import TextIO

import attrs

from . import formulas
from .formulas import Cost, idle_group, plus, times
from .meter import Load, MeteredWorld
from .scene import Placed, Scene
from .table import Line, Table

PACE_S = 0.02
"""Between two deeds of an act."""

SETTLE_S = 1.2
"""After the last deed of an act, so that its beats end within its window."""

FORMED_PER_S = 1_000
"""Groups that begin per second; their second and third members come 0.3 s later each."""

BODY_BYTES = 100
CARRIED_BYTES = 7
"""A group in an Alive: an array of two, id and epoch."""

MEMBER_BYTES = 18
VIEW_BYTES = 60
"""An entry that changes the members, and one of two where one begins a view and the other changes the members."""

PAYLOAD_BYTES = 100_000

CPU_S_MAX = 600.0
"""Ten minutes of one core."""

MEMORY_BYTES_MAX = 8 * 2**30


@attrs.frozen(kw_only=True)
class Size:
    """How large the run is."""

    nodes: int = 1_000
    groups: int = 10_000
    seconds: float = 60.0  # simulated, in all
    voters: int = 5
    deeds: int = 25  # in each act
    seed: int = 1


class Story:
    """One run."""

    def __init__(self, size: Size, out: TextIO) -> None:
        self.size = size
        self.out = out
        self.table = Table()
        self.began = time.process_time()
        self.world = MeteredWorld(
            size.seed, size.nodes, voters=size.voters, parameters={"journal_full": False}, start_within_s=0.2
        )
        self.scene = Scene(self.world, size.groups)
        self.sizes = formulas.sizes(body=BODY_BYTES, payload=PAYLOAD_BYTES)
        self.full_order = formulas.order_sizes(BODY_BYTES + 20)[0]
        self.member_sizes = formulas.sizes(entry=MEMBER_BYTES)
        self.view_sizes = formulas.sizes(entry=VIEW_BYTES)

    def tell(self) -> Table:
        """The whole of it; the table says what came out."""
        gc.collect()
        gc.freeze()
        gc.disable()  # there is much that lives to the end, and next to no cycles
        try:
            self._begin()
            self._idle()
            self._traffic()
            self._deeds()
            self._node_dies()
            self._name_server_dies()
            self._end()
        finally:
            gc.enable()
        return self.table

    # --- Acts ---

    def _begin(self) -> None:
        """All nodes start at once, then the groups form."""
        world, scene = self.world, self.scene
        self._run(3.0, "started")
        spread = len(scene.groups) / FORMED_PER_S
        for number, group in enumerate(scene.groups):
            for position, name in enumerate(list(group.members)):
                at = world.t + spread * number / len(scene.groups) + 0.3 * position
                world.push(at, scene.join, group, name)
        self._run(spread + 1.5, "formed")
        self._run(2.0, "settled")
        self.table.check("groups that are formed", len(scene.groups), sum(1 for group in scene.groups if group.id))

    def _idle(self) -> None:
        """Nothing happens for two seconds."""
        seconds = 2.0
        self._window(seconds, "idle", ())
        n = self.size.nodes
        domain, groups = formulas.idle_domain(n), self._idle_groups()
        self._compare("idle domain, per second", domain, 1 / seconds, within=0.05)
        self._compare("idle groups, per second", groups, 1 / seconds, within=0.05)
        served = self._served()
        carried = {name: count for name, count in served.items() if count}
        alive = self.sizes["Alive"] + CARRIED_BYTES * sum(carried.values()) / (n - 1)
        self.table.add(Line("bytes of an Alive", alive, self._bytes_of("Alive"), 0.15))
        self._loads(seconds)

    def _traffic(self) -> None:
        """Each group has a message every four seconds."""
        world, scene = self.world, self.scene
        seconds = 4.0
        for number, group in enumerate(scene.groups):
            world.push(world.t + seconds * number / len(scene.groups), self._submit, group, BODY_BYTES)
        self._window(seconds, "traffic", ())
        work = plus(*(times(count, formulas.small(m)) for m, count in self._sizes_of_groups().items()))
        cost = plus(self._idle_groups(seconds), work)
        self._compare(f"a message in each group within {seconds:.0f} s, and idle", cost, 1.0, within=0.10)
        self._run(0.5, "quiet again")

    def _deeds(self) -> None:
        """One kind of deed after the other, each in groups of its own."""
        v, scene = self.size.voters, self.scene
        away = [group for group in scene.groups if scene.hub not in group.members]
        of = {m: [group for group in away if len(group.members) == m] for m in (2, 3, 4)}
        n = self.size.deeds
        for m in (2, 3, 4):
            self._act(f"small message, m = {m}", of[m][:n], formulas.small(m), self._say_small)
        self._act("large message, m = 4", of[4][:n], formulas.large(4), self._say_large)
        self._act("lost Order repaired, m = 3", of[3][:n], self._repair_cost(), self._lose_one, loses=True)
        self._act("receiver inserted, m = 3", of[3][:n], formulas.insert_receiver(3), self._enter, after=4)
        self._act("server inserted, m = 2", of[2][:n], formulas.insert_server(v, 2), self._enter, after=3)
        self._act("receiver leaves, m = 4", of[4][:n], formulas.leave_receiver(4), self._leave(3), after=3)
        self._act("server leaves, m = 3", of[3][n : 2 * n], formulas.leave_server(v, 3), self._leave(2), after=2)
        self._act("leader leaves, m = 3", of[3][2 * n : 3 * n], formulas.leave_leader(v, 3), self._leave(0), after=2)
        self._form_some(n)

    def _form_some(self, count: int) -> None:
        """New groups, one after the other."""
        world, scene = self.world, self.scene
        first = len(scene.groups)
        for number in range(first, first + count):
            group = scene.place_alone(number)
            scene.groups.append(group)
            world.push(world.t + PACE_S * (number - first), scene.join, group, group.members[0])
        self._window(PACE_S * count + SETTLE_S, "group formed", ())
        cost = formulas.form(self.size.voters)
        self._compare("group formed", cost, 1 / count, within=0.10, other_sizes=formulas.sizes_of_forming())

    def _node_dies(self) -> None:
        """The hub, with all the groups of its cell."""
        world, scene = self.world, self.scene
        groups = [group for group in scene.groups if scene.hub in group.members]
        places = [(len(group.members), group.members.index(scene.hub)) for group in groups]
        world.nodes[scene.hub].crash("the run wants it")
        scene.died(scene.hub)
        seconds = 4.5
        self._window(seconds, f"a node with {len(groups)} groups dies", groups)
        cost = plus(*(formulas.server_dies(m) if at < 3 else formulas.receiver_dies(m) for m, at in places))
        cost = plus(cost, *(times(seconds, idle_group(m - 1)) for m, _ in places))
        name = f"node with {len(groups)} groups dies: in its groups"
        self._compare(name, cost, 1.0, within=0.10, measured=world.meter.of_watched)
        self._compare("… and in the node list", formulas.list_changes(self.size.nodes - 1, 2), 1.0, within=0.10)
        commands = 2 + sum(1 + 2 * (m > 3) for m, at in places if at < 3)
        self._at_most("… commands to the directory", commands, "Submit (directory)")

    def _name_server_dies(self) -> None:
        """And no group notices."""
        world = self.world
        name = world.name_server()
        assert name is not None
        world.nodes[name].crash("the run wants it")
        seconds = 5.0
        groups = [group for group in self.scene.groups if group.id]
        self._window(seconds, "the name server dies", groups)
        v, n = self.size.voters, self.size.nodes
        repeats = {"Claim (directory)": 9.0}  # to the dead one, ever more slowly
        self._compare("name server dies: election", plus(formulas.election(v), repeats), 1.0, within=0.5)
        self._compare("… and in the node list", formulas.list_changes(n - 2, 2), 1.0, within=0.10)
        cost = self._idle_groups(seconds)
        of_groups = world.meter.of_watched
        self._compare("… and in all groups: idle as ever", cost, 1.0, within=0.05, measured=of_groups)
        self.table.check("a name server again", True, world.name_server() not in (None, name))

    def _end(self) -> None:
        """Everything is as it should be."""
        self._run(max(self.size.seconds - self.world.t, 1.0), "the end")
        problems = self.scene.check() + [failure.text for failure in self.world.failures]
        self.table.problems += problems
        self.cpu_s = time.process_time() - self.began
        self.memory_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        self.table.bound("seconds of one core", CPU_S_MAX, self.cpu_s)
        self.table.bound("bytes of memory", MEMORY_BYTES_MAX, self.memory_bytes)

    # --- Deeds ---

    def _submit(self, group: Placed, size: int) -> None:
        self.scene.submit(group, group.members[1], size)

    def _say_small(self, group: Placed) -> None:
        self._submit(group, BODY_BYTES)

    def _say_large(self, group: Placed) -> None:
        self._submit(group, PAYLOAD_BYTES)

    def _lose_one(self, group: Placed) -> None:
        """The third member does not get the Order of this message; a second one shows it the gap."""
        self._submit(group, BODY_BYTES)
        self.world.push(self.world.t + 0.005, self._submit, group, BODY_BYTES)

    def _repair_cost(self) -> Cost:
        """Two messages, and one question with its answer; all beats but those of one message are shared."""
        once, again = formulas.small(3), {"Submit": 1.0, "Order": 2.0, "Held": 2.0}
        return plus(once, again, {"RepairAsk": 1.0, "Repair": 1.0})

    def _enter(self, group: Placed) -> None:
        self.scene.join(group, self.scene.spare(group))

    def _leave(self, position: int) -> Callable[[Placed], None]:
        return lambda group: self.scene.leave(group, group.members[position])

    # --- Measuring ---

    def _act(
        self, name: str, groups: Sequence[Placed], cost: Cost, deed: Callable[[Placed], None], *, after: int = 0,
        loses: bool = False,
    ) -> None:  # fmt: skip
        """Everybody does the same, in one group after the other."""
        world, before = self.world, len(groups[0].members)
        doing = PACE_S * len(groups)
        for number, group in enumerate(groups):
            world.push(world.t + PACE_S * number, self._one, deed, group)
        if loses:
            self._lose_first_order_of(groups)
        self._window(doing + SETTLE_S, name, groups)
        world.network.sieve = None
        idle = plus(times(doing / 2, idle_group(before)), times(doing / 2 + SETTLE_S, idle_group(after or before)))
        measured = dict(world.meter.of_watched)
        for kind in cost:
            if kind in ("Ask", "Tell", "Answered") or kind.endswith("(directory)"):
                measured[kind] = world.meter.kinds.get(kind, [0, 0])
        alone = before <= formulas.REPLICAS and "Submit" in cost  # servers alone: every Order has an entry
        sizes = {"Order": self.full_order} if alone else None
        self._compare(name, cost, 1 / len(groups), within=0.10, measured=measured, minus=idle, other_sizes=sizes)

    def _one(self, deed: Callable[[Placed], None], group: Placed) -> None:
        deed(group)

    def _lose_first_order_of(self, groups: Sequence[Placed]) -> None:
        """The network loses the first Order of each group to its third member."""
        third = {group.id: group.members[2] for group in groups}

        def loses(source: str, target: str, packet: object) -> bool:
            for kind, _, stream in packet.content:  # type: ignore[attr-defined]
                if kind == "Order" and third.get(stream) == target:
                    del third[stream]
                    return True
            return False

        self.world.network.sieve = loses

    def _window(self, seconds: float, name: str, groups: Sequence[Placed]) -> None:
        meter = self.world.meter
        meter.watched = {group.id for group in groups}
        meter.start()
        self._run(seconds, name)

    def _run(self, seconds: float, name: str) -> None:
        world = self.world
        world.run(until=world.t + seconds)
        spent = time.process_time() - self.began
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"{world.t:6.2f} s  {name:40s} {world.steps:9d} steps {spent:7.1f} s {memory:6d} MiB", file=self.out,
              flush=True)  # fmt: skip

    def _compare(
        self, name: str, cost: Cost, share: float, *, within: float, measured: dict[str, list[int]] | None = None,
        minus: Cost | None = None, other_sizes: dict[str, float] | None = None,
    ) -> None:  # fmt: skip
        """Messages and bytes of the kinds that the cost speaks of; ``minus``: what would have been there anyway."""
        counts = self.world.meter.kinds if measured is None else measured
        kinds = [kind for kind, count in cost.items() if count]
        minus = minus or {}
        sizes = self.sizes if "Submit" in cost else self.view_sizes if "Claim" in cost else self.member_sizes
        sizes = {**sizes, **(other_sizes or {})}
        messages = sum(counts.get(kind, [0, 0])[0] * share - minus.get(kind, 0.0) for kind in kinds)
        size = sum(counts.get(kind, [0, 0])[1] * share - minus.get(kind, 0.0) * sizes.get(kind, 0.0) for kind in kinds)
        self.table.add(Line(name, sum(cost.values()), messages, within))
        expected = sum(count * sizes.get(kind, 0.0) for kind, count in cost.items())
        if all(kind in sizes for kind in kinds) and "Alive" not in kinds:
            self.table.add(Line(f"  {name}: bytes", expected, size, max(0.25, within)))

    def _at_most(self, name: str, count: int, kind: str) -> None:
        self.table.bound(name, count, self.world.meter.kinds.get(kind, [0, 0])[0])

    def _bytes_of(self, kind: str) -> float:
        messages, size = self.world.meter.kinds[kind]
        return size / messages

    def _idle_groups(self, seconds: float = 1.0) -> Cost:
        costs = (times(count, idle_group(m)) for m, count in self._sizes_of_groups().items())
        return times(seconds, plus(*costs))

    def _sizes_of_groups(self) -> dict[int, int]:
        sizes: dict[int, int] = {}
        for group in self.scene.groups:
            sizes[len(group.members)] = sizes.get(len(group.members), 0) + 1
        return sizes

    def _served(self) -> dict[str, int]:
        """How many groups each node serves."""
        served = dict.fromkeys(self.world.names, 0)
        for group in self.scene.groups:
            for name in group.members[: formulas.REPLICAS]:
                served[name] += 1
        return served

    def _loads(self, seconds: float) -> None:
        """What an idle domain costs single nodes; how many frames that is depends on who shares groups with whom."""
        world, meter = self.world, self.world.meter
        name_server = world.name_server()
        assert name_server is not None
        others = [meter.load(name) for name in world.names if name not in world.voters]
        mean = Load(*(sum(attrs.astuple(load)[i] for load in others) // len(others) for i in range(6)))
        most = Load(*(max(attrs.astuple(load)[i] for load in others) for i in range(6)))
        for name, load in (("name server", meter.load(name_server)), ("other nodes, mean", mean), ("… most", most)):
            self.table.note(
                f"idle, {name}: per second {load.frames_sent / seconds:.0f} frames with"
                f" {load.messages_sent / seconds:.0f} messages, {load.bytes_sent / seconds / 1000:.1f} kB sent;"
                f" {load.frames_received / seconds:.0f} frames with {load.messages_received / seconds:.0f} messages,"
                f" {load.bytes_received / seconds / 1000:.1f} kB received"
            )
