"""What an operator sees of a domain under load: metrics, readiness, statistics; dashboard and alerts fit them."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import zmq
from prometheus_client.parser import text_string_to_metric_families

import groupsvc
from groupsvc.cli import main
from groupsvc.drivers.connection import DaemonConnection
from groupsvc.testing import LocalDomain
from groupsvc.testing.loopback_ports import PortBlock
from groupsvcd.observe.metrics import METRICS
from tests.tidy.source_tree import ROOT

pytestmark = pytest.mark.interop

DASHBOARD = ROOT / "daemon" / "grafana" / "groupsvc.json"
ALERTS = ROOT / "daemon" / "prometheus" / "groupsvc.rules.yml"
NAMES = ("n1", "n2", "n3")
Samples = Mapping[str, list[Any]]


class WatchedDomain(LocalDomain):
    """One whose daemons show their metrics, each at a port of its own."""

    def __init__(self, **options: Any) -> None:
        super().__init__(3, **options)
        self.blocks: dict[str, PortBlock] = {}

    def _make(self, name: str, settings: Any) -> Any:
        self.blocks[name] = PortBlock()
        own = {"metrics_address": f"http://127.0.0.1:{self.blocks[name].port}"}
        return super()._make(name, {**settings, **own, "journal_directory": str(self.directory / "journal")})

    def get(self, name: str, path: str) -> tuple[int, str]:
        """Status and body of a page."""
        try:
            url = f"http://127.0.0.1:{self.blocks[name].port}{path}"
            with urllib.request.urlopen(url, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode()

    def samples(self, name: str) -> Samples:
        """The samples of a node by their names."""
        found: dict[str, list[Any]] = {}
        for family in text_string_to_metric_families(self.get(name, "/metrics")[1]):
            for sample in family.samples:
                found.setdefault(sample.name, []).append(sample)
        return found

    def total(self, name: str, **labels: str) -> float:
        """The sum of a sample over all nodes, as far as it has these labels."""
        return sum(
            sample.value
            for node in NAMES
            for sample in self.samples(node).get(name, [])
            if labels.items() <= sample.labels.items()
        )


@pytest.fixture(scope="module")
def domain() -> Iterator[WatchedDomain]:
    with WatchedDomain() as made:
        _keep_busy(made)
        yield made
        for block in made.blocks.values():
            block.close()


def _keep_busy(domain: WatchedDomain) -> None:
    """A little of everything: messages, votes of all kinds, a barrier, a member that fails, a stranger."""
    attributes = groupsvc.GroupAttributes(
        state_phases=groupsvc.Phases.N, failure_phases=groupsvc.Phases.ONE, time_limit=1.0
    )
    answers = iter([groupsvc.Vote.APPROVE, groupsvc.Vote.CONTINUE, groupsvc.Vote.APPROVE, groupsvc.Vote.REJECT])
    with domain.connect("n1") as one, domain.connect("n2") as two:
        group = one.join("orders", attributes=attributes)
        other = two.join("orders", on_proposal=lambda proposal: next(answers, groupsvc.Vote.APPROVE))
        assert group.propose_state(b"first").approved
        assert group.propose_state(b"second").approved
        assert not group.propose_state(b"third").approved
        for number in range(300):
            group.multicast(b"%d" % number)
        group.flush()
        group.multicast(bytes(100_000))
        group.flush()
        three = domain.connect("n3")
        third = three.join("orders", on_proposal=groupsvc.MANUAL)
        assert group.propose_state(b"fourth").approved  # the time limit decided for the third
        third.goodbye()
        three.close()
        barrier, same = group.barrier("b", parties=1), other.barrier("b", parties=1)
        barrier.wait(timeout=10)
        same.wait(timeout=10)
        with zmq.Context() as context, context.socket(zmq.DEALER) as stranger:
            stranger.connect(domain.peer_address("n1"))
            stranger.send(b"no frame")
            domain.wait_until(lambda: domain.total("groupsvc_complaints_total") >= 1, "the stranger was noticed")
            stranger.close(linger=0)
        domain.wait_until(lambda: domain.total("groupsvc_group_members", group="orders") >= 4, "both see both")
        domain.wait_until(lambda: domain.total("groupsvc_groups", role="leader") == 1, "the group has its leader")
        _look(domain)


seen: dict[str, Samples] = {}
"""By node, while the group was there."""


def _look(domain: WatchedDomain) -> None:
    seen.update({name: domain.samples(name) for name in NAMES})


def _sum(name: str, **labels: str) -> float:
    return sum(
        sample.value
        for samples in seen.values()
        for sample in samples.get(name, [])
        if labels.items() <= sample.labels.items()
    )


def _names_in(expression: str) -> set[str]:
    """The metrics that an expression speaks of."""
    return set(re.findall(r"\b(?:groupsvc|process)_[a-z_]+", re.sub(r"\{[^}]*\}", "", expression)))


def test_every_declared_metric_is_exported_by_a_real_daemon(domain: WatchedDomain) -> None:
    """OPS-05."""
    page = domain.get("n1", "/metrics")[1]
    assert set(METRICS) == set(re.findall(r"^# TYPE (\S+)", page, re.MULTILINE))


def test_the_numbers_are_those_of_what_was_done(domain: WatchedDomain) -> None:
    """OPS-05."""
    assert 3 == _sum("groupsvc_has_leader")
    assert 1 == _sum("groupsvc_is_name_server")
    assert 3 * 3 == _sum("groupsvc_nodes", status="up")
    assert 2 == max(sample.value for sample in seen["n1"]["groupsvc_group_members"])
    assert 1 == _sum("groupsvc_groups", role="leader")
    assert _sum("groupsvc_entries_ordered_total") > 300
    assert _sum("groupsvc_entries_delivered_total") > 600
    assert 4 == _sum("groupsvc_view_changes_total")
    assert 1 == _sum("groupsvc_protocol_seconds_count", kind="failure")
    assert (3, 1) == tuple(
        _sum("groupsvc_ballots_total", kind="state", outcome=outcome) for outcome in ("approved", "rejected")
    )
    assert 4 == _sum("groupsvc_protocol_seconds_count", kind="state")
    assert 3 == _sum("groupsvc_protocol_seconds_count", kind="join")
    assert 1 == _sum("groupsvc_votes_total", vote="continue", source="provider")
    assert 1 == _sum("groupsvc_votes_total", vote="reject", source="provider")
    assert 1 == _sum("groupsvc_votes_total", source="default") == _sum("groupsvc_default_votes_total", why="late")
    assert 2 == _sum("groupsvc_barrier_rounds_total", end="released")
    assert 2 <= _sum("groupsvc_sessions", state="connected") <= 3
    assert _sum("groupsvc_fsync_seconds_count") > 3
    assert _sum("groupsvc_reactor_round_seconds_count") > 100
    assert _sum("groupsvc_journal_lines_total") > 10
    assert 0 == _sum("groupsvc_journal_lines_lost_total")
    assert abs(_sum("groupsvc_clock_skew_seconds")) < 60


def test_every_metric_of_the_dashboard_has_values_under_load(domain: WatchedDomain) -> None:
    panels = [panel for panel in json.loads(DASHBOARD.read_text())["panels"] if panel["type"] != "row"]
    exported = {name for samples in seen.values() for name in samples}
    named: set[str] = set()
    for panel in panels:
        for target in panel["targets"]:
            found = _names_in(target["expr"])
            assert found, panel["title"]
            assert found <= exported, panel["title"]
            named |= found
    assert len(named) > 40
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)


def test_every_alert_speaks_of_metrics_that_there_are(domain: WatchedDomain) -> None:
    exported = {name for samples in seen.values() for name in samples}
    rules = re.findall(r"- alert: (\w+)\n +expr: (.+)\n", ALERTS.read_text())
    assert len(rules) == ALERTS.read_text().count("alert:") > 8
    for alert, expression in rules:
        found = _names_in(expression)
        assert found or expression.startswith("up"), alert
        assert found <= exported, alert


def test_the_alerts_are_rules_as_prometheus_reads_them() -> None:
    yaml = pytest.importorskip("yaml")
    rules = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
    for rule in rules:
        assert {"summary", "description"} == set(rule["annotations"]), rule["alert"]
        assert rule["labels"]["severity"] in ("page", "ticket")


def test_labels_of_the_dashboard_and_of_the_metrics_are_the_same() -> None:
    text = DASHBOARD.read_text() + ALERTS.read_text()
    used = {label for found in re.findall(r"by \(([a-z, ]+)\)", text) for label in found.replace(" ", "").split(",")}
    used |= set(re.findall(r"\{\{([a-z]+)\}\}", text))
    assert used <= {label for metric in METRICS.values() for label in metric.labels} | {"le", "instance", "job"}


def test_statistics_are_shown_to_people_and_programs(domain: WatchedDomain, capsys: pytest.CaptureFixture[str]) -> None:
    """OPS-05."""
    with DaemonConnection(domain.address("n2")) as connection:
        parts = connection.statistics().parts
    assert parts["domain"]["has_leader"] is True
    assert parts["counted"]["delivered_entries"] > 300
    assert 0 == main(["statistics", "--address", domain.address("n2")])
    shown = capsys.readouterr().out
    assert re.search(r"^domain\n  has_leader +yes$", shown, re.MULTILINE)
    assert re.search(r"^  nodes +up 3, down 0, gone 0$", shown, re.MULTILINE)
    assert 0 == main(["statistics", "--json", "--address", domain.address("n2")])
    assert parts.keys() == json.loads(capsys.readouterr().out).keys()


@pytest.mark.faults
def test_a_node_that_is_cut_off_is_alive_and_not_ready_and_says_why(domain: WatchedDomain) -> None:
    """OPS-05."""
    assert (200, "ready\n") == domain.get("n1", "/readyz")
    for name in ("n2", "n3"):
        domain.pause(name)
    domain.wait_until(lambda: domain.get("n1", "/readyz")[0] == 503, "n1 noticed that it is alone")
    assert (200, "ok\n") == domain.get("n1", "/healthz")
    domain.wait_until(lambda: "n2" in domain.get("n1", "/readyz")[1], "it says who is missing")
    assert domain.get("n1", "/readyz")[1].startswith("not ready: ")
    assert [1.0] == [sample.value for sample in domain.samples("n1")["groupsvc_suspended"]]
    for name in ("n2", "n3"):
        domain.resume(name)
    domain.wait_until(lambda: domain.get("n1", "/readyz")[0] == 200, "n1 is back")
