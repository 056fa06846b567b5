"""A domain goes to the release after the next, node by node and under load, and back; who skips one is refused.

What the builds are, and what they are not, is said in ``builds.py``.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import attrs
import pytest

from groupsvc.wire import versions
from tests.interop.builds import AFTER_NEXT, FAR, NEXT, TAGGED, TODAY, Build, DomainOfBuilds, Tagged, has_history
from tests.interop.load import PATIENCE_S, Load


@pytest.fixture
def domain() -> Iterator[DomainOfBuilds]:
    assert (versions.WRITES, versions.READS_FROM, versions.READS_TO) == attrs.astuple(TODAY)
    with DomainOfBuilds(nodes=3, ready_timeout=PATIENCE_S) as made:
        yield made


def replaced(domain: DomainOfBuilds, name: str, build: Build | Tagged) -> None:
    """As docs/OPERATIONS.md says: drain the node, start it with the other program, wait until it is in."""
    os.kill(domain.pid(name), signal.SIGUSR2)
    domain.wait_until(lambda: not domain.runs(name), f"{name} is drained", timeout=PATIENCE_S)
    assert 0 == domain.exit_code(name)
    domain.install(name, build)
    domain.restart(name)


def goes_through(domain: DomainOfBuilds, *builds: Build | Tagged) -> None:
    """Node by node from one to the next; every message that was certain is there, once, and no frame was refused."""
    load = Load.on(domain)
    try:
        for build in builds:
            for name in domain.names:
                replaced(domain, name, build)
                load.wait_for_more(domain)
    finally:
        load.end()
    for name in domain.names:
        for event in ("wire version", "bad frame", "suspended", "halted"):
            assert event not in domain.logs(name)


def test_a_domain_is_upgraded_by_two_releases_and_rolled_back_under_load(domain: DomainOfBuilds) -> None:
    goes_through(domain, NEXT, AFTER_NEXT, NEXT, TODAY)


@pytest.mark.alone
@pytest.mark.parametrize("version", TAGGED)
def test_a_domain_of_the_first_build_of_a_wire_version_goes_to_that_of_today_and_back(
    domain: DomainOfBuilds, version: int
) -> None:
    """What was written then is read today, and the other way round: a version does not change (docs/PROTOCOL.md)."""
    then = TAGGED[version]
    if not has_history(then.commit):
        pytest.skip(f"the history of the repository missing: git fetch --unshallow ({then.commit[:7]})")
    for name in domain.names:
        replaced(domain, name, then)
    goes_through(domain, TODAY, then)


def refused(domain: DomainOfBuilds, name: str) -> str:
    """What a daemon says last that is to end by itself because of its version."""
    domain.wait_until(lambda: not domain.runs(name), f"{name} ends", timeout=PATIENCE_S)
    assert 3 == domain.exit_code(name)
    (line,) = (line for line in domain.logs(name).splitlines() if "halted: " in line)
    assert "this node may not join the domain: " in line
    assert versions.REMEDY in line
    return line


def test_who_skips_a_release_is_refused_on_both_sides_and_the_others_go_on(domain: DomainOfBuilds) -> None:
    """Reads what they write, but is not read: the voter that is to come back ends, and so does a node that is none."""
    domain.kill("n3")
    domain.install("n3", AFTER_NEXT)
    domain.restart("n3", wait=False)
    both = "writes wire version 1 and reads 1, this side writes wire version 2 and reads 1 to 2. "
    assert both in refused(domain, "n3")
    theirs = "wire version: n3 writes wire version 2 and reads 1 to 2, this side writes wire version 1 and reads 1: "
    domain.wait_until(lambda: all(theirs in domain.logs(name) for name in ("n1", "n2")), "it is named in the logs")
    domain.wait_until_up("n1", "n2")
    domain.add("n4", wait=False)
    domain.kill("n4")
    domain.install("n4", AFTER_NEXT)
    domain.restart("n4", wait=False)
    assert both in refused(domain, "n4")
    domain.install("n3", NEXT)
    domain.restart("n3")
    domain.wait_until_up("n1", "n2", "n3")


def test_who_can_neither_read_nor_be_read_is_refused_on_both_sides(domain: DomainOfBuilds) -> None:
    domain.kill("n3")
    domain.install("n3", FAR)
    domain.restart("n3", wait=False)
    assert "writes wire version 1 and reads 1, this side writes wire version 3 and reads 2 to 3. " in refused(
        domain, "n3"
    )
    domain.install("n3", TODAY)
    domain.restart("n3")


def test_a_node_is_not_let_in_beside_one_that_it_would_be_deaf_to(domain: DomainOfBuilds) -> None:
    """The name server understands both, and so do most voters; but these two would sit in one group and not hear."""
    domain.add("n4")
    for name in domain.voters:
        replaced(domain, name, NEXT)
    domain.add("n5", wait=False)
    domain.kill("n5")
    domain.install("n5", AFTER_NEXT)
    domain.restart("n5", wait=False)
    expected = "n5 writes wire version 2 and reads 1 to 2, but n4, which is up, writes wire version 1 and reads 1. "
    assert expected in refused(domain, "n5")
    leader = domain.wait_for_name_server()
    assert "unwelcome: n5 may not join: n5 writes wire version 2" in domain.logs(leader)
    replaced(domain, "n4", NEXT)
    domain.restart("n5")


def test_one_node_with_the_wrong_program_does_not_keep_the_others_from_starting(domain: DomainOfBuilds) -> None:
    """After a power failure: two voters are a majority, whatever the third one is."""
    for name in domain.names:
        domain.kill(name)
    domain.install("n3", AFTER_NEXT)
    for name in ("n3", "n1", "n2"):
        domain.restart(name, wait=False)
    domain.wait_until_up("n1", "n2")
    refused(domain, "n3")
