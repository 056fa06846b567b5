"""Builds of groupsvc side by side, for tests of upgrades.

No version was released yet. For each wire version that there was, ``TAGGED`` names the first commit that wrote it; what
was there then is built from the history of the repository, and must do in one domain with what there is today.

Of versions that there are not yet a build is a copy of this source tree in which the wire version is another one. It is
what the rule of versions (``groupsvc/wire/versions.py``) asks of a release.

A build that reads version 2 knows a kind of message that version 1 does not have; one that writes version 2 has it in
every frame. So a frame of version 2 that came to who only reads 1 could not be decoded, and a domain in which that
happened would stand still.

When there are releases, these are what ``TAGGED`` names.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import IO

import attrs

from groupsvc.testing import LocalDomain
from groupsvc.testing.local_node import LocalNode, environment
from tests.tidy.source_tree import ROOT

NOVELTY_KIND = 98

_KNOWS = {
    "groupsvc/wire/kinds.py": (
        "    SURVEY = 90\n",
        f"    NOVELTY = {NOVELTY_KIND}\n    SURVEY = 90\n",
    ),
    "daemon/groupsvcd/core/peer_messages.py": (
        "AnyPeerMessage = (\n    LeaderAlive |",
        "class Novelty(PeerMessage, tag=int(Kind.NOVELTY)):\n    text: str\n\n\n"
        "AnyPeerMessage = (\n    Novelty | LeaderAlive |",
    ),
}
_SAYS = {
    "daemon/groupsvcd/io/reactor.py": (
        ("import DOMAIN_TOPIC, PEER_CODEC, Goodbye,", "import DOMAIN_TOPIC, PEER_CODEC, Goodbye, Novelty,"),
        (
            "            self._to_peers.put(effect.node, effect.message, effect.valid_until)\n",
            "            self._to_peers.put(effect.node, effect.message, effect.valid_until)\n"
            '            self._to_peers.put(effect.node, Novelty("version 2"), effect.valid_until)\n',
        ),
        (
            "            self._to_topics.put(effect.topic, effect.message, effect.valid_until)\n",
            "            self._to_topics.put(effect.topic, effect.message, effect.valid_until)\n"
            '            self._to_topics.put(effect.topic, Novelty("version 2"), effect.valid_until)\n',
        ),
    )
}


@attrs.frozen
class Build:
    """What a release writes and reads."""

    writes: int
    reads_from: int
    reads_to: int

    @property
    def name(self) -> str:
        """Of its directory."""
        return f"w{self.writes}r{self.reads_from}{self.reads_to}"


TODAY = Build(1, 1, 1)
NEXT = Build(1, 1, 2)
AFTER_NEXT = Build(2, 1, 2)
FAR = Build(3, 2, 3)


@attrs.frozen
class Tagged:
    """A build that there was."""

    commit: str

    @property
    def name(self) -> str:
        """Of its directory."""
        return f"at-{self.commit}"


TAGGED = {1: Tagged("1fd2411677ec5583fcbaa7776604e9cc469ac2d7")}
"""By wire version: the first commit that wrote it."""


def has_history(commit: str) -> bool:
    """Whether this tree is a repository that goes back so far."""
    return (
        0
        == subprocess.run(
            ["git", "-C", ROOT, "cat-file", "-e", f"{commit}^{{commit}}"], stderr=subprocess.DEVNULL, check=False
        ).returncode
    )


def made(build: Build | Tagged, below: Path) -> Path:
    """The source tree of a build, made if it is not there yet."""
    tree = below / build.name
    if tree.exists():
        return tree
    if isinstance(build, Tagged):
        tree.mkdir()
        archive = ["git", "-C", ROOT, "archive", build.commit, "groupsvc", "daemon/groupsvcd"]
        packed = subprocess.run(archive, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", tree], input=packed, check=True)
        return tree
    for package in ("groupsvc", "daemon/groupsvcd"):
        shutil.copytree(ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
    for constant in ("WRITES", "READS_FROM", "READS_TO"):
        _replace(
            tree / "groupsvc/wire/versions.py",
            f"\n{constant} = 1\n",
            f"\n{constant} = {getattr(build, constant.lower())}\n",
        )
    if build.reads_to > 1:
        for file, (old, new) in _KNOWS.items():
            _replace(tree / file, old, new)
    if build.writes > 1:
        for file, changes in _SAYS.items():
            for old, new in changes:
                _replace(tree / file, old, new)
    return tree


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert 1 == text.count(old), f"{file} has {text.count(old)} times {old!r}"
    file.write_text(text.replace(old, new))


class NodeOfABuild(LocalNode):
    """A daemon whose program is that of ``tree``, or of this tree if that is None."""

    tree: Path | None = None

    def _spawn(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        if self.tree is None:
            return super()._spawn(log)
        places = os.pathsep.join((str(self.tree), str(self.tree / "daemon")))
        return subprocess.Popen(
            [sys.executable, "-m", "groupsvcd", "--config", str(self.config_file)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            cwd=self.tree, env={**environment(), "PYTHONPATH": places},
        )  # fmt: skip


class DomainOfBuilds(LocalDomain):
    """A domain in which every node has a program of its own."""

    node_class = NodeOfABuild

    def install(self, name: str, build: Build | Tagged) -> None:
        """The program that ``name`` has from its next start on."""
        node = self._node(name)
        assert isinstance(node, NodeOfABuild)
        node.tree = made(build, self.directory)

    def runs(self, name: str) -> bool:
        """Whether its daemon runs."""
        return self._node(name).is_running
