"""The bytes between processes: pure values, shared by application and daemon.

From the outside in: ``frames`` (header and checksum), ``kinds`` (every number on the wire), ``codec``
(a list of typed messages per frame), ``client_messages`` (application and daemon; those between daemons are
``groupsvcd.core.peer_messages``), ``history`` (one line per thing that happened) and ``limits``.

Nothing here opens, sends or waits. ``docs/PROTOCOL.md`` is the reference.
"""
