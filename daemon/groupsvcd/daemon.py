"""A daemon put together: configuration, state directory, engine, sockets, reactor, and programs inside it.

Parts are put together here and nowhere else. What can be refused is refused before a socket is bound.

A *program inside* takes part in node groups: it lives in the process of the daemon, asks ``engine.groups`` and is
called back within the steps of the engine. ``run`` hands it the daemon when everything but the engine's first step is
done. It watches descriptors of its own with ``watch`` and acts on the engine by ``reactor.call``.
"""

from __future__ import annotations

import gc
import logging
import os
import random
import resource
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

import zmq

from groupsvc import __version__
from groupsvc.errors import PeerProtocolError
from groupsvc.wire.limits import DRAIN_S

from .changes import Changed, Changes
from .config import Config
from .config.acquired import Acquired, value_of
from .config.options import ESSENTIAL
from .core.access import Access
from .core.audit import Audit
from .core.domain.enrolment import NO_DOOR, NO_KEYS, Door
from .core.domain.surveys import Observed
from .core.effects import Adopt
from .core.engine import Engine
from .core.records import NodeRecord, Stored
from .core.statistics import Sees
from .io import clocks, process
from .io.addresses import host_and_port
from .io.clients import Clients
from .io.complaints import Complaints
from .io.journal import Journal
from .io.keys import CLIENTS, NODES, Doorkeeper, PeerKeys
from .io.measure import measured_priority
from .io.notify import Condition, supervision
from .io.pages import Page, Pages
from .io.peers import Peers
from .io.reactor import EXIT_DISK, EXIT_OK, Reactor
from .io.sockets import CannotBind, new_context
from .io.state_directory import ADVICE, StateDirectory, StateRefused
from .io.store import Store
from .io.versions_heard import VersionsHeard
from .io.waiting import Waiting
from .io.watch import Watch
from .observe import log as logs
from .observe import metrics
from .observe.events import EventWriter
from .observe.log import event
from .observe.statistics import Build, ClockStatistics, DaemonStatistics, EventJournalStatistics, as_objects
from .reload import read_again

EXIT_CANNOT_BIND = 1
EXIT_STATE = 4

GARBAGE_THRESHOLDS = (50_000, 1, 1)
"""When Python looks for what refers to itself in circles. What a step makes is gone when the step ends, so a look at
the young is rarely worth it. But what groups and sessions are made of is in such circles, and old when they end. As
every fourth look is one at everything, about 200 000 such objects gather, what 4 000 groups leave behind; and as Python
looks at everything only when a quarter of it is new, that does not come often when there is much to look at."""

log = logging.getLogger("groupsvcd")


def run(
    config: Config,
    inside: Callable[[Daemon], object] | None = None,
    *,
    reread: Callable[[], Config] | None = None,
) -> int:
    """Be the daemon of ``config``, with the programs that ``inside`` puts in, until it is stopped; the exit code.

    ``reread`` gives the configuration as it is now, for SIGHUP, or ``BadConfig``.
    """
    for warning in config.warnings():
        log.warning("%s", warning, extra=event("config_warning"))
    try:
        with ExitStack() as stack:
            daemon = Daemon(config, stack, reread or (lambda: config))
            if inside is not None:
                inside(daemon)
            return daemon.run()
    except StateRefused as refusal:
        log.critical("%s", refusal, extra=event("state_refused"))
        if _is_full(config.state_directory):
            log.error("the disk of the state directory is full; start again when it has room", extra=event("disk_full"))
            return EXIT_DISK
        return EXIT_STATE
    except CannotBind as refusal:
        log.critical("%s", refusal, extra=event("cannot_bind"))
        return EXIT_CANNOT_BIND


