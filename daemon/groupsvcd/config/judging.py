"""What must hold between the options of a configuration, beyond the type of each value."""

from __future__ import annotations

import attrs

from groupsvc.addresses import TCP, problem_with_local_address
from groupsvc.keys import is_key_name
from groupsvc.wire.limits import NODE_NAME_BYTES_MAX

from ..core.parameters import Timers
from ..io.addresses import HTTP, multicast_address, problem_with_metrics_address, problem_with_peer_address
from .keys import KEY_TABLES
from .options import Config, Limits
from .problems import Note, did_you_mean

LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("text", "json")
JOURNAL_LEVELS = ("batch", "full")

TIMER_S_MIN = 0.001
"""No protocol runs faster than a scheduler lets it."""

TIMER_S_MAX = 3600.0
"""Who waits an hour for a lease to end does not need a daemon for it."""

NUMBER_MAX = 2**40
"""Far beyond any use, and still a number that every part can carry."""

QUEUE_FRAMES_MAX = 1_000_000
"""Frames waiting for one receiver; a socket takes no number much larger, and memory ends before."""

PREFERENCE_MAX = 1000
"""More voters than that there never are, so each could have its own."""


def judge_names(config: Config, note: Note) -> None:
    """Names, and words of which there are only some."""
    names = [("node", config.node), ("domain", config.domain)]
    names += [(f"voters.{voter}", voter) for voter in config.voters]
    names += [(f"{table}.{name}", name) for table in KEY_TABLES for name in getattr(config, table)]
    for key, name in names:
        if not is_key_name(name):
            text = f"{name!r} is no name: 1 to {NODE_NAME_BYTES_MAX} letters, digits, '.', '_' or '-'"
            note(key, text)
    for missing in config.form_without:
        if missing == config.node:
            note("form_without", f"names this node itself, {missing}")
        elif missing not in config.voters:
            hint = did_you_mean(missing, list(config.voters))
            note("form_without", f"{missing!r} is not in [voters]{hint}")
    for key, level, levels in (
        ("log_level", config.log_level, LOG_LEVELS),
        ("log_format", config.log_format, LOG_FORMATS),
        ("journal_level", config.journal_level, JOURNAL_LEVELS),
    ):
        if level not in levels:
            note(key, f"{level!r} is none of {', '.join(levels)}")
    if len(config.voters) > 1 and config.is_voter and config.state_directory is None:
        text = f"is required: {config.node} is one of {len(config.voters)} voters and must not forget its promises"
        note("state_directory", text)


def judge_addresses(config: Config, note: Note) -> None:
    """Where this daemon is, and where the others are."""
    for voter, address in config.voters.items():
        _note_if(f"voters.{voter}", problem_with_peer_address(address, may_leave=config.may_leave), note)
    _judge_clashes(config, note)
    if config.node in config.voters:
        if config.address != config.voters[config.node]:
            text = f"{config.address} differs from voters.{config.node} = {config.voters[config.node]}"
            note("address", text)
    elif config.address:
        _note_if("address", problem_with_peer_address(config.address, may_leave=config.may_leave), note)
    elif config.voters:
        text = f"is required: {config.node} is not in [voters], so the others cannot know where it is"
        note("address", text)
    _note_if("client_address", problem_with_local_address(config.client_address), note)
    if config.metrics_address:
        may_leave = config.metrics_insecure or config.insecure
        _note_if("metrics_address", problem_with_metrics_address(config.metrics_address, may_leave=may_leave), note)


def _judge_clashes(config: Config, note: Note) -> None:
    """Each node needs two endpoints that no other uses, nor this daemon for anything else."""
    users: dict[str, str] = {}
    nodes = dict(config.voters)
    if config.address:
        nodes.setdefault(config.node, config.address)
    for node, address in nodes.items():
        if problem_with_peer_address(address, may_leave=True) is not None:
            continue
        key = f"voters.{node}" if node in config.voters else "address"
        for endpoint in (address, multicast_address(address)):
            other = users.setdefault(endpoint, node)
            if other != node:
                note(key, f"{endpoint} is used by {other} as well (multicasts take PORT + 1)")
    for key in ("listen_clients", "metrics_address"):
        address = getattr(config, key)
        if address:
            endpoint = TCP + address.removeprefix(TCP).removeprefix(HTTP)
            other = users.setdefault(endpoint, f"this daemon for {key}")
            if other != f"this daemon for {key}":
                note(key, f"{endpoint} is used by {other} already (multicasts take PORT + 1)")


def judge_numbers(config: Config, note: Note) -> None:
    """Bounds, and what must hold between times."""
    for sentence in config.timers.problems(len(config.voters) or 1):
        key, _, text = sentence.partition(" ")
        note(key, text)
    for field in attrs.fields(Timers):
        if not TIMER_S_MIN <= getattr(config.timers, field.name) <= TIMER_S_MAX:
            text = f"= {getattr(config.timers, field.name)!r} must be {TIMER_S_MIN} to {TIMER_S_MAX:.0f} seconds"
            note(f"timers.{field.name}", text)
    for field in attrs.fields(Limits):
        most = QUEUE_FRAMES_MAX if field.name.endswith("_queue_frames_max") else NUMBER_MAX
        if not 1 <= getattr(config.limits, field.name) <= most:
            text = f"= {getattr(config.limits, field.name)} must be 1 to {most}"
            note(f"limits.{field.name}", text)
    if not 0 <= config.preference <= PREFERENCE_MAX:
        note("preference", f"= {config.preference} must be 0 to {PREFERENCE_MAX}")


def _note_if(key: str, text: str | None, note: Note) -> None:
    if text is not None:
        note(key, text)
