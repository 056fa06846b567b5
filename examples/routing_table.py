"""A routing table that is the same on three nodes, while members come and go.

Each router keeps the whole table in memory and reads it there; a change is a message of the group, so all apply the
same changes in the same order. Nobody is master of the table: a router that is killed takes nothing with it, and one
that comes later gets the newest checkpoint and the changes since from the daemon of its own node.
"""

from __future__ import annotations

import multiprocessing
import sys
from multiprocessing.synchronize import Event

import groupsvc
from groupsvc.tables import Table
from groupsvc.testing import LocalDomain

GROUP = "routes"
RULES = groupsvc.GroupAttributes(checkpoint_every=100)
SPAWN = multiprocessing.get_context("spawn")


def main() -> None:
    """The story as the router at n2 sees it."""
    with LocalDomain(nodes=3) as domain:
        is_in, go_on = SPAWN.Event(), SPAWN.Event()
        anna = SPAWN.Process(target=anna_at_n1, args=(domain.address("n1"), is_in, go_on))
        anna.start()
        is_in.wait(20)

        with domain.connect("n2") as session:
            bert = Table(on_change=tell_of_default_route)
            group = session.join(GROUP, machine=bert, name="bert", attributes=RULES, events=True)
            say(f"bert joins and has {len(bert)} routes at once")
            bert.put("default", b"gateway-1")
            say(f"bert may take over the default route: {bert.compare_and_set('default', b'gateway-1', b'gateway-2')}")
            say(f"and once more from gateway-1: {bert.compare_and_set('default', b'gateway-1', b'gateway-3')}")

            go_on.set()
            group.wait_for(lambda: b"gateway-9" in bert.values())
            say("kill -9 anna in the middle of her changes")
            anna.kill()
            anna.join()
            next(event for event in group.events() if isinstance(event, groupsvc.Left))
            bert.sync()
            say(f"bert is alone, and has {'some' if len(bert) > 151 else 'none'} of what she was writing")

            with domain.connect("n3") as third:
                carl = Table()
                with third.join(GROUP, machine=carl, name="carl"):
                    say(f"carl joins and has the same table: {carl.copy() == bert.copy()}")
                    carl.delete("default")
                    bert.sync()
                    say(f"the default route is gone for bert, too: {'default' not in bert}")
                    same = list(carl.snapshot()) == list(bert.snapshot())
                    say(f"all tables are equal, byte for byte: {same}")


def anna_at_n1(address: str, is_in: Event, go_on: Event) -> None:
    """A router that knows 150 routes, and changes them until it is killed."""
    table = Table()
    with groupsvc.connect(address) as session:
        session.join(GROUP, machine=table, name="anna", attributes=RULES)
        for number in range(150):
            table.put(f"10.{number}.0.0/16", b"gateway-1")
        is_in.set()
        go_on.wait(20)
        for number in range(100_000):
            table.put(f"192.168.{number}.0/24", b"gateway-9")


def tell_of_default_route(network: str, gateway: bytes | None) -> None:
    """Called for every change, in the order of the stream."""
    if network == "default":
        say(f"  the default route is now {gateway.decode() if gateway else 'gone'}")


def say(text: str) -> None:
    """One line at a time, also from several processes."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
