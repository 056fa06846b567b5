"""Journals of real daemons: an outsider who has nothing else finds no contradiction, and every one that is planted.

One domain of three nodes is put under load: messages, ballots with votes of all kinds, barriers, a session that ends, a
daemon that is killed and comes back. What its daemons wrote is then checked as it is, and once for each rule with one
line of it changed by hand.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import groupsvc
from groupsvc import GroupAttributes, Phases, Vote
from groupsvc.journals.auditing import RULES, audit
from groupsvc.journals.segments import segments_of
from groupsvc.testing import LocalDomain

pytestmark = pytest.mark.timeout(180)

PATIENCE_S = 30.0
VOTED = GroupAttributes(state_phases=Phases.N, time_limit=0.4)

Line = dict[str, Any]


def _votes(proposal: groupsvc.Proposal) -> Vote:
    """As the proposed state says: all approve, or want another phase, or reject."""
    state = (proposal.state or b"").decode()
    if state.startswith("continue") and proposal.phase == 1:
        return Vote.CONTINUE
    if state.startswith("reject"):
        return Vote.REJECT
    return Vote.APPROVE


def _load(groups: list[groupsvc.Group], words: list[str]) -> None:
    for number, word in enumerate(words):
        for group in groups:
            for _ in range(40):
                group.multicast(f"{word}".encode() * 20)
        try:
            groups[number % len(groups)].propose_state(f"{word} {number}".encode(), timeout=PATIENCE_S)
        except groupsvc.Rejected:
            assert word == "reject"
    for group in groups:
        group.flush()
    with ThreadPoolExecutor(len(groups)) as pool:
        waits = [pool.submit(group.barrier("step").wait, timeout=PATIENCE_S) for group in groups for _ in range(1)]
        assert 1 == len({wait.result().round for wait in waits})


@pytest.fixture(scope="module", params=["batch", "full"])
def journals(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What three daemons wrote at this level."""
    directory = tmp_path_factory.mktemp("journals")
    settings = {"journal_directory": str(directory), "journal_level": request.param}
    with LocalDomain(nodes=3, settings=settings) as domain:
        sessions = [domain.connect(node, default_timeout=PATIENCE_S) for node in domain.names]
        groups = [session.join("audited", name=node, attributes=VOTED, on_proposal=_votes)
                  for node, session in zip(domain.names, sessions, strict=True)]  # fmt: skip
        silent = domain.connect("n2", default_timeout=PATIENCE_S)
        late = silent.join("audited", name="late", on_proposal=groupsvc.MANUAL)
        _load([*groups, late], ["approve", "continue", "reject", "approve"])
        late.leave()
        silent.close()
        _load(groups, ["approve"])
        domain.kill("n3")
        _load(groups[:2], ["approve", "continue"])
        domain.restart("n3")
        domain.wait_until_up("n3")
        with domain.connect("n3", default_timeout=PATIENCE_S) as again:
            groups[2] = again.join("audited", name="n3", on_proposal=_votes)
            _load(groups, ["approve"])
        for session in sessions:
            session.close()
    return directory


def _level(directory: Path) -> str:
    return str(json.loads(segments_of(directory)[0][1].open().readline())["args"]["level"])


def test_what_daemons_wrote_fits_together(journals: Path) -> None:
    """Every rule that this level is enough for was looked at, and it says which it was not."""
    found = audit([journals])
    assert [] == [str(one) for one in found.contradictions]
    level = _level(journals)
    expected = {rule for rule, (needs, _) in RULES.items() if level == "full" or needs == "batch"}
    assert set() == expected - {rule for rule in found.compared if found.compared[rule]}
    assert (level == "batch") == any("needs journal_level full" in why for why in found.unchecked)


# --- One line changed by hand -------------------------------------------------------------------------------


class Lines:
    """All lines of some journals, one of which is to be changed."""

    def __init__(self, directory: Path) -> None:
        self._files = [file for _, file in segments_of(directory)]
        self._by_file = [
            [{"args": {}, **json.loads(raw)} for raw in file.read_bytes().splitlines()] for file in self._files
        ]
        self.all: list[Line] = [line for lines in self._by_file for line in lines]

    def of(self, op: str, **about: Any) -> list[Line]:
        """Those about groups with this op, and with these fields or arguments."""
        found = [line for line in self.all if line["op"] == op and line.get("group")]
        return [line for line in found if all(about[name] == _field(line, name) for name in about)]

    def write(self, directory: Path) -> None:
        """Write them all, changed or not."""
        for file, lines in zip(self._files, self._by_file, strict=True):
            (directory / file.name).write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))


def _field(line: Line, name: str) -> Any:
    return line[name] if name in line else line.get("args", {}).get(name)


def _common_digest(lines: Lines) -> Line:
    """A digest at a number at which another node has one, too."""
    found = [line for op in ("delivered", "digest") for line in lines.of(op) if "digest" in line["args"]]
    keys = [(line["group"], line["args"]["base"], line["seq"]) for line in found]
    return next(line for line, key in zip(found, keys, strict=True) if keys.count(key) > 1)


def _counted(lines: Lines, vote: str = "approve") -> Line:
    """An outcome of which somebody's own vote was part."""
    return next(
        line for line in lines.of("outcome", kind="state")
        if any((cast, why) == (vote, "") for _, cast, why in line["args"]["votes"])
    )  # fmt: skip


def _at_one_node(lines: list[Line]) -> list[Line]:
    """Those of the first journal that has two."""
    return next(
        found for line in lines
        if len(found := [other for other in lines if other["boot"] == line["boot"]]) > 1
    )  # fmt: skip


