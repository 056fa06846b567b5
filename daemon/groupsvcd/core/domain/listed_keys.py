"""What the domain lists for a node that is to come or has come: a token, or the key that the node has.

It is one setting of the directory for each name, and a line of words::

    token PUBLIC UNTIL      who shows the key PUBLIC may enrol the node, until UNTIL (seconds since 1970)
    key PUBLIC TOKEN UNTIL  the node has the key PUBLIC; who showed the key TOKEN has enrolled it, and is told so again
                            until UNTIL
                            (empty) nothing any more

So a token turns into a key by *setting the one over the other*, and of two machines with the same token that both set
over the version with the token only the first does. Of these lines the directory reads one word, PUBLIC: it is listed
for one name, and is none that another line names. A line that it cannot read it takes as it is, for a rule that
only the next version of the program has would be one on which two versions differ.

The token stays named beside the key that came of it. A machine that was not told whether it is enrolled shows the token
again and is told, by its public key, that it was itself; another machine is told that the token is used.
"""

from __future__ import annotations

import attrs

from groupsvc.wire.enrolment_messages import NODE_KEY_PREFIX, is_public_key

TIME_DIGITS_MAX = 12
"""Seconds since 1970, for the next thirty thousand years."""


@attrs.frozen
class Token:
    """Who shows this key may enrol the node, until then."""

    public: str
    until: int

    def line(self) -> str:
        """As it stands in the directory."""
        return f"token {self.public} {self.until}"


@attrs.frozen
class NodeKey:
    """The node has this key; who showed the key ``token`` has enrolled it, and is told so again until then."""

    public: str
    token: str
    until: int

    def line(self) -> str:
        """As it stands in the directory."""
        return f"key {self.public} {self.token} {self.until}"


Listed = Token | NodeKey


def listed(line: str) -> Listed | None:
    """What a line says; nothing if it is empty, or none of ours."""
    match line.split(" "):
        case ["token", public, until] if is_public_key(public) and _is_time(until):
            return Token(public, int(until))
        case ["key", public, token, until] if is_public_key(public) and is_public_key(token) and _is_time(until):
            return NodeKey(public, token, int(until))
    return None


def setting_of(node: str) -> str:
    """The setting that is about this node."""
    return NODE_KEY_PREFIX + node


def node_of(setting: str) -> str:
    """The node that a setting is about; "" if it is about none."""
    return setting.removeprefix(NODE_KEY_PREFIX) if setting.startswith(NODE_KEY_PREFIX) else ""


def _is_time(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= TIME_DIGITS_MAX
