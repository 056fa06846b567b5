"""A connection that ends, or stalls, while its queue here is full: the process that has the queue goes on.

libzmq 4.3.5 aborts the whole process there if it sends heartbeats of its own, or the other side does
(docs/decisions/0038-the-kernel-tells-which-links-are-dead.md). So what is tried is a process, and what it says last.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0

SCENE = """
import sys, time
sys.path[:0] = {paths!r}
import zmq
from groupsvc.drivers.daemon_socket import QUEUE_FRAMES, DaemonSocket
from groupsvcd.io import sockets

SILENT_S = 5.5  # longer than any heartbeat was
FULL_S = 1.0  # until as many have arrived as the queue has room for
FRAMES = 3_000
context = sockets.new_context()
"""

SUBSCRIBER_READS_LATE = """
publisher = context.socket(zmq.XPUB)
publisher.setsockopt(zmq.SNDHWM, FRAMES)
publisher.bind("tcp://127.0.0.1:*")
subscriber = sockets.new_subscriber(context)
subscriber.setsockopt(zmq.SUBSCRIBE, b"")
subscriber.connect(publisher.getsockopt_string(zmq.LAST_ENDPOINT))
while not publisher.poll(10):
    subscriber.poll(0)
publisher.recv()
for _ in range(FRAMES):
    publisher.send(b"x" * 10_000)
if {ends}:
    time.sleep(FULL_S)
    publisher.close(linger=0)
time.sleep(SILENT_S)
read = 0
while subscriber.poll(500):
    subscriber.recv()
    read += 1
print("read", read >= sockets.PEER_RECEIVE_QUEUE_FRAMES)
"""

PROGRAM_READS_LATE = """
daemon = context.socket(zmq.ROUTER)
daemon.setsockopt(zmq.SNDHWM, FRAMES)
daemon.bind("tcp://127.0.0.1:*")
program = DaemonSocket("tcp://127.0.0.1:1", daemon.getsockopt_string(zmq.LAST_ENDPOINT))._socket
program.send(b"x")
routing_id, _ = daemon.recv_multipart()
for _ in range(FRAMES):
    daemon.send_multipart([routing_id, b"x" * 10_000])
if {ends}:
    time.sleep(FULL_S)
    daemon.close(linger=0)
time.sleep(SILENT_S)
read = 0
while program.poll(500):
    program.recv()
    read += 1
print("read", read >= QUEUE_FRAMES)
"""


def said_by(scene: str) -> str:
    code = SCENE.format(paths=[str(ROOT), str(ROOT / "daemon")]) + scene
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S)
    return ended.stdout + ended.stderr + (f"exit code {ended.returncode}" if ended.returncode else "")


@pytest.mark.parametrize("ends", [True, False], ids=["the connection ends", "the connection stays"])
@pytest.mark.parametrize("scene", [SUBSCRIBER_READS_LATE, PROGRAM_READS_LATE], ids=["a daemon", "a program"])
def test_who_does_not_read_for_seconds_goes_on(scene: str, ends: bool) -> None:
    assert "read True\n" == said_by(scene.format(ends=ends))
