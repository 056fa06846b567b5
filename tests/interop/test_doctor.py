"""The doctor at real daemons: a domain that is well, one with a dead node, and one that cannot work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from groupsvc.cli.exit_codes import ExitCode
from groupsvc.testing import LocalDomain

from .typed_commands import groupsvc, wait_until


def examined(domain: LocalDomain) -> tuple[int, dict[tuple[str, str], list[str]]]:
    """The exit code, and what was found, by check and level."""
    file = Path(domain.address("n2").removeprefix("ipc://")).with_name("n2.toml")
    ended = groupsvc(domain, "doctor", "--config", str(file), "--json")
    found: dict[tuple[str, str], list[str]] = {}
    answer: Any = json.loads(ended.stdout)
    for one in answer["findings"]:
        found.setdefault((one["check"], one["level"]), []).append(one["text"])
    assert answer["healthy"] is (ended.returncode == ExitCode.OK)
    return ended.returncode, found


def found_without_a_file(domain: LocalDomain) -> dict[tuple[str, str], list[str]]:
    """What the doctor says who was told nothing but where the daemon is."""
    found: dict[tuple[str, str], list[str]] = {}
    for one in json.loads(groupsvc(domain, "doctor", "--json").stdout)["findings"]:
        found.setdefault((one["check"], one["level"]), []).append(one["text"])
    return found


def test_without_a_file_the_doctor_asks_the_daemon_which_one_it_has_read() -> None:
    with LocalDomain(nodes=3, keys=True) as domain:
        wait_until("all up", lambda: all(domain.status(name) is not None for name in domain.names))
        found = found_without_a_file(domain)
        file = domain.directory / "n2.toml"
        assert [f"{file} is good: n2, voter of a domain of 3 voters"] == found["configuration", "OK"]
        assert all("is a pair" in text for text in found["keys", "OK"])
        assert any("in use by process" in text for text in found["state directory", "OK"])


def test_without_a_file_the_doctor_knows_that_a_domain_of_three_is_no_daemon_alone() -> None:
    """As ``groupsvc dev`` makes it: no keys, nobody has named a file."""
    with LocalDomain(nodes=3) as domain:
        wait_until("all up", lambda: all(domain.status(name) is not None for name in domain.names))
        found = found_without_a_file(domain)
        assert any("voter of a domain of 3 voters" in text for text in found["configuration", "OK"])
        assert ("configuration", "WARN") not in found
        assert ["all 3 are up"] == found["nodes", "OK"]


def test_the_doctor_does_not_take_the_file_of_one_node_for_that_of_another() -> None:
    """It said of a daemon that runs well that nobody answers, and that it should be ended."""
    with LocalDomain(nodes=3) as domain:
        wait_until("all up", lambda: all(domain.status(name) is not None for name in domain.names))
        ended = groupsvc(domain, "doctor", "--config", str(domain.directory / "n1.toml"))
        expected = f"the file is that of n1, and the daemon at {domain.address('n2')} is n2"
        assert expected in ended.stdout
        assert "no daemon answers" not in ended.stdout


def test_the_doctor_finds_what_is_wrong_with_a_domain() -> None:
    """From well to not at all: n4 dies, then the name server and another voter with it."""
    with LocalDomain(nodes=4, voters=3, keys=True) as domain:
        wait_until("all up", lambda: all(domain.status(name) is not None for name in domain.names))
        code, found = examined(domain)
        assert ExitCode.OK == code, found
        assert found["reachability", "OK"][0].startswith("n1, n2, n3, n4 reach one another, both ways (")
        assert ("clocks", "OK") in found
        assert ("versions", "OK") in found
        assert any("in use by process" in text for text in found["state directory", "OK"])

        domain.kill("n4")
        wait_until("n4 down", lambda: any("n4 is" in text for text in examined(domain)[1].get(("nodes", "WARN"), [])))

        domain.kill("n1")
        domain.kill("n3")
        wait_until("suspended", lambda: examined(domain)[0] == ExitCode.UNHEALTHY)
        assert any("does not serve its programs" in text for text in examined(domain)[1]["daemon", "FAIL"])
        domain.kill("n2")
        code, found = examined(domain)
        assert ExitCode.UNHEALTHY == code
        assert ("configuration", "OK") in found
        assert any("is not in use" in text for text in found["state directory", "OK"])
