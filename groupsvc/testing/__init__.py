"""Tools to test programs that use groupsvc; shipped because we test with them ourselves.

``LocalDomain`` starts real daemons on this machine. The simulator is ``groupsvc.testing.sim``, the pytest
fixtures are in ``groupsvc.testing.fixtures``; neither is imported here, so that this stays cheap.
"""

from __future__ import annotations

from .local_domain import DaemonCrashed, DomainNotReady, LocalDomain

__all__ = ["DaemonCrashed", "DomainNotReady", "LocalDomain"]
