"""Coordination for programs that must stay up: what applications import.

Every node runs one daemon, ``groupsvcd``; an application talks to the one on its own node. This package is
the application's half and never imports the daemon's, so a client machine needs no engine to run.

Today it offers the command ``groupsvc`` (``groupsvc.cli``), a plain connection to a daemon
(``groupsvc.connection``), domains for tests and the simulator (``groupsvc.testing``), and the wire that both
halves share (``groupsvc.wire``). Sessions and groups come
with the next layers.
"""

__version__ = "0.1.0"
