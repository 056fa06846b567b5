"""Join tokens: one line that lets a new machine get its key listed, once.

A token is the secret half of a pair whose public half the domain lists, with what a machine must know that knows
nothing of the domain: where a daemon listens for it, and which public key that daemon has, so that it is sure of
whom it speaks to. Who has the line can enrol the node, so it is a secret until it is used. It has no spaces and no
quotes, and a checksum: a line that was copied in part is told from one that is refused.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib

import attrs
import msgspec

from .addresses import TCP, problem_with_address
from .errors import UsageError
from .keys import is_key_name, problem_with_key

PREFIX = "groupsvc-token-1."
"""What a line begins with; the number is that of its form."""

LINE_CHARS_MAX = 4096

_Content = tuple[str, str, str, str, int, str]
_content_decoder: msgspec.json.Decoder[_Content] = msgspec.json.Decoder(_Content)
_CHECK_BYTES = 4


@attrs.frozen
class Token:
    """What is in the line."""

    node: str
    domain: str
    address: str  # where a daemon listens for programs of other machines
    server: str  # the public key of that daemon
    until: int  # seconds since 1970, by the clock of the daemon that made it
    secret: str = attrs.field(repr=False)

    def line(self) -> str:
        """All of it."""
        body = json.dumps([self.node, self.domain, self.address, self.server, self.until, self.secret]).encode()
        return PREFIX + base64.urlsafe_b64encode(body + _check(body)).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str) -> Token:
        """The token in ``text``; an error does not repeat it."""
        text = text.strip()
        if not text.startswith(PREFIX):
            raise UsageError(f"this is no token: one begins with {PREFIX}, and `groupsvc token` makes one")
        found = _content(text.removeprefix(PREFIX)) if len(text) <= LINE_CHARS_MAX else None
        if found is None:
            raise UsageError("the token is damaged; copy the whole line that `groupsvc token` printed")
        token = cls(*found)
        keys = problem_with_key(token.server) or problem_with_key(token.secret)
        if keys or not is_key_name(token.node) or not token.address.startswith(TCP):
            raise UsageError("the token is damaged; copy the whole line that `groupsvc token` printed")
        if problem := problem_with_address(token.address):
            raise UsageError(f"the token names no daemon that can be reached: {problem}; make one with --via")
        return token


def looks_like_one(text: str) -> bool:
    """Whether this is the secret itself, where something else was to be given."""
    return text.strip().startswith(PREFIX)


def _content(text: str) -> _Content | None:
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        body, check = raw[:-_CHECK_BYTES], raw[-_CHECK_BYTES:]
        if check != _check(body):
            return None
        return _content_decoder.decode(body)
    except (binascii.Error, ValueError):  # those of msgspec are among them
        return None


def _check(body: bytes) -> bytes:
    return zlib.crc32(body).to_bytes(_CHECK_BYTES, "big")
