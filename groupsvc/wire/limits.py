"""Limits of what may be on the wire: name with unit, value, reason."""

from __future__ import annotations

FRAME_BYTES_MAX = 8 * 1024 * 1024
"""Largest frame a daemon parses. A checkpoint of a directory with thousands of nodes and groups fits; a
hostile length field cannot make us allocate more."""

FRAME_BYTES_USUAL = 256 * 1024
"""Messages are put together into frames up to this size; only a single message that is larger makes a larger frame.
Large enough that what a frame costs does not matter, small enough not to hold up a liveness frame behind it."""

NODE_NAME_BYTES_MAX = 63
"""A host name label; node names travel in every frame."""

GROUP_NAME_CHARS_MAX = 200
"""Long enough for a path-like name, short enough to be logged whole."""

CONFIG_KEY_CHARS_MAX = 200
"""As group names."""

CONFIG_VALUE_BYTES_MAX = 64 * 1024
"""A shared setting, not a file store; every voter keeps it in memory and on disk."""

TIMEOUT_S_MAX = 3600.0
"""No request waits longer in a daemon; who wants to wait for ever asks again."""
