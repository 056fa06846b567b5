"""The metrics of a daemon, in the text format of Prometheus (version 0.0.4).

Every metric is declared here once, with its help and labels, and filled in ``families``; ``docs/reference/metrics.md``
lists them all, and tests compare the two, and both with the dashboard.

Names follow the custom: seconds and bytes, never parts of them; ``_total`` for what only grows; a gauge is a noun. What
has a label has few values of it, all known from the code. Only groups and peers are named by others: of these at most
``limits.metrics_series_max`` have series of their own, and the sums beside them always count all.

The format is a handful of short functions, so they are written here; what parses it in the tests is the library of
Prometheus itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

import attrs

if TYPE_CHECKING:
    from ..core.tally import Measured
    from .statistics import DaemonStatistics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

METRICS: dict[str, Metric] = {}
"""All of them, by name, in the order in which they are told."""

Kind = Literal["gauge", "counter", "histogram"]
Value = float | int | bool
Sample = tuple[tuple[str, ...], "Value | Measured"]


@attrs.frozen
class Metric:
    """One metric: what it is called and what it means."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()

    def is_(self, value: Value | Measured) -> Family:
        """It has this value."""
        return Family(self, [((), value)])

    def by(self, values: Mapping[Any, Value] | Mapping[Any, Measured]) -> Family:
        """It has these, by the value of its label, or by the values of its labels in a tuple."""
        rows = ((key if isinstance(key, tuple) else (key,), value) for key, value in values.items())
        return Family(self, sorted(rows, key=lambda row: row[0]))


@attrs.frozen
class Family:
    """A metric and its samples."""

    metric: Metric
    samples: list[Sample]


def _metric(kind: Kind, name: str, help: str, *labels: str) -> Metric:
    METRICS[name] = Metric(name, kind, help, labels)
    return METRICS[name]


def _gauge(name: str, help: str, *labels: str) -> Metric:
    return _metric("gauge", name, help, *labels)


def _counter(name: str, help: str, *labels: str) -> Metric:
    return _metric("counter", name, help, *labels)


def _histogram(name: str, help: str, *labels: str) -> Metric:
    return _metric("histogram", name, help, *labels)


# --- The domain ---------------------------------------------------------------------------------------

BUILD = _gauge("groupsvc_build_info", "Always 1; what runs here is in the labels", "version", "python", "libzmq")
HAS_LEADER = _gauge("groupsvc_has_leader", "1 while this node hears a name server")
IS_NAME_SERVER = _gauge("groupsvc_is_name_server", "1 while this node is name server")
SUSPENDED = _gauge("groupsvc_suspended", "1 while this node has no lease: nothing happens here")
LEASE_LEFT = _gauge("groupsvc_lease_left_seconds", "What is left of the lease of this node")
EPOCH = _gauge("groupsvc_epoch", "The epoch of the name server, as this node knows it")
NODES = _gauge("groupsvc_nodes", "Nodes in the list of this node, by status", "status")
LEADER_CHANGES = _counter("groupsvc_leader_changes_total", "Name servers that this node has seen come into office")
DIRECTORY = _gauge("groupsvc_directory_entries_applied", "Entries of the directory that this voter has applied")
CLOCK_SKEW = _gauge(
    "groupsvc_clock_skew_seconds",
    "How far the wall clock has moved against the clock of the leases since the daemon started: it was set",
)
WALL_CLOCK = _gauge("groupsvc_wall_clock_seconds", "The wall clock of this node, in seconds since 1970")

# --- Groups -------------------------------------------------------------------------------------------

GROUPS = _gauge("groupsvc_groups", "Groups that this node carries, by what it is in their streams", "role")
PROCESS_GROUPS = _gauge("groupsvc_process_groups", "Groups of processes that this node carries")
GROUP_MEMBERS = _gauge(
    "groupsvc_group_members", "Providers of a group, for up to limits.metrics_series_max groups of this node", "group"
)
MEMBERS = _gauge("groupsvc_members", "Providers of all groups that this node carries")
MEMBERS_UNRESPONSIVE = _gauge("groupsvc_members_unresponsive", "Those of them that do not answer their daemon")
MEMBERS_FAILING = _gauge("groupsvc_members_failing", "Those of them that have failed and are not removed yet")
VIEW_CHANGES = _counter("groupsvc_view_changes_total", "Joins and leaves in groups that this node leads")
PROTOCOL_SECONDS = _histogram(
    "groupsvc_protocol_seconds",
    "From a proposal of a program of this node until it was decided; of failures, in groups that this node leads,"
    " from their announcement to the removal",
    "kind",
)
BALLOTS = _counter("groupsvc_ballots_total", "Ballots that ended in groups that this node leads", "kind", "outcome")
BALLOTS_RUNNING = _gauge("groupsvc_ballots_running", "Groups of this node in which a ballot is running")
VOTES = _counter(
    "groupsvc_votes_total", "Votes counted in groups that this node leads; source: provider, default", "vote", "source"
)
DEFAULT_VOTES = _counter("groupsvc_default_votes_total", "Default votes among them, by why they were cast", "why")
PROPOSALS_WAITING = _gauge("groupsvc_proposals_waiting", "Proposals that wait for their turn, in groups of this node")
PROPOSALS_REFUSED = _counter(
    "groupsvc_proposals_refused_total", "Proposals of programs of this node that never had their turn", "why"
)
BARRIER_ROUNDS = _counter("groupsvc_barrier_rounds_total", "Rounds of barriers in groups that this node leads", "end")

