"""The page of metrics is what Prometheus reads, whatever groups are called; and it stays small."""

from __future__ import annotations

import random
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from groupsvcd.core.engine import Engine
from groupsvcd.core.parameters import Parameters
from groupsvcd.core.records import Stored
from groupsvcd.core.tally import Histogram
from groupsvcd.io import process
from groupsvcd.io.clients import ClientStatistics
from groupsvcd.io.journal import JournalStatistics
from groupsvcd.io.pages import PageStatistics
from groupsvcd.io.peers import LinkStatistics, PeerStatistics
from groupsvcd.io.reactor import ReactorStatistics
from groupsvcd.observe import metrics
from groupsvcd.observe.metrics import METRICS, Family, Metric, exposition, families
from groupsvcd.observe.statistics import (
    Build,
    ClockStatistics,
    DaemonStatistics,
    EventJournalStatistics,
    as_objects,
)


def parsed(page: bytes) -> dict[str, Any]:
    """The families of a page by name, as the library of Prometheus has them: counters without ``_total``."""
    return {family.name: family for family in text_string_to_metric_families(page.decode())}


def a_daemon(links: int = 2) -> DaemonStatistics:
    """What a daemon says that has every part."""
    engine = Engine(Parameters(node="n1", domain="d"), Stored(state_id="s"), 7, random.Random(1))
    engine.start(0.0)
    engine.turn.tally.took("join", 0.004)
    measured = Histogram((0.1, 1.0)).measured()
    clients = ClientStatistics(connections=1, welcomed=2, refused=3, given_up=4, frames_received=5, frames_sent=6)
    peers = PeerStatistics(
        links=tuple(LinkStatistics(f"p{n}", "tcp://127.0.0.1:1", True, n, 0, "connected") for n in range(links)),
        frames_sent=1, frames_dropped=2, bytes_sent=3, multicasts_sent=4, multicasts_dropped=5, multicast_bytes=6,
        frames_received=7,
    )  # fmt: skip
    return DaemonStatistics(
        build=Build(version="1", python="3", libzmq="4"),
        engine=engine.statistics(groups_max=10),
        reactor=ReactorStatistics(rounds=measured, waited_s=1.5),
        clients=clients,
        peers=peers,
        store=JournalStatistics(syncs=measured, writes_waiting=0, oldest_age=0.0, is_full=False),
        journal=EventJournalStatistics(lines_written=1, lines_lost=2, bytes_waiting=3),
        pages=PageStatistics(answered=1, refused=2, cut_off=3),
        complaints={"bad frame": 3},
        clock=ClockStatistics(wall=1.0, skew=-0.5),
        process=process.statistics(),
    )


def test_every_metric_that_is_declared_is_told_once_and_in_order() -> None:
    """OPS-05."""
    told = [family.metric.name for family in families(a_daemon(), series_max=10)]
    assert list(METRICS) == told or sorted(METRICS) == sorted(told)
    assert len(set(told)) == len(told)


def test_prometheus_reads_the_page_with_names_types_and_help() -> None:
    """OPS-05."""
    found = parsed(exposition(families(a_daemon(), series_max=10)))
    for metric in METRICS.values():
        family = found[metric.name.removesuffix("_total") if metric.kind == "counter" else metric.name]
        assert (metric.kind, metric.help) == (family.type, family.documentation)
        for sample in family.samples:
            assert set(metric.labels) == set(sample.labels) - {"le"}


def test_names_keep_to_the_custom() -> None:
    for metric in METRICS.values():
        assert metric.name.startswith(("groupsvc_", "process_"))
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert not metric.name.endswith(("_ms", "_milliseconds", "_kb", "_count", "_sum", "_bucket"))
        assert metric.help


@pytest.mark.parametrize("name", ["plain", 'a"b', "back\\slash", "line\nbreak", "ünï", "{}, le=", ""])
def test_a_label_says_what_it_was_whatever_it_is(name: str) -> None:
    """A group's name comes from outside: it must not be able to forge a sample."""
    metric = Metric("m", "gauge", 'with "quotes", \\ and\na break', ("group",))
    family = parsed(exposition([metric.by({name: 3})]))["m"]
    assert [({"group": name}, 3.0)] == [(sample.labels, sample.value) for sample in family.samples]
    assert 'with "quotes", \\ and\na break' == family.documentation


def test_a_histogram_counts_upwards_and_a_value_on_a_bound_is_not_above_it() -> None:
    histogram = Histogram((0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 7.0):
        histogram.observe(value)
    metric = Metric("m", "histogram", "help", ("kind",))
    samples = parsed(exposition([metric.by({"join": histogram.measured()})]))["m"].samples
    assert [2.0, 3.0, 4.0] == [sample.value for sample in samples if sample.name == "m_bucket"]
    assert ["0.1", "1.0", "+Inf"] == [sample.labels["le"] for sample in samples if sample.name == "m_bucket"]
    assert [7.65, 4.0] == [sample.value for sample in samples if sample.name in ("m_sum", "m_count")]


def test_numbers_are_told_exactly() -> None:
    metric = Metric("m", "gauge", "help")
    for value in (0, 2**60, 1.5, 1e-9, 1e300, True, False):
        assert f"\nm {value + 0!r}\n".encode() in exposition([metric.is_(value)])


def test_however_many_peers_and_groups_there_are_the_page_stays_small() -> None:
    """10 000 groups, or 1 000 nodes, must not become as many series."""
    found = list(families(a_daemon(links=1_000), series_max=20))
    by_name = {family.metric.name: family for family in found}
    assert 20 == len(by_name["groupsvc_peer_link_frames_sent_total"].samples)
    assert [((), 1_000)] == by_name["groupsvc_peer_links"].samples
    assert sum(len(family.samples) for family in found) < 250


def test_what_has_a_label_is_there_before_the_first_event() -> None:
    """A counter that appears with its first event has no rate."""
    found = {family.metric.name: family for family in families(a_daemon(), series_max=1)}
    assert {("failed",): 0, ("late",): 0, ("raised",): 0, ("unresponsive",): 0} == dict(
        found["groupsvc_default_votes_total"].samples
    )
    assert [0] * 5 == [value for _, value in found["groupsvc_votes_total"].samples]
    assert {"submission", "repair", "payload", "request"} == {
        values[0] for values, _ in found["groupsvc_retransmits_total"].samples
    }


def test_parts_that_a_daemon_does_not_have_are_left_out() -> None:
    import attrs

    alone = attrs.evolve(a_daemon(), peers=None, store=None, journal=None, pages=None)
    told = {family.metric.name for family in families(alone, series_max=1)}
    assert not {"groupsvc_peer_links", "groupsvc_fsync_seconds", "groupsvc_journal_lines_total"} & told
    assert "groupsvc_has_leader" in told


def test_statistics_are_plain_objects_for_programs() -> None:
    import json

    found = json.loads(json.dumps(as_objects(a_daemon())))
    assert ["build", "domain", "node_groups", "process_groups", "sessions", "counted"] == list(found)[:6]
    assert {"count": 1, "sum": 0.004, "up_to": {"0.005": 1}} == found["counted"]["protocols"]["join"]
    assert "p1" == found["peers"]["links"][1]["node"]


def test_a_family_belongs_to_a_declared_metric() -> None:
    assert all(isinstance(one, Family) and METRICS[one.metric.name] is one.metric for one in families(a_daemon(), 5))
    assert "text/plain; version=0.0.4; charset=utf-8" == metrics.CONTENT_TYPE
