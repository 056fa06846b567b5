"""The import order of the packages holds, and the check for it would notice if it did not."""

from __future__ import annotations

import pytest

from tests.tidy.import_rules import problems_in
from tests.tidy.source_tree import package_files


def test_every_module_keeps_to_the_import_order() -> None:
    """wire <- core <- io <- __main__; applications import no daemon; no I/O in the engine."""
    assert [] == [
        problem for file in package_files() for problem in problems_in(file.text, file.module, file.is_package)
    ]


def test_the_check_sees_the_packages_it_is_about() -> None:
    modules = {file.module for file in package_files()}
    assert {"groupsvc.wire.frames", "groupsvcd.core.events", "groupsvcd.core", "groupsvcd.io"} <= modules


BANNED_IN_CORE = [
    "asyncio", "builtins", "concurrent.futures", "ctypes", "datetime", "glob", "importlib", "io", "json", "logging",
    "multiprocessing", "os", "os.path", "pathlib", "pickle", "secrets", "select", "shutil", "signal", "socket",
    "sqlite3", "ssl", "subprocess", "sys", "tempfile", "threading", "time", "tenacity", "urllib.request", "uuid",
    "warnings", "zmq", "groupsvcd.io", "groupsvcd.observe", "groupsvcd", "groupsvc", "groupsvc.testing", "groupsvc.cli",
]  # fmt: skip


@pytest.mark.parametrize("banned", BANNED_IN_CORE)
def test_planted_import_in_the_engine_is_found(banned: str) -> None:
    assert problems_in(f"import {banned}\n", "groupsvcd.core.planted")
    assert problems_in(f"def f():\n    from {banned} import x\n", "groupsvcd.core.domain.planted")


PLANTED = {
    "engine takes time from a module in TYPE_CHECKING": (
        "groupsvcd.core.planted",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import time\n",
    ),
    "engine reaches io by a relative import": ("groupsvcd.core.domain.planted", "from ...io import reactor\n"),
    "engine reaches io from its package file": ("groupsvcd.core", "from ..io.reactor import Reactor\n"),
    "engine reaches io through the parent": ("groupsvcd.core.planted", "from groupsvcd import io\n"),
    "engine calls random as a module": ("groupsvcd.core.planted", "import random\nx = random.random()\n"),
    "engine renames random": ("groupsvcd.core.planted", "import random as dice\nx = dice.choice([1])\n"),
    "engine seeds the global generator": ("groupsvcd.core.planted", "import random\nrandom.seed(1)\n"),
    "engine takes a function out of random": ("groupsvcd.core.planted", "from random import shuffle\n"),
    "engine asks the machine for randomness": ("groupsvcd.core.planted", "from random import SystemRandom\n"),
    "engine prints": ("groupsvcd.core.planted", "def f():\n    print('hello')\n"),
    "engine opens": ("groupsvcd.core.planted", "with open('f') as f:\n    pass\n"),
    "engine imports by hand": ("groupsvcd.core.planted", "__import__('socket')\n"),
    "engine orders by hash": ("groupsvcd.core.planted", "x = hash('a')\n"),
    "the machine of a session does I/O": ("groupsvc.sansio.planted", "import zmq\n"),
    "the machine of a session reads a clock": ("groupsvc.sansio.planted", "from .. import clock\n"),
    "the machine of a session knows its driver": ("groupsvc.sansio.planted", "from ..drivers.pump import Pump\n"),
    "wire does I/O": ("groupsvc.wire.planted", "import socket\n"),
    "wire knows the engine": ("groupsvc.wire.planted", "from groupsvcd.core.peer_messages import Alive\n"),
    "wire knows the rest of the client": ("groupsvc.wire.planted", "from .. import cli\n"),
    "application imports the daemon": ("groupsvc.session", "import groupsvcd\n"),
    "application imports the engine late": ("groupsvc.cli.status", "def f():\n    from groupsvcd.core import engine\n"),
    "another testing tool imports the daemon": ("groupsvc.testing.local", "from groupsvcd.config import Config\n"),
    "a neighbour with a similar name": ("groupsvc.testing.simple", "import groupsvcd.core.engine\n"),
    "io imports the top": ("groupsvcd.io.reactor", "from ..__main__ import main\n"),
    "somebody unpickles": ("groupsvcd.io.peers", "import pickle\n"),
}


@pytest.mark.parametrize("module, text", PLANTED.values(), ids=PLANTED.keys())
def test_planted_violation_is_found(module: str, text: str) -> None:
    problems = problems_in(text, module, is_package=module == "groupsvcd.core")
    assert 1 == len(problems), problems
    assert problems[0].startswith(f"{module}:")


ALLOWED = {
    "engine": (
        "groupsvcd.core.domain.planted",
        "from __future__ import annotations\nimport math\nimport random\nfrom collections import abc\n"
        "import collections.abc\nimport attrs\nimport msgspec\nfrom groupsvc.errors import Failed\n"
        "from groupsvc import wire\nfrom ..records import Stored\nfrom . import election\n"
        "def f(rng: random.Random) -> float:\n    return rng.random()\n",
    ),
    "wire": ("groupsvc.wire.planted", "import struct\nfrom ..errors import Failed\nfrom .kinds import Kind\n"),
    "simulator": ("groupsvc.testing.sim.world", "import time\nfrom groupsvcd.core.engine import Engine\n"),
    "io": ("groupsvcd.io.reactor", "import time\nimport zmq\nfrom ..core.engine import Engine\n"),
    "top": ("groupsvcd.__main__", "import sys\nfrom .io.reactor import Reactor\n"),
    "client": ("groupsvc.session", "import zmq\nfrom .wire import frames\n"),
}


@pytest.mark.parametrize("module, text", ALLOWED.values(), ids=ALLOWED.keys())
def test_what_is_meant_to_be_allowed_is_allowed(module: str, text: str) -> None:
    assert [] == problems_in(text, module)
