"""A leader whose last process has left is about to leave its group, and stays, as another comes: what it writes.

Between the two no process of D takes part, and D writes nothing about processes. Its journal has to say so: else an
outsider finds that D has left out the outcome of a ballot, which all others have.
"""

from __future__ import annotations

import pytest

from groupsvc.journals.reading import Journal
from groupsvc.journals.stays import Stays
from groupsvc.wire.history import SCHEMA_VERSION, HistoryEvent
from tests.sim.test_journals import found_in
from tests.unit.core.groups.processes import Processes


def journals(nodes: Processes) -> list[HistoryEvent]:
    """As the daemons would have written them."""
    return [
        HistoryEvent(
            v=SCHEMA_VERSION, i=i, boot=str(nodes.incarnation(line.node)), t=line.at, node=line.node, who="daemon",
            op=line.op, group=line.group, seq=line.seq, epoch=line.epoch, args=line.args,
        )
        for i, line in enumerate(nodes.journal, start=1)
    ]  # fmt: skip


@pytest.mark.parametrize("away_s", [0.002, 0.004, 0.006, 0.008, 0.02])
def test_what_was_decided_while_no_process_was_here_is_missed_by_no_audit(away_s: float) -> None:
    """G1; in the last case D has left before anybody comes, and joins anew."""
    nodes = Processes()
    on_d, on_e, on_f = (nodes.start(node) for node in "DEF")
    nodes.run(0.5)
    on_d.die()
    on_e.propose_state(b"red")
    nodes.run(away_s)
    on_e.propose_state(b"blue")
    nodes.start("D", wait=0.3)
    for process in (on_e, on_f):
        process.propose_state(process.node.encode())
        nodes.run(0.3)
    found = found_in(journals(nodes))
    assert [] == [str(one) for one in found.contradictions]
    assert found.compared["G1"] > 0


def test_who_stays_after_it_went_on_from_a_checkpoint_has_another_stay() -> None:
    """G1: a member that lagged was restored in its place; when it joins again, that is no part of its first stay."""
    stays = Stays(Journal("D", 1, ()))
    found = [
        stays.of(HistoryEvent(v=SCHEMA_VERSION, i=i, t=0.0, op=op, group=6, seq=seq, args={"era": 0}))
        for i, (op, seq) in enumerate((("restored", 0), ("joined", 0), ("restored", 3), ("joined", 818)), start=1)
    ]
    assert found[0] is found[1]
    assert 3 == len(set(map(id, found)))
    assert [0, 3, 818] == [stay.delivered for stay in found[1:]]
