"""Lets packets that come to this network namespace wait, each for a time from a seed.

    nsenter --net=… python -m tests.faults.late_packets '{"least_s": 0.02, "most_s": 0.07, "seed": 7}'

``tc netem`` is not in every kernel. So packets are handed to this process (``iptables-legacy -j NFQUEUE``), which lets
them go when their time has come. It says "late" when it has begun, and ends with its standard input; if it dies
packets pass as if it were not there.
"""

from __future__ import annotations

import heapq
import itertools
import json
import random
import select
import subprocess
import sys
import time
from typing import Any

RULE = ["INPUT", "-i", "wire", "-j", "NFQUEUE", "--queue-num", "0", "--queue-bypass"]
WAITING_MAX = 20_000


def main(argv: list[str]) -> int:
    """Until standard input ends."""
    from netfilterqueue import NetfilterQueue  # an extra: pip install '.[faults]'

    told = json.loads(argv[0])
    rng, numbers = random.Random(told["seed"]), itertools.count()
    waiting: list[tuple[float, int, Any]] = []

    def take(packet: Any) -> None:
        packet.retain()
        due = time.monotonic() + rng.uniform(told["least_s"], told["most_s"])
        heapq.heappush(waiting, (due, next(numbers), packet))

    queue = NetfilterQueue()
    queue.bind(0, take, max_len=WAITING_MAX)
    subprocess.run(["iptables-legacy", "-I", *RULE], check=True)
    print("late", flush=True)
    try:
        while True:
            wait_s = max(0.0, waiting[0][0] - time.monotonic()) if waiting else 1.0
            ready, _, _ = select.select([0, queue.get_fd()], [], [], wait_s)
            if queue.get_fd() in ready:
                queue.run(block=False)
            while waiting and waiting[0][0] <= time.monotonic():
                heapq.heappop(waiting)[2].accept()
            if 0 in ready:
                return 0
    finally:
        subprocess.run(["iptables-legacy", "-D", *RULE], check=False)
        for _, _, packet in waiting:
            packet.accept()
        queue.unbind()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
