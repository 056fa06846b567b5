"""SIGHUP with keys: a node changes its key, and a program is let in, while nobody is started anew."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import groupsvc
from groupsvc.drivers.curve import new_keys
from groupsvc.keys import write_keys
from groupsvc.testing import LocalDomain


def change(domain: LocalDomain, name: str, edit: Callable[[dict[str, Any]], None]) -> None:
    """Another configuration for this daemon; if it runs, it reads it."""
    node = domain._node(name)
    settings: dict[str, Any] = {**node.settings, "node_keys": dict(node.settings["node_keys"])}  # type: ignore[arg-type]
    settings["client_keys"] = dict(settings["client_keys"])
    edit(settings)
    node.write_config(settings)
    before = domain.logs(name).count("configuration reloaded: ")
    os.kill(domain.pid(name), signal.SIGHUP)
    domain.wait_until(
        lambda: domain.logs(name).count("configuration reloaded: ") > before, f"{name} reads its configuration"
    )


def test_a_node_changes_its_key_while_the_others_run(tmp_path: Path) -> None:
    """Everybody lists both, the node takes the new one, the old one goes."""
    new = new_keys()
    write_keys(tmp_path, "n3", new)
    with LocalDomain(keys=True) as domain:
        pids = [domain.pid(name) for name in ("n1", "n2")]
        old = domain._node("n1").settings["node_keys"]["n3"]  # type: ignore[index, call-overload]

        def list_both(settings: dict[str, Any]) -> None:
            settings["node_keys"]["n3"] = [old, new.public]

        def list_new(settings: dict[str, Any]) -> None:
            settings["node_keys"]["n3"] = new.public

        for name in ("n1", "n2", "n3"):
            change(domain, name, list_both)
        change(domain, "n3", lambda settings: settings.update(key_file=str(tmp_path / "n3.key")))
        assert "key_file has changed in the configuration and needs a restart" in domain.logs("n3")
        domain.restart("n3")
        for name in ("n1", "n2", "n3"):
            change(domain, name, list_new)
        assert pids == [domain.pid(name) for name in ("n1", "n2")]
        domain.restart("n3")
        domain.wait_until_up()
        with domain.connect("n1") as first, domain.connect("n3") as second:
            first.join("db")
            assert 2 == len(second.join("db").view.providers)


def test_a_program_is_let_in_when_its_key_is_listed() -> None:
    with LocalDomain(nodes=1, keys=True) as domain:
        mine = new_keys(domain.keys.servers)
        address = domain.remote_address("n1")
        with pytest.raises(groupsvc.GroupServiceError):
            groupsvc.connect(address, keys=mine, timeout=2.0).close()
        change(domain, "n1", lambda settings: settings["client_keys"].update(late=mine.public))
        groupsvc.connect(address, keys=mine).close()