class Daemon:
    """Everything of one daemon; what it holds is given back when ``stack`` is closed."""

    def __init__(self, config: Config, stack: ExitStack, reread: Callable[[], Config]) -> None:
        _allow_many_descriptors()
        self._reread = reread
        started_us = clocks.wall_us()
        self._wall_ahead = clocks.wall_ns() / 1e9 - clocks.now()  # of the clock of leases, when the daemon started
        stored, store = _open_store(config, stack)
        self.acquired = Acquired(config, stored.options)
        self.config = config = self.acquired.in_force()
        self.changes = Changes(config)
        self.incarnation = max(stored.incarnation + 1, started_us)
        if store is not None:
            try:
                store.write([NodeRecord(self.incarnation, stored.domain)])
            except Exception as error:
                if _is_io_error(error):
                    text = "writing to the state directory failed (%s); stopping at once"
                    log.critical(text, error, extra=event("disk_failed", reason=str(error)))
                    _end_without_a_sync()
                raise StateRefused(f"state directory {config.state_directory} cannot be written: {error}") from None
        measured = measured_priority(config.state_directory)
        parameters = config.parameters(measured=measured, started_ms=started_us // 1_000)
        try:
            self.engine = Engine(parameters, stored, self.incarnation, random.Random(os.urandom(16)))
        except PeerProtocolError as problem:
            raise StateRefused(
                f"state directory {config.state_directory} cannot be read: {problem}. {ADVICE}"
            ) from None
        self.engine.sessions.set_access(Access(config.access))
        self.engine.sessions.desk.quota.members_max = config.limits.members_per_principal_max
        self.watch = Watch()
        self._complaints = Complaints(clocks.now)
        journal = self._journal = None if store is None else Journal(store, clocks.now)
        if journal is not None:
            stack.callback(journal.close)
        events = self._events = _events(config, self.incarnation)
        if events is not None:
            stack.callback(events.close)
        self.reactor = Reactor(
            self.engine, config.node, watch=self.watch, complaints=self._complaints, journal=journal, events=events
        )
        self._audit = Audit(clocks.now, self.reactor.record)
        self.reactor.stop_on_signals()
        self._open_sockets(stack)
        self._let_options_change(events)
        self._supervision = supervision(os.environ, os.getpid(), self._condition, clocks.now)
        if self._supervision is not None:
            self.reactor.attended_by(self._supervision)
        self.reactor.attended_by(Waiting(self._condition, clocks.now))
        self.reactor.on_signal(signal.SIGHUP, self._read_again)
        self.reactor.on_signal(signal.SIGUSR2, self._drain)

    def _open_sockets(self, stack: ExitStack) -> None:
        config = self.config
        self.pages: Pages | None = None
        if config.metrics_address:
            self.pages = Pages(
                *host_and_port(config.metrics_address),
                pages={"/metrics": self._metrics, "/healthz": _healthz, "/readyz": self._readyz},
                watch=self.watch,
                clock=clocks.now,
                call=self.reactor.call,
            )
            stack.callback(self.pages.close)
        context = new_context()
        stack.callback(context.term)
        peer_keys = None
        if config.keys is not None:
            peer_keys = PeerKeys(config.keys, config.node_keys)
            doors = {NODES: config.node_keys, CLIENTS: config.client_keys}
            doorkeeper = Doorkeeper(
                context, doors=doors, watch=self.watch, complaints=self._complaints, audit=self._audit
            )
            stack.callback(doorkeeper.close)
            self.changes.add(
                "node_keys", "client_keys",
                apply=lambda new: doorkeeper.change({NODES: new.node_keys, CLIENTS: new.client_keys}),
            )  # fmt: skip
        self.peers: Peers | None = None
        if config.address:
            self.peers = Peers(
                context,
                node=config.node,
                address=config.address,
                voters=config.voters,
                watch=self.watch,
                clock=clocks.now,
                refused=self.reactor.refused,
                complaints=self._complaints,
                queue_frames=config.limits.peer_queue_frames_max,
                insecure=config.insecure,
                keys=peer_keys,
            )
            stack.callback(self.peers.close)
            peers = self.peers
            if peer_keys is not None:
                self.changes.add("node_keys", apply=lambda new: peers.change_keys(new.node_keys))
                self.engine.trouble.barred_by = peers.barred_by
        _make_socket_directory(config.client_address)
        engine, identity = self.engine, self.engine.identity
        clients = self.clients = Clients(
            context,
            address=config.client_address,
            watch=self.watch,
            clock=clocks.now,
            complaints=self._complaints,
            who_we_are=lambda: (identity.domain, config.node, identity.incarnation, config.domain),
            clients_max=config.limits.clients_max,
            queue_frames=config.limits.client_queue_frames_max,
            listen=config.listen_clients,
            keys=config.keys,
            clients_per_principal_max=config.limits.clients_per_principal_max,
            came=self.reactor.client_came,
            audit=self._audit,
        )
        self.reactor.other_version = VersionsHeard(
            config.node, tuple(config.voters), clock=clocks.now, complaints=self._complaints, halt=self.reactor.halt,
            is_in=lambda: engine.member.was_in,
        ).heard  # fmt: skip
        self.reactor.attach(self.peers, clients, self.pages)
        engine.surveys.look = self._look
        engine.enrolment.door, engine.enrolment.wall_s = self._door, lambda: clocks.wall_ns() / 1e9
        self.changes.add("access", apply=lambda new: self.set_access(Access(new.access)))
        self.changes.add(
            "limits.clients_per_principal_max", "limits.members_per_principal_max",
            apply=lambda new: self._set_quotas(clients, new),
        )  # fmt: skip
        engine.all_statistics = lambda sees: as_objects(self.statistics(sees))
        self.changes.add("limits.clients_max", apply=lambda new: clients.admit(new.limits.clients_max))
        self.changes.add(
            "limits.client_queue_frames_max", apply=lambda new: clients.queue(new.limits.client_queue_frames_max)
        )

    def _let_options_change(self, events: EventWriter | None) -> None:
        """What the domain says about options is done from here on, and what is asked about them answered."""
        if self.config.log_level != self.acquired.written.log_level:
            logs.set_level(self.config.log_level)
        self.changes.add("log_level", apply=lambda new: logs.set_level(new.log_level))
        self.changes.add("form_without", apply=lambda new: None)  # only the first formation asks, once

        def resize(new: Config) -> None:
            if events is not None:
                limits = new.limits
                events.resize(limits.journal_file_bytes_max, limits.journal_file_seconds_max, limits.journal_files_max)

        self.changes.add(
            "limits.journal_file_bytes_max", "limits.journal_file_seconds_max", "limits.journal_files_max", apply=resize
        )
        self.reactor.adopt = self._adopt
        self.engine.option_lines = self.acquired.lines
        self.engine.requests.problem_with_option = self.acquired.problem_with

    def _adopt(self, effect: Adopt) -> None:
        self.acquired.tell(effect.options)
        self.changes.take(self.acquired.in_force())

    def take(self, written: Config) -> Changed:
        """File and environment say this now; what the domain says stands above the file as before."""
        self.acquired.written = written
        return self.changes.take(self.acquired.in_force())

    def _look(self) -> Observed:
        """What the engine cannot see, for surveys."""
        links = {} if self.peers is None else self.peers.states()
        return Observed(__version__, clocks.wall_us(), links)

    def _door(self) -> Door:
        """What a new node must know, for who asks for a token or shows one.

        What goes into its file nobody can revoke, so that is what stands in ours. The keys that the domain lists it is
        told by the voters, as long as they are listed; ours may be one of them.
        """
        config, written = self.changes.config, self.acquired.written
        if config.keys is None:
            return Door(problem=NO_KEYS)
        own = {config.node: (config.keys.public,)}
        return Door(
            problem="" if config.listen_clients else NO_DOOR,
            domain=config.domain,
            address=config.listen_clients,
            server=config.keys.public,
            voters=config.voters,
            in_file={**written.node_keys, **own},
            node_keys={**config.node_keys, **own},
            handed_out={**written.node_keys, **(own if config.node in config.voters else {})},
            options={key: value_of(config, key) for key in ESSENTIAL if key not in ("domain", "voters")},
        )

    def _set_quotas(self, clients: Clients, new: Config) -> None:
        clients.admit_per_principal(new.limits.clients_per_principal_max)
        self.engine.sessions.desk.quota.members_max = new.limits.members_per_principal_max

    def set_access(self, access: Access) -> None:
        """These are the rules from the next round on; from the thread of ``run``."""
        self.reactor.call(lambda: self.engine.sessions.set_access(access))

    def statistics(self, sees: Sees = lambda group: True) -> DaemonStatistics:
        """Everything in numbers, as of now, of groups that may be seen; only within a step of the engine."""
        events, wall = self._events, clocks.wall_ns() / 1e9
        return DaemonStatistics(
            build=Build(version=__version__, python=".".join(map(str, sys.version_info[:3])), libzmq=zmq.zmq_version()),
            engine=self.engine.statistics(self.config.limits.metrics_series_max, sees),
            reactor=self.reactor.statistics(),
            clients=self.clients.statistics(),
            peers=None if self.peers is None else self.peers.totals(),
            store=None if self._journal is None else self._journal.statistics(),
            journal=None if events is None else _of_events(events),
            pages=None if self.pages is None else self.pages.statistics(),
            complaints=dict(self._complaints.counts),
            clock=ClockStatistics(wall=wall, skew=wall - clocks.now() - self._wall_ahead),
            process=process.statistics(),
        )

    def _metrics(self) -> Page:
        found = metrics.families(self.statistics(), self.config.limits.metrics_series_max)
        return Page(200, metrics.exposition(found), metrics.CONTENT_TYPE)

    def _readyz(self) -> Page:
        problem = self.engine.not_serving_because
        return Page(503, f"not ready: {problem}\n".encode()) if problem else Page(200, b"ready\n")

    def run(self) -> int:
        """Drive the engine until it is stopped; the exit code."""
        config, reactor = self.config, self.reactor
        log.info(
            "ready: groupsvcd %s node=%s incarnation=%d address=%s clients=%s keys=%s state=%s essentials=%s pid=%d",
            __version__,
            config.node,
            self.incarnation,
            config.address or "none",
            " ".join(filter(None, (config.client_address, config.listen_clients))),
            "none" if config.keys is None else config.keys.public,
            config.state_directory or "memory",
            self.engine.parameters.essentials_digest(),
            os.getpid(),
            extra=event("ready", version=__version__, incarnation=self.incarnation, pid=os.getpid()),
        )
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GARBAGE_THRESHOLDS)
        exit_code = reactor.run()
        if self._supervision is not None:
            self._supervision.stopping(f"ending with exit code {exit_code}")
        if exit_code == EXIT_OK:
            reactor.say_goodbye()
        reactor.close(exit_code)
        log.info("ended with exit code %d", exit_code, extra=event("ended", exit_code=exit_code))
        if exit_code == EXIT_DISK:
            _end_without_a_sync()
        return exit_code

    # --- Asked from outside ---

    def _read_again(self) -> None:
        log.info("reading the configuration again on SIGHUP", extra=event("reloading"))
        if self._supervision is not None:
            self._supervision.reloading()
        read_again(self._reread, self.take)
        if self._supervision is not None:
            self._supervision.reloaded()

    def _drain(self) -> None:
        log.info("draining on SIGUSR2", extra=event("draining"))
        self.reactor.call(lambda: self.engine.drain.begin(DRAIN_S))

    def _condition(self) -> Condition:
        """How this daemon is, for who supervises it."""
        engine = self.engine
        member = engine.member
        if engine.drain.is_on:
            return Condition(not member.isolated, engine.drain.in_words)
        if member.isolated:
            trouble = engine.trouble.in_words
            return Condition(False, f"waits to be let in: {trouble}" if not member.was_in else f"suspended: {trouble}")
        up = sum(1 for entry in member.nodes.values() if entry.status == "up")
        return Condition(
            True, f"in the domain: name server is {engine.trouble.leader or 'not known'}, {up} nodes are up"
        )


