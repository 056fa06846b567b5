"""Every number that stands for a kind of frame or message on the wire.

A number is never reused and never changes its meaning: a daemon of next year must be able to refuse,
by name, what a daemon of today sends. New kinds are appended in their block; ``docs/PROTOCOL.md`` lists
who sends each to whom and when, and a test compares the two.
"""

from __future__ import annotations

import enum


class FrameKind(enum.IntEnum):
    """What the body of a frame is a list of."""

    PEER = 1  # messages between daemons
    CLIENT_REQUEST = 2  # messages from an application to the daemon of its node
    CLIENT_REPLY = 3  # messages from the daemon back to the application


class Kind(enum.IntEnum):
    """What one message is."""

    # Liveness: who is there, and who may act.
    LEADER_ALIVE = 10
    ALIVE = 11
    ALIVE_ACK = 12
    REGISTER = 13
    UNWELCOME = 14
    NODE_LIST_ASK = 15
    NODE_LIST = 16
    SUSPECT = 17
    GOODBYE = 18

    # Election of the name server.
    CANVASS = 20
    SUPPORT = 21
    CLAIM = 22
    YIELD = 23

    # The stream: order, hold, repair, recover.
    SUBMIT = 30
    ORDER = 31
    HELD = 32
    BEAT = 33
    PROMISED = 34
    OPEN = 35
    OPENED = 36
    REPAIR_ASK = 37
    REPAIR = 38
    SUBMIT_REFUSED = 39
    REFUSED = 40
    ACCEPTED = 41
    SEEN = 42
    NOT_LEADER = 43
    DATA = 44
    DATA_HELD = 45
    DATA_ASK = 46
    RELAY = 47
    SYNC_ASK = 48
    SYNCED = 49

    # Questions to the name server.
    ASK = 50
    TELL = 51
    ANSWERED = 52

    # Node groups: who carries a group's stream.
    GRANT = 60
    GROUP_IS = 61
    INSERT = 62
    INSERTED = 63
    LEAVE = 64
    COMPLAINT = 65
    ORPHAN = 66
    LEFT = 67
    INSERT_REFUSED = 68

    # Checkpoints of a group's stream.
    CHECKPOINT_HELD = 70
    BLOCK_ASK = 71
    BLOCK = 72

    # Process groups.
    VOTES = 80
    WAITS = 81

    # Questions of operators, which nothing depends on.
    SURVEY = 90
    FINDINGS = 91

    # Application to daemon.
    HELLO = 100
    STATUS_ASK = 101
    LOOK_UP_ASK = 102
    CONFIG_ASK = 103
    CONFIG_SET = 104
    HAND_OVER_ASK = 105
    DRAIN_ASK = 108
    OPTIONS_ASK = 110
    STATISTICS_ASK = 112
    SURVEY_ASK = 115
    TOKEN_ASK = 116
    ENROL_ASK = 117
    REVOKE_ASK = 118
    NODE_KEYS_ASK = 119

    # Daemon to application.
    WELCOME = 120
    STATUS = 121
    GROUP_RECORD = 122
    CONFIG_VALUE = 123
    DONE = 124
    PROBLEM = 125
    DRAIN_IS = 128
    OPTIONS_ARE = 130
    STATISTICS = 132
    SURVEY_IS = 135
    TOKEN_IS = 136
    ENROLLED = 137
    REVOKED = 138
    NODE_KEYS_ARE = 139

    # Application to daemon, within a session.
    OPEN_SESSION = 140
    RESUME_SESSION = 141
    CLOSE_SESSION = 142
    SESSION_ALIVE = 143
    JOIN_ASK = 144
    SUBSCRIBE_ASK = 145
    LEAVE_ASK = 146
    GOODBYE_ASK = 147
    CHANGE_STATE_ASK = 148
    SEND_ASK = 149
    EXPEL_ASK = 150
    CHANGE_ATTRIBUTES_ASK = 151
    CAST_VOTE = 152
    MULTICAST = 153
    SUBMIT_OUTSIDE = 154
    CATCH_UP_ASK = 155
    OUTCOME_ASK = 156
    GROUPS_ASK = 157
    WHY_ASK = 158
    OVERRUN = 159
    STORE_BLOCK = 160
    SEAL_CHECKPOINT = 161
    BARRIER_ASK = 162
    BREAK_ASK = 163
    ROUND_ASK = 164

    # Daemon to application, within a session.
    SESSION_IS = 180
    SESSION_ALIVE_ACK = 181
    JOINED_AS = 182
    SUBSCRIBED = 183
    OUTCOME_IS = 184
    TOLD = 185
    MESSAGES_CAME = 186
    MEMBER_LOST = 187
    NOTICES_MISSED = 188
    SESSION_NEWS = 189
    CAUGHT_UP = 190
    GROUPS_ARE = 191
    OUTCOMES_ARE = 192
    CHECKPOINT_BLOCK = 193
    CHECKPOINT_TOLD = 194
    SNAPSHOT_WANTED = 195
    ROUND_IS = 196
    ROUND_PART = 197