def _b1(lines: Lines) -> None:
    lines.of("delivered")[20]["crc"] = 7


def _b4(lines: Lines) -> None:
    _common_digest(lines)["args"]["digest"] = "0" * 16


def _b4_gap(lines: Lines) -> None:
    line = _at_one_node(lines.of("delivered"))[1]
    if "first" in line["args"]:
        line["args"]["first"] += 1
    else:
        line["op"] = "mark"  # as if it had not been delivered


def _b5(lines: Lines) -> None:
    next(line for line in reversed(lines.of("delivered")) if line.get("n", 0) > 1)["n"] = 1


def _v1(lines: Lines) -> None:
    installed = lines.of("view_installed")
    epochs = [line["epoch"] for line in installed]
    alone = next(line for line in installed if epochs.count(line["epoch"]) == 1)
    alone["args"]["members"] = ["elsewhere"]


def _v2(lines: Lines) -> None:
    _at_one_node(lines.of("view_installed"))[0]["epoch"] += 10**6


def _v3(lines: Lines) -> None:
    next(line for line in lines.of("members") if len(line["args"]["members"]) == 3)["args"]["members"].pop()


def _l1(lines: Lines) -> None:
    leads = {line["epoch"]: line["node"] for line in lines.of("view_active")}
    next(line for line in lines.of("view_installed") if leads.get(line["epoch"], "n1") != line["node"])["op"] = (
        "view_active"
    )


def _l3(lines: Lines) -> None:
    lines.of("promise")[0]["epoch"] += 10**6


def _l6(lines: Lines) -> None:
    lines.of("provider_joined")[0]["args"]["fence"] += 10**12


def _g1(lines: Lines) -> None:
    lines.of("phase")[1]["args"]["proposals"] = [["n9", 1, 1]]


def _g1_missing(lines: Lines) -> None:
    lines.of("votes")[0]["op"] = "mark"  # as if it had not been told


def _g2(lines: Lines) -> None:
    _counted(lines)["args"]["reason"] = "one_phase"


def _g3(lines: Lines) -> None:
    _counted(lines)["args"]["approved"] = False


def _g4(lines: Lines) -> None:
    lines.of("voted", vote="approve")[0]["args"]["vote"] = "continue"


def _g5(lines: Lines) -> None:
    cast = next(one for one in _counted(lines)["args"]["votes"] if one[1:] == ["approve", ""])
    cast[2] = "failed"


def _g5_late(lines: Lines) -> None:
    """Nobody was given the whole time: only the beginning of a phase can be moved, at every node in turn."""
    late = next(line for line in lines.of("outcome") if any(why == "late" for _, _, why in line["args"]["votes"]))
    ballot, phase = late["args"]["ballot"], late["args"]["phases"]
    for line in lines.of("phase", ballot=ballot, phase=phase):
        line["args"]["at"] += 0.2


def _g9(lines: Lines) -> None:
    lines.of("state")[0]["crc"] = 7


def _g10(lines: Lines) -> None:
    first, second, *_ = _at_one_node(lines.of("provider_left"))
    second["args"]["providers"] = first["args"]["providers"]


def _r1(lines: Lines) -> None:
    lines.of("barrier_entered")[0]["seq"] = 10**9


def _r1_clock(lines: Lines) -> None:
    lines.of("barrier_entered")[0]["t"] += 10**3


def _r2(lines: Lines) -> None:
    lines.of("barrier_over")[0]["args"]["parties"] = 17


def _r3(lines: Lines) -> None:
    entered = _at_one_node(lines.of("barrier_entered"))
    provider = entered[0]["args"]["provider"]
    next(line for line in entered[1:] if line["args"]["provider"] == provider)["args"]["round"] = 1


def _j1(lines: Lines) -> None:
    lines.all[-3]["i"] = 1


PLANTED: tuple[tuple[Callable[[Lines], None], str, set[str]], ...] = (
    (_b1, "full", {"B1"}), (_b4, "batch", {"B4"}), (_b4_gap, "batch", {"B4"}), (_b5, "full", {"B4", "B5"}),
    (_v1, "batch", {"V1"}), (_v2, "batch", {"V2"}), (_v3, "batch", {"V3"}),
    (_l1, "batch", {"L1"}), (_l3, "batch", {"L3"}), (_l6, "batch", {"L6"}),
    (_g1, "batch", {"G1"}), (_g1_missing, "batch", {"G1"}), (_g2, "batch", {"G2"}), (_g3, "batch", {"G2", "G3"}),
    (_g4, "batch", {"G4"}), (_g5, "batch", {"G2", "G5"}), (_g5_late, "batch", {"G5"}), (_g9, "batch", {"G9"}),
    (_g10, "batch", {"G10"}),
    (_r1, "batch", {"R1"}), (_r1_clock, "batch", {"R1"}), (_r2, "batch", {"R2"}), (_r3, "batch", {"R3"}),
    (_j1, "batch", {"J1"}),
)  # fmt: skip
"""What is changed, the level it needs, and the rules that it breaks: an outcome unlike the others' breaks two."""


def test_a_contradiction_that_is_planted_is_found_and_nothing_else(journals: Path, tmp_path: Path) -> None:
    """A checker without a red run counts as absent."""
    level, wrong = _level(journals), {}
    for plant, needs, rules in PLANTED:
        if needs == "full" and level != "full":
            continue
        lines = Lines(journals)
        plant(lines)
        lines.write(tmp_path)
        found = {one.rule for one in audit([tmp_path]).contradictions}
        if rules != found:
            wrong[plant.__name__] = found
    assert {} == wrong
    assert set(RULES) <= {rule for _, _, rules in PLANTED for rule in rules}
