"""Real daemons do what their domain decided about options, also the one that was down (MSG-13)."""

from __future__ import annotations

import json

import pytest

from groupsvc.cli import main
from groupsvc.cli.exit_codes import ExitCode
from groupsvc.drivers.connection import DaemonConnection
from groupsvc.testing import LocalDomain
from groupsvc.wire.table_lines import OptionLine


def option(domain: LocalDomain, node: str, key: str) -> OptionLine:
    with DaemonConnection(domain.address(node)) as connection:
        return next(line for line in connection.options().options if line.key == key)


def test_what_one_operator_says_at_one_node_is_done_by_all(capsys: pytest.CaptureFixture[str]) -> None:
    """Set while n3 is down and while all are up; unset; a value that will not do; a node without a vote."""
    with LocalDomain(nodes=3) as domain:
        domain.add("w1")
        at_n1 = ["--address", domain.address("n1")]
        domain.kill("n3")
        assert ExitCode.OK == main(["config", "set", "limits.clients_max", "77", *at_n1])
        assert ExitCode.USAGE == main(["config", "set", "limits.clients_max", "lots", *at_n1])
        assert ExitCode.USAGE == main(["config", "set", "timers.lease", "9", *at_n1])
        domain.restart("n3")
        for node in ("n1", "n2", "n3", "w1"):
            domain.wait_until(
                lambda at=node: "77" == option(domain, at, "limits.clients_max").value,  # type: ignore[misc]
                f"{node} does what the domain says",
            )
        assert "domain" == option(domain, "n3", "limits.clients_max").source
        capsys.readouterr()
        assert ExitCode.OK == main(["config", "get", "limits.clients_max", "--json", *at_n1])
        found = json.loads(capsys.readouterr().out)
        version = found["version"]
        assert ("77", "domain", True) == (found["value"], found["source"], version > 0)
        old = ["--if-version", str(version - 1)]
        assert ExitCode.FAILED == main(["config", "unset", "limits.clients_max", *old, *at_n1])
        assert ExitCode.OK == main(["config", "unset", "limits.clients_max", "--if-version", str(version), *at_n1])
        for node in ("n2", "w1"):
            domain.wait_until(
                lambda at=node: "1000" == option(domain, at, "limits.clients_max").value,  # type: ignore[misc]
                f"{node} does what it did before",
            )
