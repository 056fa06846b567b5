"""Which log a new leader takes, and whose promise counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from groupsvcd.core.peer_messages import Promised
from groupsvcd.core.stream.recovery import best_report, counting_reports

OLD = (("A", "disk-A"), ("B", "disk-B"), ("C", "disk-C"))
NEW = (("A", "disk-A"), ("B", "disk-B"), ("C", "disk-C-new"))


def _report(
    accepted: int, last: int, state_id: str = "", voters: tuple[tuple[str, str], ...] = (), stable: int = 0
) -> Promised:
    return Promised(0, 9, accepted, last, stable, 0, state_id, voters)


def test_the_accepted_epoch_comes_before_the_length() -> None:
    """A's longer log of epoch 6 may end in entries that epoch 7 replaced."""
    assert "B" == best_report("A", {"A": _report(6, 50), "B": _report(7, 10)})


def test_of_one_epoch_the_longest_log_is_best() -> None:
    """Logs of one epoch are prefixes of one another."""
    assert "C" == best_report("A", {"A": _report(7, 10), "B": _report(7, 11), "C": _report(7, 12)})


def test_of_equals_our_own_log_is_best_then_the_smaller_name() -> None:
    """Nothing needs to be fetched, and the choice is the same whatever order the reports came in."""
    assert "B" == best_report("B", {"C": _report(7, 10), "A": _report(7, 10), "B": _report(7, 10)})
    assert "A" == best_report("B", {"C": _report(7, 10), "A": _report(7, 10), "B": _report(6, 10)})


@given(
    logs=st.dictionaries(st.sampled_from("BCDE"), st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=4),
    mine=st.tuples(st.integers(0, 9), st.integers(0, 9)),
)
def test_nobody_has_more_than_the_best(logs: dict[str, tuple[int, int]], mine: tuple[int, int]) -> None:
    reports = {name: _report(*log) for name, log in {**logs, "A": mine}.items()}
    best = reports[best_report("A", reports)]
    assert all((report.accepted, report.last) <= (best.accepted, best.last) for report in reports.values())


def test_the_promise_of_a_replaced_disk_does_not_count() -> None:
    """S1. B's log tells that C's disk was replaced; the old one reports a shorter log and must not decide."""
    reports = {"B": _report(7, 12, "disk-B", NEW), "C": _report(7, 10, "disk-C", OLD)}
    assert ["B"] == counting_reports("B", reports)


def test_a_replaced_disk_does_not_count_for_itself_either() -> None:
    """S1. The old C claims, and B's report is what tells it."""
    reports = {"C": _report(7, 10, "disk-C", OLD), "B": _report(7, 12, "disk-B", NEW)}
    assert ["B"] == counting_reports("C", reports)


def test_with_the_replacement_in_the_best_log_the_new_disk_counts() -> None:
    """Though A's log ends before it."""
    reports = {"A": _report(7, 10, "disk-A", OLD), "C": _report(7, 12, "disk-C-new", NEW)}
    assert ["A", "C"] == sorted(counting_reports("A", reports))


def test_at_the_first_formation_everybody_counts() -> None:
    """No log names any disk yet; and without disks none ever does."""
    reports = {"A": _report(0, 0, "disk-A"), "B": _report(0, 0, "disk-B")}
    assert ["A", "B"] == counting_reports("A", reports)
