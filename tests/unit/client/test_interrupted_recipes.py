"""Ctrl-C at every line of an acquire, or of an entry: who was interrupted has nothing, and is nowhere.

The interrupt comes at a line of the recipe, or at the end of a step that must happen whole: there the guard of the
session runs the handlers that it has kept waiting (``interrupts.py``), so that is where most of them come.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

import groupsvc
from groupsvc.wire import client_messages as wire
from tests.unit.client.daemon_on_a_socket import DaemonOnASocket
from tests.unit.client.test_locks import in_line

RECIPES = ("recipes/locks.py", "recipes/places.py", "recipes/parties.py", "recipes/latches.py")
STEPS = ("do", "finish")
ELSEWHERE = ("__exit__", "close", "_give_back", "start", "<lambda>", "_owner")
"""The first three are the program's own end of it. The others run in a step, where nobody is interrupted."""


class Interrupting:
    """``KeyboardInterrupt`` at the ``left``-th moment of those above; once."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.where = ""

    def __call__(self, frame: FrameType, event: str, arg: object) -> object:
        code = frame.f_code
        if code.co_filename.endswith("drivers/pump.py"):
            wanted = "return" if code.co_name in STEPS else None
        elif code.co_filename.endswith(RECIPES):
            wanted = None if code.co_name in ELSEWHERE else "line"
        else:
            return None
        if event == wanted:
            self.left -= 1
            if self.left == 0:
                self.where = f"{code.co_qualname}, line {frame.f_lineno}"
                raise KeyboardInterrupt
        return self


def interrupted_at(moment: int, use: Callable[[], object]) -> str:
    """Where that was; empty if there is no such moment."""
    before, interrupting = sys.gettrace(), Interrupting(moment)
    sys.settrace(interrupting)  # type: ignore[arg-type]
    try:
        use()
    except KeyboardInterrupt:
        return interrupting.where
    finally:
        sys.settrace(before)
    return ""


def acquire(session: groupsvc.Session, name: str) -> None:
    assert session.lock(name).acquire()


def hold(session: groupsvc.Session, name: str) -> None:
    with session.lock(name):
        pass


def try_to(session: groupsvc.Session, name: str) -> None:
    assert session.lock(name).try_acquire()


def enter(session: groupsvc.Session, name: str) -> None:
    party = session.party(name)
    try:
        party.enter()
    finally:
        party.close()  # it may have entered, and knows it


def meet(session: groupsvc.Session, name: str) -> None:
    with session.party(name):
        pass


def look(session: groupsvc.Session, name: str) -> None:
    with session.latch(name, 1) as latch:
        assert not latch.wait(timeout=0.001)


@pytest.fixture(autouse=True)
def no_keepers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What keeps a line joins and leaves, too; here it would only be in the way of counting."""
    monkeypatch.setattr("groupsvc.sansio.contending.Keeper.look", lambda *_: None)


@pytest.mark.parametrize("use", [acquire, hold, try_to, enter, meet, look])
def test_after_an_interrupt_at_any_moment_nobody_is_left_in_the_group(
    daemon: DaemonOnASocket, session: groupsvc.Session, use: Callable[[groupsvc.Session, str], object]
) -> None:
    moment = 1
    while where := interrupted_at(moment, lambda name=f"a{moment}": use(session, name)):  # type: ignore[misc]
        session.groups()  # what was said before it has been heard
        assert 0 == in_line(daemon), f"interrupted at {where}"
        assert not session._pump.machine.members
        moment += 1
    assert moment > 5
    assert any(isinstance(one, wire.JoinAsk) for one in daemon.memory.requests)
