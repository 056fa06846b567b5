"""A domain on two islands: n1 and n2 on one, n3 on the other, with a cable between them that can be pulled out.

Each island is a network namespace of its own, in a user namespace, so nobody has to be root. Programs reach their
daemons by sockets of the file system, and so are on the same side as these, wherever they were started.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import pytest

from groupsvc.testing import LocalDomain
from groupsvc.testing.local_node import LocalNode, environment

NEAR, FAR = "10.7.1.1", "10.7.3.1"
PATIENCE_S = 10.0

_CABLE = "ip link add near type veth peer name far netns $far"
_NEAR_UP = f"ip link set near up && ip route add {FAR} dev near src {NEAR}"
_FAR_UP = f"ip link set far up && ip route add {NEAR} dev far src {FAR}"


class Cable:
    """Between the islands; a context manager. Skips the test, by name of what is missing, where it cannot be laid."""

    def __enter__(self) -> Self:
        for tool in ("unshare", "nsenter", "ip"):
            if shutil.which(tool) is None:
                pytest.skip(f"there is no {tool} here")
        self._near = subprocess.Popen(["unshare", "-Urn", "sleep", "600"], stderr=subprocess.PIPE)
        self._far: subprocess.Popen[bytes] | None = None
        try:
            _wait_until_apart(self._near, os.getpid())
            self._far = subprocess.Popen([*_inside(self._near.pid), "unshare", "-n", "sleep", "600"])
            _wait_until_apart(self._far, self._near.pid)
            for where, script in (
                (self._near, f"ip link set lo up && ip addr add {NEAR}/32 dev lo"),
                (self._far, f"ip link set lo up && ip addr add {FAR}/32 dev lo"),
                (self._near, _CABLE.replace("$far", str(self._far.pid))),
                (self._near, _NEAR_UP),
                (self._far, _FAR_UP),
            ):
                done = _do(where, script)
                if done.returncode:
                    pytest.skip(f"ip cannot do this here: {done.stderr.strip()}")
        except BaseException:
            self._end()
            raise
        return self

    def pull_out(self) -> None:
        """Nothing gets through, and nobody on the near island is told."""
        assert self._far is not None
        _do(self._far, "ip link set far down").check_returncode()

    def put_in(self) -> None:
        """As before."""
        assert self._far is not None
        _do(self._far, _FAR_UP).check_returncode()

    def command(self, name: str) -> list[str]:
        """What starts something on the island of this node."""
        assert self._far is not None
        return _inside((self._far if name == "n3" else self._near).pid)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        for process in filter(None, (self._far, self._near)):
            process.kill()
            process.wait()
            if process.stderr is not None:
                process.stderr.close()


def _inside(pid: int) -> list[str]:
    return ["nsenter", "-t", str(pid), "-U", "-n", "--preserve-credentials"]


def _do(where: subprocess.Popen[bytes], script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*_inside(where.pid), "sh", "-c", script], capture_output=True, text=True, check=False)


def _wait_until_apart(process: subprocess.Popen[bytes], other: int) -> None:
    """Until it is in a network of its own, and runs what it was started for."""
    until = time.monotonic() + PATIENCE_S
    while process.poll() is None:
        assert time.monotonic() < until, "unshare neither ends nor makes a network namespace"
        with contextlib.suppress(OSError):
            proc = Path(f"/proc/{process.pid}")
            is_apart = (proc / "ns/net").readlink() != Path(f"/proc/{other}/ns/net").readlink()
            if is_apart and (proc / "comm").read_text() == "sleep\n":
                return
        time.sleep(0.01)
    words = process.stderr.read().decode().strip() if process.stderr is not None else f"it ended with {process.poll()}"
    pytest.skip(f"unshare makes no network namespace here: {words}")


class IslandNode(LocalNode):
    """A daemon on its island."""

    cable: Cable

    def _spawn(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self.cable.command(self.name), sys.executable, "-m", "groupsvcd", "--config", str(self.config_file)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment(), start_new_session=True,
        )  # fmt: skip


class IslandDomain(LocalDomain):
    """n1 and n2 on the near island, n3 on the far one; n1 is name server."""

    def __init__(self, cable: Cable, **options: Any) -> None:
        super().__init__(nodes=3, settings={"insecure": True}, **options)
        self.node_class = type("IslandNode", (IslandNode,), {"cable": cable})

    def _new_peer_address(self, name: str) -> str:
        return f"tcp://{FAR if name == 'n3' else NEAR}:{7000 + 10 * int(name[1:])}"

    def __enter__(self) -> Self:
        super().__enter__()
        self.hand_over("n1")
        return self
