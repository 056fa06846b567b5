"""A chat: three people at three nodes talk at the same time, and everybody reads the same lines in the same order.

That one order, of messages and of who came and left, is what everything else in a group stands on: programs that read
the same and decide by what they read decide the same.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from groupsvc import Group, Joined, Left, Message
from groupsvc.testing import LocalDomain

PEOPLE = {"anna": "n1", "bert": "n2", "carl": "n3"}
LINES_EACH = 3


def main() -> None:
    """All talk at once, then the transcripts are compared."""
    with LocalDomain(nodes=3) as domain, ThreadPoolExecutor(len(PEOPLE)) as threads:
        sessions = {name: domain.connect(node) for name, node in PEOPLE.items()}
        groups = {name: session.join("chat", name=name, events=True) for name, session in sessions.items()}

        for name, group in groups.items():
            threads.submit(talk, name, group)
        transcripts = dict(zip(groups, threads.map(listen, groups.values()), strict=True))

        print("what anna has read:")
        print("\n".join(f"  {line}" for line in transcripts["anna"]))
        # Who came first has read more: what was said, and who came, before bert and carl were there.
        for name in ("bert", "carl"):
            read = transcripts[name]
            same = transcripts["anna"][-len(read) :] == read
            print(f"{name} has read {len(read)} lines, the same in the same order: {same}")
        for session in sessions.values():
            session.close()


def talk(name: str, group: Group) -> None:
    """Say some lines; they are pipelined, nobody waits for one to arrive before the next is sent."""
    for number in range(1, LINES_EACH + 1):
        group.multicast(f"line {number} of {name}".encode())
    group.flush()


def listen(group: Group) -> list[str]:
    """Read until everybody's last line has come."""
    found: list[str] = []
    messages = 0
    while messages < LINES_EACH * len(PEOPLE):
        match group.next_event(timeout=10):
            case Joined(providers=providers):
                found.append(f"* {', '.join(one.name for one in providers)} came")
            case Left(providers=providers):
                found.append(f"* {', '.join(one.name for one in providers)} left")
            case Message(sender=sender, payload=payload):
                assert sender is not None
                messages += 1
                found.append(f"{sender.name}: {payload.decode()}")
            case None:
                raise TimeoutError("nothing came for ten seconds")
    return found


if __name__ == "__main__":
    main()
