"""What the tests of sockets share: a context, a watch, and waiting for something without sleeping."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq

from groupsvcd.io import clocks
from groupsvcd.io.complaints import Complaints
from groupsvcd.io.sockets import Context, new_context
from groupsvcd.io.watch import Watch

PATIENCE_S = 20.0


class Loop:
    """Watch, complaints and a poll over some sockets."""

    def __init__(self) -> None:
        self.watch = Watch()
        self.complaints = Complaints(clocks.now)
        self.poller = zmq.Poller()
        self.poller.register(self.watch.fileno(), zmq.POLLIN)

    def until(self, condition: Callable[[], object], *also: Callable[[], object]) -> bool:
        """Turn the loop until ``condition`` holds; False if it never did."""
        end = clocks.now() + PATIENCE_S
        while not condition():
            if clocks.now() > end:
                return False
            self.poller.poll(5)
            self.watch.run()
            for action in also:
                action()
        return True


@pytest.fixture
def context() -> Iterator[Context]:
    made = new_context()
    yield made
    made.destroy(linger=0)


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    yield made
    made.watch.close()


@pytest.fixture
def short_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory whose path leaves room for the names of Unix sockets."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="gs") as made:
        yield Path(made)
