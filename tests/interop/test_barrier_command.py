"""``groupsvc barrier`` with real daemons: scripts that meet, one that does not come, one that dies."""

from __future__ import annotations

import json
import signal
import time
from contextlib import ExitStack

import pytest

from groupsvc.cli.exit_codes import ExitCode
from groupsvc.testing import LocalDomain

from .typed_commands import Typed, groupsvc, wait_until

NODES = {"anna": "n1", "bert": "n2", "cleo": "n3"}


@pytest.fixture
def name() -> str:
    """Of a barrier of this test alone."""
    return f"shell/{time.time_ns()}"


def come(domain: LocalDomain, name: str, who: str, *more: str) -> Typed:
    """One party."""
    return Typed(domain, "barrier", name, "--expect", "anna,bert,cleo", "--as", who, *more, node=NODES[who])


def has_come(domain: LocalDomain, name: str, *names: str) -> None:
    """Until these have joined; they come to the barrier at the next moment."""
    with domain.connect("n1") as session, session.subscribe(name, wait=20) as watching:
        wait_until(f"there: {names}", lambda: set(names) <= {one.name for one in watching.view.providers})


def test_three_meet_twice_and_each_has_a_rank_of_its_own(shared_domain: LocalDomain, name: str) -> None:
    """R1: everybody is told the same; who leaves a round does not break the next one."""
    for _ in range(2):
        with ExitStack() as stack:
            script = ("--", "sh", "-c", "echo $GROUPSVC_RANK of $GROUPSVC_PARTIES at $GROUPSVC_BARRIER; exit 4")
            parties = [
                stack.enter_context(come(shared_domain, name, who, "--payload", f"of {who}", *more))
                for who, more in (("anna", ("--json",)), ("bert", ()), ("cleo", script))
            ]
            assert [0, 0, 4] == [one.ends() for one in parties]
            one, two, three = (iter(party.says, "") for party in parties)
            found = json.loads("\n".join(one))
            assert found["released"] is True
            names = [party["name"] for party in found["parties"]]
            assert list(NODES) == sorted(names)
            assert [f"of {who}" for who in names] == [party["payload"] for party in found["parties"]]
            assert "anna" == names[found["rank"]]
            rank = names.index("cleo")
            assert [f"{rank} of 3 at {name}"] == list(three)
            assert f"{name}: round {found['round']}, 3 parties, this one is {names.index('bert')}" == next(two)


def test_when_the_time_is_up_all_end_and_the_missing_is_named(shared_domain: LocalDomain, name: str) -> None:
    with come(shared_domain, name, "bert", "--", "echo", "never") as patient:
        has_come(shared_domain, name, "bert")
        with come(shared_domain, name, "anna", "--timeout", "0.5", "--json") as hasty:
            assert (ExitCode.LATE, ExitCode.LATE) == (hasty.ends(), patient.ends())
            found = json.loads("\n".join(iter(hasty.says, "")))
            for party in (hasty, patient):
                assert "the time of anna at n1 was up; 2 of 3 had come" in party.complains()
                assert party.complains().endswith("; missing: cleo\n")
        assert (False, "timeout", ["cleo"]) == (found["released"], found["why"], found["missing"])
        assert "" == patient.says()


def test_nobody_else_counts_in_place_of_who_is_expected(shared_domain: LocalDomain, name: str) -> None:
    """Two that call themselves anna, and bert does not come: the number is right, and nobody goes on."""
    with ExitStack() as stack:
        both = [
            stack.enter_context(
                Typed(shared_domain, "barrier", name, "--expect", "anna,bert", "--as", "anna", node=node)
            )
            for node in ("n1", "n2")
        ]
        assert [ExitCode.BROKEN, ExitCode.BROKEN] == [one.ends() for one in both]
        assert all("anna, anna came, and bert did not" in one.complains() for one in both)


def test_who_dies_at_the_barrier_breaks_it(shared_domain: LocalDomain, name: str) -> None:
    with come(shared_domain, name, "bert") as bert, come(shared_domain, name, "anna") as anna:
        has_come(shared_domain, name, "anna", "bert")
        time.sleep(0.3)  # they come to the barrier after they have joined
        bert.process.kill()
        assert ExitCode.BROKEN == anna.ends()
        assert "is broken: bert at n2 died" in anna.complains()


def test_who_is_interrupted_ends_it_for_all(shared_domain: LocalDomain, name: str) -> None:
    with come(shared_domain, name, "bert") as bert, come(shared_domain, name, "anna") as anna:
        has_come(shared_domain, name, "anna", "bert")
        time.sleep(0.3)  # they come to the barrier after they have joined
        bert.process.send_signal(signal.SIGINT)
        assert (128 + signal.SIGINT, ExitCode.BROKEN) == (bert.ends(), anna.ends())
        assert "is broken: bert at n2 did not want to wait any longer" in anna.complains()


def test_a_program_can_be_one_of_the_parties_and_is_named_if_it_does_not_come(
    shared_domain: LocalDomain, name: str
) -> None:
    with shared_domain.connect("n1") as session, session.join(name, name="program") as group:
        late = groupsvc(shared_domain, "barrier", name, "--parties", "3", "--timeout", "0.3")
        assert ExitCode.LATE == late.returncode
        assert late.stderr.endswith("; missing: program; 1 never came\n")
        with Typed(shared_domain, "barrier", f"{name}/2", "--parties", "2", "--as", "script") as script:
            with session.join(f"{name}/2", name="program") as other:
                released = other.barrier(parties=2).wait(b"hello", timeout=20)
            assert {b"hello", b""} == set(released.payloads.values())
            assert 0 == script.ends()
        assert group.providers