def _healthz() -> Page:
    """Whoever is told this was answered by a round of the reactor."""
    return Page(200, b"ok\n")


def _of_events(events: EventWriter) -> EventJournalStatistics:
    return EventJournalStatistics(
        lines_written=events.lines_written, lines_lost=events.lines_lost, bytes_waiting=events.bytes_waiting
    )


def _end_without_a_sync() -> NoReturn:
    """A sync has failed, and closing the database would sync once more what must not be tried again."""
    logging.shutdown()
    os._exit(EXIT_DISK)


def _is_io_error(error: Exception) -> bool:
    """Whether the disk itself says so; with a full one, or a file that may not be written, it does not."""
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_IOERR


def _is_full(directory: Path | None) -> bool:
    """Whether nothing can be written there: then it is not for its state that a start was refused."""
    try:
        return directory is not None and os.statvfs(directory).f_bavail == 0
    except OSError:
        return False


def _open_store(config: Config, stack: ExitStack) -> tuple[Stored, Store | None]:
    if config.state_directory is None:
        return Stored(state_id=os.urandom(16).hex()), None
    directory = StateDirectory(config.state_directory)
    stack.callback(directory.close)
    store = Store(directory, config.node)
    return store.stored, store


def _events(config: Config, boot: int) -> EventWriter | None:
    if config.journal_directory is None:
        return None
    try:
        return EventWriter(
            config.journal_directory,
            config.node,
            boot,
            clock=clocks.now,
            wall_ns=clocks.wall_ns,
            file_bytes_max=config.limits.journal_file_bytes_max,
            files_max=config.limits.journal_files_max,
            file_seconds_max=config.limits.journal_file_seconds_max,
            level="full" if config.journal_level == "full" else "batch",
            clock_id=clocks.clock_id(),
        )
    except OSError as error:
        raise CannotBind(f"the event journal cannot be made in {config.journal_directory}: {error.strerror}") from None


def _allow_many_descriptors() -> None:
    """Take what the system allows: a peer costs five descriptors, and the usual soft limit is for small programs."""
    present, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if present == most:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except (OSError, ValueError) as error:
        log.warning("the limit of open files stays as it is: %s", error, extra=event("file_limit"))


def _make_socket_directory(address: str) -> None:
    path = address.removeprefix("ipc://")
    if path.startswith("@"):
        return
    try:
        Path(path).parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise CannotBind(f"the directory of {address} cannot be made: {error.strerror}") from None
