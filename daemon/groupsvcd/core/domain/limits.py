"""Limits of what the directory holds: name with unit, value, reason.

Every voter keeps the directory in memory, writes it into checkpoints and sends it whole to a voter that
lost touch, so nothing in it may grow without a bound. What is over a limit is refused with a sentence.
Limits decide what a command does, therefore all voters of a domain must have the same.
"""

from __future__ import annotations

COMMAND_BYTES_MAX = 512 * 1024
"""One entry of the domain stream. The largest honest one activates a view of every group a node led."""

NODES_MAX = 10_000
"""Ten times the largest domain simulated. Lines of nodes long gone make room before anyone is refused."""

FORMER_INCARNATIONS_MAX = 64
"""Incarnations of one node that are down but not known to be gone. A node that restarts more often than
this within lease + margin has to wait; a line of the table stays short."""

GROUPS_MAX = 100_000
"""One record is about 200 bytes in a checkpoint and 2.4 KB in memory: 20 MB and 240 MB at the very worst. To encode so
many takes about a second, in which a name server does nothing else (docs/SCALE.md)."""

GROUP_SERVERS_MAX = 32
"""Holders of one stream. More would slow every message down and protect no better."""

GROUP_SERVERS_WANTED = 3
"""r unless the group says otherwise: two failures are survived one after the other."""

ATTRIBUTES_BYTES_MAX = 4 * 1024
"""Attributes of one group, encoded. They are settings; what a group works on is in its own stream."""

ATTRIBUTES_MAX = 64
"""Names among them: several times what there is, and few enough that all that is wrong fits into one answer."""

LOGICAL_LIFETIME_MAX = 10_000_000
"""Numbers for which every origin of a group is remembered, at 50 bytes each."""

HISTORY_ENTRIES_MOST = 10_000_000
"""Entries that a group can be asked to keep for who lags; memory ends before."""

HISTORY_BYTES_LEAST = 1024
"""Less than this and every hiccup of a member is a lag."""

HISTORY_BYTES_MOST = 4 * 1024 * 1024 * 1024
"""What a group can be asked to keep in the memory of each of its nodes."""

INLINE_BYTES_MOST = 128 * 1024
"""What travels with its order has to leave room for others in a frame of the usual size."""

CHECKPOINT_EVERY_MAX = 1_000_000
"""Entries between two checkpoints: so many are applied again after a restart, and kept until then."""

SYNC_WINDOW_MAX = 10_000
"""Multicasts without acknowledgement, one after the other."""

ACTIVATIONS_MAX = 10_000
"""Activations in one entry: after the death of a node every group it led is activated at once."""

ADDRESS_CHARS_MAX = 255
"""A DNS name with scheme and port."""

STATE_ID_CHARS_MAX = 64
"""A random id in hexadecimal, with room."""

VOTERS_MAX = 31
"""Every decision needs a majority of them; more than seven is already unusual."""

STATE_IDS_RETIRED_MAX = 1_000
"""State directories of replaced voters that are remembered, so that none is ever taken back."""

ESSENTIALS_MAX = 200
"""Essential parameters at formation; there are about twenty."""

CONFIG_KEYS_MAX = 10_000
"""Shared settings of a domain."""

CONFIG_BYTES_MAX = 4 * 1024 * 1024
"""All keys and values together; half of the largest frame, so that a checkpoint can travel."""

OPTIONS_MAX = 100
"""Settings that are options of the daemons: several times what there is. Every node is told of all of them."""

OPTION_VALUE_BYTES_MAX = 1024
"""The value of one: a word, a number or a short list."""

NODE_KEYS_MAX = 1_000
"""Names for which a token or a key is listed, or was: a line of them has 100 bytes, and who starts is told all, in one
frame of 100 KB. A name that was revoked stays, with its version: who was away then is told only what has changed since
its own version, and would let that key in for ever if the line were gone. The name can be enrolled again. Larger
domains, and those whose nodes never have the same name twice, have their keys in files."""

ORIGINS_MAX = 2 * NODES_MAX
"""Rows of the duplicates table: each node with the incarnation that ends and the one that begins."""

ANSWERS_BYTES_MAX = 2 * 1024 * 1024
"""All kept answers together. They are only for commands repeated because an answer was lost, which
happens within seconds; the oldest are forgotten first."""

SHOWN_CHARS_MAX = 80
"""How much of a strange name a refusal quotes; answers are kept, so they must stay short."""

BATCH_WINDOW_S_MAX = 60.0
"""How long joins or leaves may be collected: whoever joins waits for it."""

TIME_LIMIT_S_MAX = 86_400.0
"""Of a phase; 0 is none at all."""

CLIENT_VERSION_CHARACTERS_MAX = 64
"""Of the programs in a group, as they call it."""