# --- Streams ------------------------------------------------------------------------------------------

ORDERED = _counter("groupsvc_entries_ordered_total", "Entries that this node gave numbers to, the directory's too")
ORDERED_BYTES = _counter("groupsvc_entries_ordered_bytes_total", "Their bytes; of large payloads only the reference")
DELIVERED = _counter("groupsvc_entries_delivered_total", "Entries that were delivered here, the directory's too")
KEPT_BYTES = _gauge("groupsvc_entries_kept_bytes", "Entries of groups that are kept in memory here")
OUTSTANDING = _gauge("groupsvc_entries_outstanding", "Entries of this node that are on their way to be ordered")
RETRANSMITS = _counter("groupsvc_retransmits_total", "What was sent again, or sent to who had missed it", "what")
MARKS = _counter("groupsvc_marks_total", "Rare turns of the protocols that this node came by", "mark")

# --- Programs -----------------------------------------------------------------------------------------

SESSIONS = _gauge("groupsvc_sessions", "Sessions of programs at this node", "state")
SESSIONS_UNRESPONSIVE = _gauge("groupsvc_sessions_unresponsive", "Those whose programs do not answer")
SESSIONS_OPENED = _counter("groupsvc_sessions_opened_total", "Sessions that were opened")
MEMBERSHIPS = _gauge("groupsvc_session_memberships", "Memberships and subscriptions of these sessions")
CLIENTS = _gauge("groupsvc_clients", "Connections of programs")
CLIENTS_WELCOMED = _counter("groupsvc_clients_welcomed_total", "Connections that were taken")
CLIENTS_REFUSED = _counter("groupsvc_clients_refused_total", "Connections or frames of programs that were refused")
CLIENTS_GIVEN_UP = _counter("groupsvc_clients_given_up_total", "Connections given up because they did not read")
CLIENT_FRAMES_IN = _counter("groupsvc_client_frames_received_total", "Frames from programs")
CLIENT_FRAMES_OUT = _counter("groupsvc_client_frames_sent_total", "Frames to programs")

# --- Other nodes --------------------------------------------------------------------------------------

LINKS = _gauge("groupsvc_peer_links", "Nodes that this one is connected to, or tries to be")
PEER_FRAMES_OUT = _counter("groupsvc_peer_frames_sent_total", "Frames to single nodes")
PEER_FRAMES_DROPPED = _counter("groupsvc_peer_frames_dropped_total", "Those that found no room, or nobody")
PEER_BYTES_OUT = _counter("groupsvc_peer_bytes_sent_total", "Bytes to single nodes")
PEER_FRAMES_IN = _counter("groupsvc_peer_frames_received_total", "Frames from other nodes, multicasts too")
MULTICASTS_OUT = _counter("groupsvc_multicast_frames_sent_total", "Multicast frames")
MULTICASTS_DROPPED = _counter("groupsvc_multicast_frames_dropped_total", "Large ones for which there was no room")
MULTICAST_BYTES = _counter("groupsvc_multicast_bytes_sent_total", "Bytes of multicast frames, each counted once")
LINK_SENT = _counter(
    "groupsvc_peer_link_frames_sent_total", "Frames to one node, for up to limits.metrics_series_max", "peer"
)
LINK_DROPPED = _counter("groupsvc_peer_link_frames_dropped_total", "Those that found no room, or nobody", "peer")

# --- Disk, journal, loop, process ---------------------------------------------------------------------

