"""Keys that the domain lists, laid over those in this node's own file.

Node D was enrolled by a token, so its key is in no file but everywhere in the domain: it comes to each node as options
do, is kept in the state directory, and stands beside ``[node_keys]`` here.

Which keys a node has that stands in the file, the file alone says. Whoever is listed can have a line put into the
directory past the rules of enrolment, if somebody has taken it over; with a second key for voter A it would speak as A.
So of the nodes in the file, of the voters and of itself a node believes the domain nothing; nor of a key that the file
gives to another node. Of two nodes that were enrolled with one key the first has it, on all nodes.

Tokens are let in at the door for programs, under a name that no configuration can have (``TOKEN_MARK``) and that is
good for nothing but to enrol (``core/domain/enrolment.py``). A used one, too: who shows it is told so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

import attrs

from ..core.access import TOKEN_MARK
from ..core.domain.listed_keys import Listed, NodeKey, listed, node_of
from ..observe.log import event
from .options import Config

log = logging.getLogger(__name__)


class Enrolled:
    """What the domain lists for nodes, as this node was last told: by node, with the version."""

    def __init__(self) -> None:
        self._listed: dict[str, tuple[Listed | None, int]] = {}

    def tell(self, told: Iterable[tuple[str, str, int]]) -> None:
        """From now on the domain lists this; what is new is logged."""
        before = self._listed
        self._listed = {node_of(key): (listed(line), version) for key, line, version in told}
        for node, (present, version) in self._listed.items():
            was = before.get(node, (None, 0))[0]
            if present != was and isinstance(present, NodeKey):
                about = event("node_key_listed", name=node, key=present.public, version=version)
                log.info("the domain lists %s with the key %s (version %d)", node, present.public, version, extra=about)
            elif present != was and isinstance(was, NodeKey):
                about = event("node_key_revoked", name=node, key=was.public, version=version)
                log.warning("the domain does not list %s any more (version %d)", node, version, extra=about)

    def laid_over(self, config: Config) -> Config:
        """The configuration with all keys; one without a key of its own asks nobody for any."""
        if config.keys is None or not self._listed:
            return config
        node_keys, client_keys = dict(config.node_keys), dict(config.client_keys)
        owners = {key: node for node, keys in node_keys.items() for key in keys} | {config.keys.public: config.node}
        not_the_domain_s = {*config.node_keys, *config.voters, config.node}
        programs = {key for keys in client_keys.values() for key in keys}
        for node, (present, _) in sorted(self._listed.items(), key=lambda item: item[1][1]):
            if node in not_the_domain_s:
                continue
            if isinstance(present, NodeKey) and owners.setdefault(present.public, node) == node:
                node_keys[node] = (present.public,)
            token = present.token if isinstance(present, NodeKey) else present.public if present is not None else ""
            if token and token not in programs:
                client_keys[TOKEN_MARK + token] = (token,)
        return attrs.evolve(config, node_keys=node_keys, client_keys=client_keys)
