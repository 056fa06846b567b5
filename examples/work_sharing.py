"""A pool that shares twelve shards: workers come, one leaves, a node dies, and each time the work is shared anew.

Nobody hands the work out. Each worker looks at the view, finds its own place in the list, and takes every n-th shard.
A view with the same number is the same view everywhere, so the shares fit together without a word between the workers.
"""

from __future__ import annotations

from collections.abc import Callable

from groupsvc import Group, View
from groupsvc.testing import LocalDomain

SHARDS = tuple(range(12))


def main() -> None:
    """The pool grows and shrinks."""
    with LocalDomain(nodes=4) as domain:
        sessions = [domain.connect(node) for node in ("n1", "n2", "n4")]
        anna = sessions[0].join("pool", name="anna", events=True)
        bert = sessions[1].join("pool", name="bert", events=True)
        show("anna and bert", [anna, bert], lambda view: len(view.providers) == 2)

        carl = sessions[2].join("pool", name="carl", events=True)
        show("carl joins", [anna, bert, carl], lambda view: len(view.providers) == 3)

        domain.kill("n4")
        show("the node of carl dies", [anna, bert], lambda view: len(view.providers) == 2)

        bert.leave()
        show("bert leaves", [anna], lambda view: len(view.providers) == 1)
        for session in sessions:
            session.close()


def share_of(group: Group, view: View) -> tuple[int, ...]:
    """What this worker has to do under this view."""
    place = [provider.id for provider in view.providers].index(group.me.id)
    return SHARDS[place :: len(view.providers)]


def show(what: str, workers: list[Group], condition: Callable[[View], bool]) -> None:
    """Wait until each worker has seen it, by itself, then compare the shares."""
    print(what)
    shares = []
    for worker in workers:
        while not condition(worker.view):
            assert worker.next_event(timeout=10) is not None, f"{worker.me.name} has seen nothing for ten seconds"
        view = worker.view
        shares.append(share_of(worker, view))
        print(f"  {worker.me.name} at {worker.me.node}, by view {view.seq}: {shares[-1]}")
    done = sorted(shard for share in shares for shard in share)
    print(f"  every shard is done once: {tuple(done) == SHARDS}")


if __name__ == "__main__":
    main()