FSYNC_SECONDS = _histogram("groupsvc_fsync_seconds", "One transaction in the state directory, with its sync")
WRITES_WAITING = _gauge("groupsvc_writes_waiting", "Writes to the state directory that are not safe yet")
OLDEST_WRITE = _gauge("groupsvc_oldest_write_age_seconds", "How long the oldest of them has been waiting")
DISK_FULL = _gauge("groupsvc_disk_full", "1 while the disk of the state directory is full")
JOURNAL_LINES = _counter("groupsvc_journal_lines_total", "Lines of the event journal")
JOURNAL_LOST = _counter("groupsvc_journal_lines_lost_total", "Lines of the event journal that were lost")
JOURNAL_WAITING = _gauge("groupsvc_journal_waiting_bytes", "Of the event journal, not written yet")
ROUND_SECONDS = _histogram("groupsvc_reactor_round_seconds", "Rounds of the reactor, without the wait before each")
WAIT_SECONDS = _counter("groupsvc_reactor_wait_seconds_total", "Time that the reactor had nothing to do")
COMPLAINTS = _counter("groupsvc_complaints_total", "What was wrong with what came from others, logged or not", "kind")
REQUESTS = _counter("groupsvc_http_requests_total", "Requests at the port of the metrics", "outcome")
CPU_SECONDS = _counter("process_cpu_seconds_total", "Processor time of the daemon")
RESIDENT = _gauge("process_resident_memory_bytes", "Memory of the daemon")
VIRTUAL = _gauge("process_virtual_memory_bytes", "Its address space")
OPEN_FDS = _gauge("process_open_fds", "Its open descriptors")
MAX_FDS = _gauge("process_max_fds", "How many it may have")
START_TIME = _gauge("process_start_time_seconds", "When it was started, in seconds since 1970")


def families(now: DaemonStatistics, series_max: int) -> Iterator[Family]:
    """Every metric that this daemon has, with its samples."""
    yield BUILD.by({(now.build.version, now.build.python, now.build.libzmq): 1})
    yield from _of_domain(now)
    yield from _of_groups(now)
    yield from _of_streams(now)
    yield from _of_programs(now)
    if now.peers is not None:
        peers, shown = now.peers, now.peers.links[:series_max]
        yield LINKS.is_(len(peers.links))
        yield PEER_FRAMES_OUT.is_(peers.frames_sent)
        yield PEER_FRAMES_DROPPED.is_(peers.frames_dropped)
        yield PEER_BYTES_OUT.is_(peers.bytes_sent)
        yield PEER_FRAMES_IN.is_(peers.frames_received)
        yield MULTICASTS_OUT.is_(peers.multicasts_sent)
        yield MULTICASTS_DROPPED.is_(peers.multicasts_dropped)
        yield MULTICAST_BYTES.is_(peers.multicast_bytes)
        yield LINK_SENT.by({link.node: link.frames_sent for link in shown})
        yield LINK_DROPPED.by({link.node: link.frames_dropped for link in shown})
    yield from _of_the_rest(now)


def _of_domain(now: DaemonStatistics) -> Iterator[Family]:
    domain = now.engine.domain
    yield HAS_LEADER.is_(domain.has_leader)
    yield IS_NAME_SERVER.is_(domain.is_name_server)
    yield SUSPENDED.is_(domain.is_suspended)
    yield LEASE_LEFT.is_(domain.lease_left)
    yield EPOCH.is_(domain.epoch)
    yield NODES.by(domain.nodes)
    yield LEADER_CHANGES.is_(now.engine.counted.leader_changes)
    yield DIRECTORY.is_(domain.directory_applied)
    yield CLOCK_SKEW.is_(now.clock.skew)
    yield WALL_CLOCK.is_(now.clock.wall)


def _of_groups(now: DaemonStatistics) -> Iterator[Family]:
    groups, counted = now.engine.process_groups, now.engine.counted
    yield GROUPS.by(now.engine.node_groups.roles)
    yield PROCESS_GROUPS.is_(groups.groups)
    yield GROUP_MEMBERS.by(groups.members_by_group)
    yield MEMBERS.is_(groups.members)
    yield MEMBERS_UNRESPONSIVE.is_(groups.unresponsive)
    yield MEMBERS_FAILING.is_(groups.failing)
    yield VIEW_CHANGES.is_(counted.view_changes)
    yield PROTOCOL_SECONDS.by(counted.protocols)
    yield BALLOTS.by(counted.ballots)
    yield BALLOTS_RUNNING.is_(groups.ballots_running)
    votes = dict.fromkeys((vote, source) for vote in VOTE_WORDS for source in ("provider", "default")) | counted.votes
    yield VOTES.by({key: count or 0 for key, count in votes.items() if key != ("continue", "default")})
    yield DEFAULT_VOTES.by(dict.fromkeys(WHYS, 0) | counted.default_votes)
    yield PROPOSALS_WAITING.is_(groups.proposals_waiting)
    yield PROPOSALS_REFUSED.by(counted.refused_proposals)
    yield BARRIER_ROUNDS.by(dict.fromkeys(ROUND_ENDS, 0) | counted.barrier_rounds)


