"""Every example runs, as a user would run it: as a program of its own, its output not a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from groupsvc.limits import responsive_s

EXAMPLES = Path(__file__).parents[2] / "examples"
WORDS = {
    "configuration_rollout.py": [
        "rejected, EXPLICIT_REJECT", "bert says: my disk is full", "approved, EXPLICIT_APPROVE",
        "approved, DEFAULT_APPROVE", "carl: APPROVE, cast by default: FAILED", "carl has left (FAILURE)",
        "in force is 'cache = 9 GB'",
    ],
    "demo.py": [
        "n1 is name server", "anna is primary", "kill -9", "left: anna at n1 (NODE_FAILURE)", "bert is primary",
        "left: bert at n2 (FAILURE)", "carl is primary", "joined: anna at n1", "all have ended",
        "ms  the daemon that led everything is killed",
    ],
    "fenced_resource.py": [
        "bert: I have the lock; my write is taken: True", "anna: I had the lock a moment ago; my write is taken: False",
        "bert has the lock, and the report is by bert",
    ],
    "group_chat.py": [
        "what anna has read", "bert has read 11 lines, the same in the same order: True",
        "carl has read 10 lines, the same in the same order: True",
    ],
    "group_chat_asyncio.py": [
        "what anna has read", "anna has read 9 lines, the same in the same order: True",
        "bert has read 9 lines, the same in the same order: True",
        "carl has read 9 lines, the same in the same order: True",
    ],
    "primary_backup.py": [
        "anna: I am the oldest", "the primary is anna; kill -9", "anna left (FAILURE); the next oldest is bert",
        "bert: I am the oldest", "bert writes with a higher fence: True", "the primary is bert; kill -STOP",
        "carl: bert does not answer, and is primary; I have it expelled", "bert left (EXPELLED)",
        "carl: I am the oldest", "bert: nobody vouches for it any more that I am primary, so I am not",
        "bert: I was expelled (does not answer)", "with the old fence, is taken: False",
    ],
    "routing_table.py": [
        "bert joins and has 150 routes at once", "the default route is now gateway-1", "over the default route: True",
        "once more from gateway-1: False", "has some of what she was writing",
        "the default route is gone for bert, too: True", "carl joins and has the same table: True",
        "all tables are equal, byte for byte: True",
    ],
    "shared_setting.py": ["bert was too late", "everybody reads '3'"],
    "training_loop.py": [
        "worker-0: step 100 did not happen, worker-2 is gone (failure)", "worker-3: step 100 did not happen",
        "3 workers are left, and all have the same model: True", "y = 3.0 x + 1.0",
    ],
    "unfenced_resource.py": [
        "bert: I have the lock; my write is taken: True", "anna: I had the lock a moment ago; my write is taken: True",
        "bert has the lock, and the report is by anna",
    ],
    "work_sharing.py": ["carl joins", "the node of carl dies", "bert leaves", "anna at n1, by view"],
}  # fmt: skip
STORY_S = 15.0
WAITS_S = {"primary_backup.py": responsive_s}
"""What has to be waited for in a story, beyond that."""
NEVER = ["every shard is done once: False", "in the same order: False"]


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_the_example_tells_its_story(example: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    began = time.monotonic()
    ended = subprocess.run(
        [sys.executable, str(EXAMPLES / example)], capture_output=True, text=True, timeout=60, env=environment
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    for words in WORDS[example]:
        assert words in ended.stdout
    assert [] == [words for words in NEVER if words in ended.stdout]
    assert "" == ended.stderr
    assert "\x1b" not in ended.stdout
    assert time.monotonic() - began < STORY_S + WAITS_S.get(example, 0.0)
