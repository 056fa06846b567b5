"""Daemons that ended by themselves: whose doing that was, the nemesis's or their own.

A disk that answers EIO ends its daemon, and so it must. But in such a run a daemon whose disk is well may crash, too,
or the struck one in another way than by its disk. So a nemesis says with which codes its harm may end a daemon
(``Nemesis.ends_with``), and it can have been its harm only where it has struck. Whatever else ends by itself turns the
run red; and so does a stack trace in the log of any daemon, whatever its nemesis: no harm from outside excuses one.
"""

from __future__ import annotations

import attrs

from .cluster import Cluster, Ended
from .nemesis import Nemesis

TRACE = "Traceback (most recent call last)"
SHOWN = 1500
"""Characters of a stack trace that are told."""


def unexpected(nemesis: Nemesis, ended: Ended) -> str:
    """What is wrong with it, or ""."""
    if nemesis.may_have_ended(ended.node, ended.code):
        return ""
    told = ", ".join(map(str, sorted(nemesis.ends_with))) or "none"
    struck = "was struck" if ended.node in nemesis.struck else "was not struck"
    return f"{ended.node} ended by itself with code {ended.code}; it {struck} by {nemesis.name}, which ends with {told}"


@attrs.define
class Endings:
    """Looks at the daemons of one cluster, again and again."""

    cluster: Cluster
    _seen: int = 0  # ends that were judged
    _read: dict[str, int] = attrs.field(factory=dict)  # by node: characters of its log that were read

    def look(self, nemesis: Nemesis) -> list[str]:
        """What is wrong with what has ended, and with what was logged, since this was asked before."""
        ended = self.cluster.look_who_ended()
        found = [problem for one in ended[self._seen :] if (problem := unexpected(nemesis, one))]
        self._seen = len(ended)
        for name in self.cluster.names:
            log = self.cluster.logs(name)
            found += [f"{name} wrote a stack trace: {words}" for words in traces(log[self._read.get(name, 0) :])]
            self._read[name] = log.rindex("\n") + 1 if "\n" in log else 0
        return found


def traces(log: str) -> list[str]:
    """Those in it, each from its beginning on."""
    return [f"{TRACE}{rest[:SHOWN]}" for rest in log.split(TRACE)[1:]]