VOTE_WORDS = ("approve", "continue", "reject")
WHYS = ("failed", "late", "raised", "unresponsive")
ROUND_ENDS = ("released", "broken", "reset")
SENT_AGAIN = ("submission", "repair", "payload", "request")
"""Values of labels that are there from the beginning: a counter that appears with its first event has no rate."""


def _of_streams(now: DaemonStatistics) -> Iterator[Family]:
    counted, streams = now.engine.counted, now.engine.node_groups
    yield ORDERED.is_(counted.ordered_entries)
    yield ORDERED_BYTES.is_(counted.ordered_bytes)
    yield DELIVERED.is_(counted.delivered_entries)
    yield KEPT_BYTES.is_(streams.kept_bytes)
    yield OUTSTANDING.is_(streams.outstanding)
    yield RETRANSMITS.by(dict.fromkeys(SENT_AGAIN, 0) | counted.retransmits)
    yield MARKS.by(counted.marks)


def _of_programs(now: DaemonStatistics) -> Iterator[Family]:
    sessions, clients = now.engine.sessions, now.clients
    yield SESSIONS.by({"connected": sessions.connected, "in_grace": sessions.in_grace})
    yield SESSIONS_UNRESPONSIVE.is_(sessions.unresponsive)
    yield SESSIONS_OPENED.is_(sessions.opened)
    yield MEMBERSHIPS.is_(sessions.memberships)
    yield CLIENTS.is_(clients.connections)
    yield CLIENTS_WELCOMED.is_(clients.welcomed)
    yield CLIENTS_REFUSED.is_(clients.refused)
    yield CLIENTS_GIVEN_UP.is_(clients.given_up)
    yield CLIENT_FRAMES_IN.is_(clients.frames_received)
    yield CLIENT_FRAMES_OUT.is_(clients.frames_sent)


def _of_the_rest(now: DaemonStatistics) -> Iterator[Family]:
    if now.store is not None:
        yield FSYNC_SECONDS.is_(now.store.syncs)
        yield WRITES_WAITING.is_(now.store.writes_waiting)
        yield OLDEST_WRITE.is_(now.store.oldest_age)
        yield DISK_FULL.is_(now.store.is_full)
    if now.journal is not None:
        yield JOURNAL_LINES.is_(now.journal.lines_written)
        yield JOURNAL_LOST.is_(now.journal.lines_lost)
        yield JOURNAL_WAITING.is_(now.journal.bytes_waiting)
    yield ROUND_SECONDS.is_(now.reactor.rounds)
    yield WAIT_SECONDS.is_(now.reactor.waited_s)
    yield COMPLAINTS.by(now.complaints)
    if now.pages is not None:
        yield REQUESTS.by({"answered": now.pages.answered, "refused": now.pages.refused, "cut_off": now.pages.cut_off})
    process = now.process
    yield CPU_SECONDS.is_(process.cpu_seconds)
    yield RESIDENT.is_(process.resident_bytes)
    yield VIRTUAL.is_(process.virtual_bytes)
    yield OPEN_FDS.is_(process.open_fds)
    yield MAX_FDS.is_(process.max_fds)
    yield START_TIME.is_(process.started)


# --- The text format ----------------------------------------------------------------------------------


def exposition(families: Iterable[Family]) -> bytes:
    """The page that Prometheus reads."""
    lines: list[str] = []
    for family in families:
        metric = family.metric
        lines.append(f"# HELP {metric.name} {_escaped(metric.help)}")
        lines.append(f"# TYPE {metric.name} {metric.kind}")
        for values, value in family.samples:
            labels = [f'{name}="{_quoted(text)}"' for name, text in zip(metric.labels, values, strict=True)]
            if isinstance(value, float | int):
                lines.append(f"{metric.name}{_braced(labels)} {_number(value)}")
            else:
                lines += _buckets(metric.name, labels, value)
    return "\n".join((*lines, "")).encode()


def _buckets(name: str, labels: list[str], measured: Measured) -> Iterator[str]:
    upto = 0
    for bound, count in zip((*map(_number, measured.bounds), "+Inf"), measured.counts, strict=True):
        upto += count
        bucket = [*labels, f'le="{bound}"']
        yield f"{name}_bucket{_braced(bucket)} {upto}"
    yield f"{name}_sum{_braced(labels)} {_number(measured.sum)}"
    yield f"{name}_count{_braced(labels)} {upto}"


def _braced(labels: list[str]) -> str:
    return "{" + ",".join(labels) + "}" if labels else ""


def _number(value: Value) -> str:
    return str(int(value)) if isinstance(value, bool | int) else repr(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')
