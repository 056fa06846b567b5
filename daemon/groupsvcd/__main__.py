"""``groupsvcd``: the command that starts the daemon of a node.

Parts are put together here and nowhere else: configuration, state directory, engine, sockets, reactor. What can
be refused is refused before a socket is bound, and each kind of refusal has an exit code of its own, so that a
supervisor can tell "try again" from "a person must look":

    0  stopped on request (SIGTERM, SIGINT), or the answer to --check-config, --version, --help
    1  the configuration is bad, or an address cannot be listened at
    2  the command line is wrong
    3  the engine halted, or an invariant broke; a restart is right
    4  the state directory must not be used; a restart will not help
    5  the disk failed while running; a restart reads what is really there
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import random
import resource
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from groupsvc import __version__

from . import config as configuration
from .core.records import NodeRecord, Stored
from .io import clocks
from .io.clients import Clients
from .io.complaints import Complaints
from .io.journal import Journal
from .io.measure import measured_priority
from .io.peers import Peers
from .io.reactor import EXIT_DISK, EXIT_OK, Reactor
from .io.sockets import CannotBind, new_context
from .io.state_directory import StateDirectory, StateRefused
from .io.store import Store
from .io.watch import Watch
from .observe import log as logs
from .observe.events import EventWriter

EXIT_CONFIG = 1
EXIT_USAGE = 2
EXIT_STATE = 4

log = logging.getLogger("groupsvcd")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as end:  # --help, --version, or a wrong command line; argparse has said which
        return end.code if isinstance(end.code, int) else EXIT_USAGE
    path = arguments.config or os.environ.get("GROUPSVC_CONFIG")
    try:
        config = configuration.load(Path(path) if path else None)
    except configuration.BadConfig as bad:
        for problem in bad.problems:
            print(f"groupsvcd: {problem}", file=sys.stderr)
        return EXIT_CONFIG
    if arguments.check_config:
        return _report(config)
    logs.set_up(config.node, config.log_level)
    for warning in config.warnings():
        log.warning("%s", warning)
    try:
        with ExitStack() as stack:
            return _run(config, stack)
    except StateRefused as refusal:
        log.critical("%s", refusal)
        return EXIT_STATE
    except CannotBind as refusal:
        log.critical("%s", refusal)
        return EXIT_CONFIG


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="groupsvcd",
        description="The groupsvc daemon of this node.",
        epilog="Without a configuration it is a domain of one, kept in memory. Every option can also be set as"
        " GROUPSVC_… in the environment. Exit codes: 0 stopped on request, 1 bad configuration or address in use,"
        " 2 wrong command line, 3 halted, 4 state directory refused, 5 disk error.",
    )
    parser.add_argument("--config", metavar="FILE", help="configuration in TOML (default: $GROUPSVC_CONFIG, else none)")
    parser.add_argument("--check-config", action="store_true", help="report every problem of the configuration and end")
    parser.add_argument("--version", action="version", version=f"groupsvcd {__version__}")
    return parser


def _report(config: configuration.Config) -> int:
    role = "voter" if config.is_voter else "node without a vote"
    print(f"configuration is good: {config.node}, {role} of a domain of {len(config.voters) or 1} voters")
    for warning in config.warnings():
        print(f"warning: {warning}")
    return EXIT_OK


def _run(config: configuration.Config, stack: ExitStack) -> int:
    from .core.engine import Engine

    _allow_many_descriptors()
    started_us = clocks.wall_us()
    stored, store = Stored(state_id=os.urandom(16).hex()), None
    if config.state_directory is not None:
        directory = StateDirectory(config.state_directory)
        stack.callback(directory.close)
        store = Store(directory, config.node)
        stored = store.stored
    incarnation = max(stored.incarnation + 1, started_us)
    if store is not None:
        try:
            store.write([NodeRecord(incarnation, stored.domain)])
        except Exception as error:
            raise StateRefused(f"state directory {config.state_directory} cannot be written: {error}") from None
    parameters = config.parameters(measured=measured_priority(config.state_directory), started_ms=started_us // 1_000)
    engine = Engine(parameters, stored, incarnation, random.Random(os.urandom(16)))
    watch = Watch()
    complaints = Complaints(clocks.now)
    journal = None if store is None else Journal(store, clocks.now)
    if journal is not None:
        stack.callback(journal.close)
    events = None if config.journal_directory is None else _events(config, incarnation)
    if events is not None:
        stack.callback(events.close)
    reactor = Reactor(engine, config.node, watch=watch, complaints=complaints, journal=journal, events=events)
    reactor.stop_on_signals()
    context = new_context()
    stack.callback(context.term)
    peers = None
    if config.address:
        peers = Peers(
            context,
            node=config.node,
            address=config.address,
            voters=config.voters,
            watch=watch,
            clock=clocks.now,
            refused=reactor.refused,
            complaints=complaints,
            queue_frames=config.limits.peer_queue_frames_max,
            insecure=config.insecure,
        )
        stack.callback(peers.close)
    _make_socket_directory(config.client_address)
    clients = Clients(
        context,
        address=config.client_address,
        watch=watch,
        clock=clocks.now,
        complaints=complaints,
        who_we_are=lambda: (engine.domain, config.node, engine.incarnation, config.domain),
        clients_max=config.limits.clients_max,
        queue_frames=config.limits.client_queue_frames_max,
    )
    reactor.attach(peers, clients)
    log.info(
        "ready: groupsvcd %s node=%s incarnation=%d address=%s clients=%s state=%s pid=%d",
        __version__,
        config.node,
        incarnation,
        config.address or "none",
        config.client_address,
        config.state_directory or "memory",
        os.getpid(),
    )
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    exit_code = reactor.run()
    if exit_code == EXIT_OK:
        reactor.say_goodbye()
    reactor.close(exit_code)
    log.info("ended with exit code %d", exit_code)
    if exit_code == EXIT_DISK:
        logging.shutdown()
        os._exit(EXIT_DISK)  # closing the database would sync once more what must not be tried again
    return exit_code


def _events(config: configuration.Config, boot: int) -> EventWriter | None:
    assert config.journal_directory is not None
    try:
        return EventWriter(
            config.journal_directory,
            config.node,
            boot,
            clock=clocks.now,
            wall_ns=clocks.wall_ns,
            file_bytes_max=config.limits.journal_file_bytes_max,
            files_max=config.limits.journal_files_max,
        )
    except OSError as error:
        raise CannotBind(f"the event journal cannot be made in {config.journal_directory}: {error.strerror}") from None


def _allow_many_descriptors() -> None:
    """Take what the system allows: a peer costs five descriptors, and the usual soft limit is for small programs."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except (OSError, ValueError) as error:
        log.warning("the limit of open files stays as it is: %s", error)


def _make_socket_directory(address: str) -> None:
    path = address.removeprefix("ipc://")
    if path.startswith("@"):
        return
    try:
        Path(path).parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise CannotBind(f"the directory of {address} cannot be made: {error.strerror}") from None


if __name__ == "__main__":
    sys.exit(main())
