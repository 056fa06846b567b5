"""Three daemons elect a name server, it is killed, another takes over: watch it happen.

Run it with ``make demo``. It takes a few seconds and leaves nothing behind.
"""

from __future__ import annotations

import sys
import time

from groupsvc.cli.node_table import lines_of
from groupsvc.drivers.connection import DaemonConnection
from groupsvc.errors import GroupServiceError
from groupsvc.testing import LocalDomain

AT_A_TERMINAL = sys.stdout.isatty()
BEGAN = time.monotonic()


def main() -> None:
    """The play in four acts."""
    say("starting three daemons")
    began = time.monotonic()
    with LocalDomain(nodes=3) as domain:
        first = domain.wait_for_name_server()
        say(f"the domain is ready after {time.monotonic() - began:.2f} s: {first} is name server")
        show(domain)

        survivor = next(name for name in domain.names if name != first)
        with DaemonConnection(domain.address(survivor)) as connection:
            connection.look_up("demo", form=True)
            say(f"{survivor} has formed the group 'demo'; the directory knows it")

            say(f"kill -9 {domain.pid(first)}  (that is {first})")
            killed = time.monotonic()
            domain.kill(first)
            wait_for_answer(connection)
            took = time.monotonic() - killed
        second = domain.wait_for_name_server()
        say(f"{second} took over and answered a look-up at {survivor} {took:.2f} s after the kill")
        domain.wait_until(lambda: line_of(domain, second, first) == "down", f"{first} is listed as down")
        show(domain)

        began = time.monotonic()
        domain.restart(first)
        say(f"{first} is back with a new incarnation {time.monotonic() - began:.2f} s after its start")
        show(domain)
    say("all daemons have ended")


def wait_for_answer(connection: DaemonConnection) -> None:
    """Until a name server has answered; every single question has its own short deadline."""
    until = time.monotonic() + 10.0
    while True:
        try:
            connection.look_up("demo", timeout=1.0)
            return
        except GroupServiceError:
            if time.monotonic() > until:
                raise


def line_of(domain: LocalDomain, teller: str, name: str) -> str:
    """What ``teller`` says about ``name``."""
    status = domain.status(teller)
    return next((node.status for node in status.nodes if node.name == name), "") if status else ""


def show(domain: LocalDomain) -> None:
    """The table of nodes; at a terminal it stays on the screen for a moment and the lease is seen moving."""
    frames = 12 if AT_A_TERMINAL else 1
    height = 0
    for _ in range(frames):
        teller = domain.name_server()
        status = domain.status(teller) if teller else None
        lines = lines_of(status) if status else ["(no name server answers)"]
        if height:
            sys.stdout.write(f"\x1b[{height}A")
        sys.stdout.write("".join(f"      | {line}\x1b[K\n" if AT_A_TERMINAL else f"      | {line}\n" for line in lines))
        sys.stdout.flush()
        height = len(lines)
        if AT_A_TERMINAL:
            time.sleep(0.1)


def say(text: str) -> None:
    """A line with the time since the beginning."""
    print(f"{time.monotonic() - BEGAN:5.2f} s  {text}", flush=True)


if __name__ == "__main__":
    main()
