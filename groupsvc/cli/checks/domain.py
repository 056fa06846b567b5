"""How the domain is: does its daemon answer, do all nodes reach one another, do clocks and versions agree.

The daemon of this node asks all others (a *survey*), and each says what only it can know. That A reaches B is known to
A alone, and that B reaches A to B alone: both have to be asked, or a firewall that is open in one direction is not
found. Nodes are connected to the voters, and to those they share a group with; about others nobody can say anything,
and nobody needs to.

What a plain connection can tell is tried from here as well. So something is said also if no daemon runs: whether
the other voters' ports are open, the one for frames and the next one for multicasts.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping, Sequence

from ...addresses import IPC, TCP, problem_with_tcp_address, socket_path, tcp_host_and_port
from ...wire.client_messages import Status
from ...wire.survey_messages import BARRED, NodeFindings
from .findings import Finding, fail, ok, warn

DAEMON = "daemon"
NODES = "nodes"
PORTS = "ports"
REACH = "reachability"
CLOCKS = "clocks"
VERSIONS = "versions"

SKEW_S_MANY = 0.5
"""No promise depends on wall clocks. But people compare logs of several nodes by them."""
SKEW_S_MAX = 60.0
"""A node without a state directory counts its lives by its clock; one that goes back by much is not let in again."""

KNOCK_S = 1.0
SHOWN_MAX = 8
"""Of one kind of trouble; with many nodes it is the same for most."""

_ADVICE = {
    "refused": "nobody listens at its address: start its daemon, or correct its address in [voters]",
    "not listed": "list its key in [node_keys] on all nodes, or, if it was revoked, enrol it anew with a token",
    "not let in": "their keys do not fit: [node_keys] must be the same on both, and name the keys that they use",
    "connecting": "nobody answers at its address: a firewall, a machine that is off, or a wrong address."
    " Its PORT and the next one must be open",
    "broken": "the connection breaks again and again: see the logs of both",
}


def look_at_status(status: Status) -> list[Finding]:
    """Whether it serves this node, and which nodes are not there."""
    head = f"{status.node} answers: {status.role}, "
    if status.suspended or not status.name_server:
        why = status.trouble or "no name server is known"
        advice = _ADVICE["not listed"] if why.startswith(BARRED) else "start the nodes that are missing"
        found = [fail(DAEMON, f"{head}and does not serve its programs: {why}", advice)]
    else:
        found = [ok(DAEMON, f"{head}name server is {status.name_server}, epoch {status.epoch}")]
        if status.trouble:
            found.append(warn(DAEMON, status.trouble))
    away = [node for node in status.nodes if node.status != "up"]
    for node in away[:SHOWN_MAX]:
        kind = "voter" if node.voter else "node"
        advice = "start its daemon; its log says why it ended, or why it is not let in" + (
            ": one voter less can be lost now" if node.voter else ""
        )
        found.append(warn(NODES, f"{kind} {node.name} is {node.status}", advice))
    if len(away) > SHOWN_MAX:
        found.append(warn(NODES, f"and {len(away) - SHOWN_MAX} more are not up"))
    if status.nodes and not away and not status.suspended and status.name_server:  # else the list is an old one
        found.append(ok(NODES, f"all {len(status.nodes)} are up"))
    return found


# --- What the nodes say --------------------------------------------------------------------------------------


def who_should_answer(status: Status) -> list[str]:
    """Who is up; without a name server the list is an old one, and says nothing about now."""
    if status.suspended or not status.name_server:
        return []
    return [node.name for node in status.nodes if node.status == "up"]


def look_at_survey(nodes: Sequence[NodeFindings], up: Iterable[str]) -> list[Finding]:
    """Reachability, clocks and versions; ``up``: who should answer."""
    answered = [one for one in nodes if one.answered]
    expected = set(up)
    silent = [one.node for one in nodes if not one.answered and one.node in expected]
    found = [
        fail(REACH, f"{name} is up, and did not answer", f"look at `groupsvc doctor` on {name}, and at its log")
        for name in silent[:SHOWN_MAX]
    ]
    return [*found, *_reach(answered), *_clocks(answered), *_versions(answered)]


def _reach(answered: Sequence[NodeFindings]) -> list[Finding]:
    here = {one.node for one in answered}
    links = [(one.node, link) for one in answered for link in one.links if link.node in here]
    bad = [(node, link) for node, link in links if link.state != "connected"]
    found = [
        fail(REACH, f"{node} does not reach {link.node} ({link.state}){_other_way(node, link.node, answered)}",
             _ADVICE[link.state])
        for node, link in bad[:SHOWN_MAX]
    ]  # fmt: skip
    if len(bad) > SHOWN_MAX:
        found.append(fail(REACH, f"and {len(bad) - SHOWN_MAX} more ways are not open"))
    if not bad and len(here) > 1:
        found.append(ok(REACH, f"{_listed(sorted(here))} reach one another, both ways ({len(links)} connections)"))
    for one in answered:
        if one.suspended:
            text = f"{one.node} answers, and has no lease: its programs are suspended"
            found.append(fail(REACH, text, f"look at `groupsvc status` on {one.node}"))
    return found


def _other_way(node: str, other: str, answered: Sequence[NodeFindings]) -> str:
    back = next((link for one in answered if one.node == other for link in one.links if link.node == node), None)
    return f", though {other} reaches {node}" if back is not None and back.state == "connected" else ""


def _clocks(answered: Sequence[NodeFindings]) -> list[Finding]:
    if len(answered) < 2:
        return []
    found = []
    for one in answered:
        off = abs(one.skew_s)
        sure = off - one.round_trip_s / 2
        if sure < SKEW_S_MANY:
            continue
        text = f"the clock of {one.node} is {off:.1f} s {'ahead' if one.skew_s > 0 else 'behind'}"
        advice = f"let NTP set the clocks (chrony, systemd-timesyncd): see `timedatectl` on {one.node} and here"
        found.append(fail(CLOCKS, text, advice) if sure >= SKEW_S_MAX else warn(CLOCKS, text, advice))
    if not found:
        worst = max(abs(one.skew_s) + one.round_trip_s / 2 for one in answered)
        found.append(ok(CLOCKS, f"those of {_listed([one.node for one in answered])} differ by at most {worst:.3f} s"))
    return found


def _versions(answered: Sequence[NodeFindings]) -> list[Finding]:
    by_version: dict[str, list[str]] = {}
    for one in answered:
        by_version.setdefault(one.version, []).append(one.node)
    if len(by_version) == 1:
        (version,) = by_version
        return [ok(VERSIONS, f"all nodes that answered have groupsvcd {version}")]
    told = "; ".join(f"{version}: {_listed(names)}" for version, names in sorted(by_version.items()))
    return [warn(VERSIONS, told, "bring all to the same one when you can")] if by_version else []


# --- What can be tried from here -----------------------------------------------------------------------------


def look_at_ports(addresses: Mapping[str, str]) -> list[Finding]:
    """Whether the ports of other nodes can be opened from here: that for frames, and that for multicasts."""
    found, well = [], []
    for name, address in sorted(addresses.items()):
        problems = [text for endpoint in endpoints_of(address) if (text := knocked(endpoint))]
        if problems:
            advice = "start its daemon; else see that its address is right, and that PORT and PORT + 1 are open"
            found.append(warn(PORTS, f"{name}: {'; '.join(problems)}", advice))
        else:
            well.append(name)
    if well:
        found.append(ok(PORTS, f"both ports of {_listed(well)} can be opened from here"))
    return found


def endpoints_of(address: str) -> list[str]:
    """Where a node listens for frames, and where its multicasts come from."""
    if address.startswith(TCP) and problem_with_tcp_address(address) is None:
        base, _, port = address.rpartition(":")
        return [address, f"{base}:{int(port) + 1}"]
    return [address, f"{address}.pub"] if address.startswith(IPC) else []


def knocked(endpoint: str) -> str:
    """Why nobody opens there; "" if somebody does."""
    try:
        if endpoint.startswith(IPC):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knocker:
                knocker.settimeout(KNOCK_S)
                knocker.connect(socket_path(endpoint))
        else:
            socket.create_connection(tcp_host_and_port(endpoint), KNOCK_S).close()
    except TimeoutError:
        return f"{endpoint} does not answer"
    except OSError as error:
        return f"{endpoint}: {error.strerror or error}"
    return ""


def _listed(names: Sequence[str]) -> str:
    more = len(names) - SHOWN_MAX
    return ", ".join(names[:SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")
