"""The configuration of the daemon of this node, as the daemon itself judges it, and the keys in it.

Clients do not have the daemon's code. So ``groupsvcd --check-config --json`` is run, and says whether the file is good
and what it comes to: which socket, which state directory, whose keys.

Where nobody has named a file the daemon that runs is asked which one it has read: every option it has says where its
value comes from. What neither a file nor a daemon can tell is called *not looked at*, and nothing is concluded from it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs

from ...wire.table_lines import OptionLine
from .findings import Finding, fail, ok, warn
from .owners import closed_by, who_may_read

CONFIG_VARIABLE = "GROUPSVC_CONFIG"
USUAL_FILE = Path("/etc/groupsvc/groupsvcd.toml")
"""Where a service that was installed has it."""

JUDGING_S = 20.0
"""To start a process on a machine that has much to do; the judgement takes milliseconds."""

CHECK = "configuration"
KEYS = "keys"
NO_KEYS = "there are none, and so this daemon uses addresses of this machine only"


@attrs.frozen
class Judged:
    """A configuration: its file ("" if there is none), and what it comes to if it is good."""

    file: str
    content: dict[str, Any] | None = None

    def text(self, key: str) -> str:
        """Of an option; "" if it has no value."""
        return str((self.content or {}).get(key) or "")


def file_of(given: str | None) -> str:
    """The file to look at: given, in the environment, or at the usual place; "" if there is none."""
    if given:
        return given
    return os.environ.get(CONFIG_VARIABLE) or (str(USUAL_FILE) if USUAL_FILE.exists() else "")


def file_read_by(options: Iterable[OptionLine]) -> str:
    """The file that the daemon has its options from; "" if it has none, or does not name it in full."""
    return next(filter(os.path.isabs, _files(options)), "")


def _files(options: Iterable[OptionLine]) -> list[str]:
    """As the daemon names them: its own configuration, perhaps from the directory in which it was started."""
    places = (re.fullmatch(r"(.+):\d+", line.source) for line in options)
    return [place[1] for place in places if place]


def not_looked_at(options: Sequence[OptionLine]) -> list[Finding]:
    """What can be said without a file: what the daemon that runs has said of itself, if one has."""
    advice = f"name the file of the daemon with --config FILE, or in {CONFIG_VARIABLE}"
    if not options:
        return [warn(CHECK, "not looked at: no file is named, and no daemon has said which one it has read", advice)]
    values = {line.key: line.value for line in options}
    files = _files(options)
    text = (
        f"the daemon has read {files[0]}, and does not say in which directory" if files else "the daemon has read none"
    )
    kept = values.get("state_directory") or "memory"
    found = [warn(CHECK, f"not looked at: {text}; it keeps its state in {kept}", advice)]
    if values.get("key_file"):
        return [
            *found,
            ok(KEYS, f"the daemon has those in {values['key_file']}; whether all are listed is not looked at"),
        ]
    if values.get("insecure") == "true":
        return [*found, _insecure()]
    return [*found, ok(KEYS, NO_KEYS)]


def judge(file: str) -> tuple[Judged, list[Finding]]:
    """What the daemon says of this configuration."""
    if closed := closed_by(Path(file)):
        who = who_may_read(closed)
        text = (
            f"not looked at: {closed} may be {'entered' if closed.is_dir() else 'read'} by {who}, and not by this user"
        )
        return Judged(file), [
            warn(CHECK, text, f"ask as one of them, or as root: `sudo groupsvc doctor --config {file}`")
        ]
    if importlib.util.find_spec("groupsvcd") is None:
        return Judged(file), [warn(CHECK, "groupsvcd is not installed here, so nobody can judge its configuration")]
    command = [sys.executable, "-m", "groupsvcd", "--check-config", "--json", "--config", file]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=JUDGING_S, stdin=subprocess.DEVNULL)
        found = json.loads(ended.stdout)
    except PermissionError:
        why = f"not looked at: this user may not run {sys.executable}, and so not groupsvcd --check-config"
        return Judged(file), [warn(CHECK, why, "ask as root, or as the user of the daemon")]
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        why = f"groupsvcd --check-config could not be asked ({type(error).__name__})"
        return Judged(file), [warn(CHECK, why, f"run `groupsvcd --check-config --config {file}`")]
    if not found["good"]:
        advice = "correct it; `groupsvcd --check-config` lists all problems, the example configuration all options"
        problems = [": ".join(filter(None, (one["where"], one["key"], one["text"]))) for one in found["problems"]]
        return Judged(file), [fail(CHECK, problem, advice) for problem in problems]
    return Judged(file, found), [_good(file, found), *(warn(CHECK, one) for one in found["warnings"])]


def _good(file: str, found: dict[str, Any]) -> Finding:
    role = "voter" if found["voter"] else "node without a vote"
    return ok(CHECK, f"{file} is good: {found['node']}, {role} of a domain of {len(found['voters']) or 1} voters")


def look_at_keys(judged: Judged) -> list[Finding]:
    """Whether others could know this node; that pair, mode and voters are right is part of the judgement above."""
    content = judged.content
    if content is None:
        return []
    file = judged.text("key_file")
    if not file:
        if content["insecure"]:
            return [_insecure()]
        return [ok(KEYS, NO_KEYS)]
    found = [_pair(file, content)]
    if content["node"] not in content["node_keys"]:
        found.append(_not_listed(content["node"], is_voter=content["voter"]))
    twice = sorted(name for name, keys in content["node_keys"].items() if len(keys) > 1)
    if twice:
        text = f"two keys are accepted for {', '.join(twice)}"
        found.append(warn(KEYS, text, "when the change of key is done, remove the old one on every node"))
    return found


def _not_listed(node: str, *, is_voter: bool) -> Finding:
    """To advise that the key of an enrolled node is listed would do harm: what stands in files nobody can revoke."""
    if is_voter:
        text = f"the key of {node} itself is not in [node_keys] of its own file"
        return warn(KEYS, text, "the table is the same on every node: see that the others have it, and add it here")
    text = f"the key of {node} itself stands in no file here: that is so with nodes that were enrolled"
    return ok(KEYS, f"{text}, and `groupsvc token --list` shows them")


def _insecure() -> Finding:
    text = "there are none, and insecure = true: anybody who reaches a port may send frames"
    return warn(KEYS, text, "make some with `groupsvc keygen`, and see docs/guides/keys.md")


def _pair(file: str, content: dict[str, Any]) -> Finding:
    try:
        seen = os.stat(file)
    except OSError as error:
        return warn(KEYS, f"{file} cannot be looked at: {error.strerror}", "ask as root, or as the user of the daemon")
    mode = stat.S_IMODE(seen.st_mode)
    return ok(KEYS, f"{file} (mode {mode:04o}) is a pair; {len(content['node_keys'])} nodes are listed, all voters too")
