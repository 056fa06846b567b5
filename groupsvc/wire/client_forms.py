"""The forms that all messages between an application and its daemon have."""

from __future__ import annotations

import msgspec


class ClientMessage(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """The common form of all messages between application and daemon."""


class ClientRequest(ClientMessage):
    """From the application."""


class ClientReply(ClientMessage):
    """To the application."""
