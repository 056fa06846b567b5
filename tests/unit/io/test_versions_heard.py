"""Frames of daemons that do not understand this one: told, and for who is not in yet a reason to end."""

from __future__ import annotations

import attrs

from groupsvc.wire import versions
from groupsvc.wire.frames import OtherVersion
from groupsvcd.io.complaints import Complaints
from groupsvcd.io.versions_heard import PAUSE_S, STEADY_S, VersionsHeard

FAR = versions.wire_of(9, 9, 9)
STEP_S = 0.5


@attrs.define
class Scene:
    """A daemon n1 of three voters, and its clock."""

    now: float = 100.0
    is_in: bool = False
    halted: list[str] = attrs.field(factory=list)
    complaints: Complaints = attrs.field(init=False)
    heard: VersionsHeard = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.complaints = Complaints(lambda: self.now)
        self.heard = VersionsHeard(
            "n1", ("n1", "n2", "n3"), clock=lambda: self.now, complaints=self.complaints, halt=self.halted.append,
            is_in=lambda: self.is_in,
        )  # fmt: skip

    def hear(self, *senders: str, times: int = 1, every: float = STEP_S) -> None:
        """Frames of all of them, again and again."""
        for _ in range(times):
            for sender in senders:
                self.heard.heard(OtherVersion(sender, FAR))
            self.now += every


def test_it_ends_at_once_when_no_majority_is_left() -> None:
    scene = Scene()
    scene.hear("n2")
    assert [] == scene.halted
    scene.hear("n3")
    (reason,) = scene.halted
    assert "this node may not join the domain: n3 writes wire version 9 and reads 9, this side writes" in reason
    assert reason.endswith(versions.REMEDY)


def test_it_ends_when_one_voter_goes_on_and_on_and_not_earlier() -> None:
    scene = Scene()
    scene.hear("n2", times=int(STEADY_S / STEP_S))
    assert [] == scene.halted
    scene.hear("n2")
    assert 1 == len(scene.halted)


def test_a_pause_begins_anew() -> None:
    """Whoever was silent so long may have another program now."""
    scene = Scene()
    for _ in range(3):
        scene.hear("n2", times=int(STEADY_S / STEP_S))
        scene.now += PAUSE_S
    scene.hear("n3")
    assert [] == scene.halted


def test_who_is_in_and_who_hears_no_voter_only_says_so() -> None:
    scene = Scene(is_in=True)
    scene.hear("n2", "n3", times=100)
    other = Scene()
    other.hear("n7", "n8", "n1", times=100)
    assert [] == scene.halted == other.halted
    assert (200, 300) == (scene.complaints.counts["wire version"], other.complaints.counts["wire version"])
