"""What is said when a new node gets its key listed; part of ``client_messages``, where all of them are listed.

Operator O asks daemon A for a token for node D: ``TokenAsk`` with the public half of a pair that O has made, and the
secret half is the token. Whoever shows the token at A's door for programs may say one thing, ``EnrolAsk``: "D has this
public key", and is told what a daemon needs to be D. Then the token is used.

What the domain lists for D is one setting of the directory, ``NODE_KEY_PREFIX`` and the name. Nobody sets it by
``ConfigSet``.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from .client_forms import ClientReply, ClientRequest
from .kinds import Kind
from .option_messages import OPTION_PREFIX

NODE_KEY_PREFIX = OPTION_PREFIX + "keys/"
"""How the keys of settings begin that say what is listed for a node; they travel as options of the daemons do."""

KEY_CHARS = 40
"""A public key, in Z85."""

KEY_CHARACTERS = frozenset(
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
)  # fmt: skip

TOKEN_VALID_S = 3600.0
TOKEN_VALID_S_MAX = 30 * 86_400.0
"""A month: who needs a token for longer makes another one."""


def is_public_key(text: str) -> bool:
    """Whether this can be a key."""
    return len(text) == KEY_CHARS and KEY_CHARACTERS.issuperset(text)


class NodeKeyLine(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """What is listed for one node: a token that may be used until then, or the key that the node has."""

    node: str
    kind: Literal["token", "key", "file"]  # file: it stands in [node_keys] of the daemon that was asked
    public: str
    until: int = 0  # of a token: seconds since 1970
    version: int = 0  # the entry of the directory that listed it


class TokenAsk(ClientRequest, tag=int(Kind.TOKEN_ASK)):
    """Who shows the key ``public`` may enrol ``node``, for so many seconds."""

    id: int
    node: str
    public: str
    valid_s: float
    timeout: float


class TokenIs(ClientReply, tag=int(Kind.TOKEN_IS)):
    """It may: at ``address`` (as the daemon listens), of a daemon with the key ``server``; ``replaced`` another one."""

    id: int
    node: str
    domain: str
    address: str
    server: str
    until: int
    replaced: bool


class EnrolAsk(ClientRequest, tag=int(Kind.ENROL_ASK)):
    """The node has this public key. Only over a connection that has shown a token."""

    id: int
    node: str
    public: str
    timeout: float


class Enrolled(ClientReply, tag=int(Kind.ENROLLED)):
    """It is listed by entry ``version``. What its daemon must know: the voters, all keys, what is the same on all."""

    id: int
    version: int
    domain: str
    voters: dict[str, str]
    node_keys: dict[str, tuple[str, ...]]
    options: dict[str, float | int | str]  # with their tables: limits.answers_kept


class RevokeAsk(ClientRequest, tag=int(Kind.REVOKE_ASK)):
    """List nothing for this node any more: neither a token nor a key."""

    id: int
    node: str
    timeout: float


class Revoked(ClientReply, tag=int(Kind.REVOKED)):
    """What was listed until now."""

    id: int
    node: str
    what: Literal["token", "key"]
    version: int


class NodeKeysAsk(ClientRequest, tag=int(Kind.NODE_KEYS_ASK)):
    """What is listed for which node? Answered at once, from the memory of the daemon."""

    id: int


class NodeKeysAre(ClientReply, tag=int(Kind.NODE_KEYS_ARE)):
    """Everything, by node; ``now`` is the daemon's clock, against which it holds tokens."""

    id: int
    now: int
    lines: tuple[NodeKeyLine, ...]
