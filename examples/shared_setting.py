"""A setting that all nodes agree on: read it, change it, and lose a race without harm.

``if_version`` makes two administrators who change the same setting at the same time notice each other.
"""

from __future__ import annotations

from groupsvc.drivers.connection import DaemonConnection
from groupsvc.errors import StaleVersion
from groupsvc.testing import LocalDomain


def main() -> None:
    """Two administrators at two nodes."""
    with (
        LocalDomain(nodes=3) as domain,
        DaemonConnection(domain.address("n1")) as anna,
        DaemonConnection(domain.address("n2")) as bert,
    ):
        seen_by_both = anna.config_get("backup.hour").version
        anna.config_set("backup.hour", "3", if_version=seen_by_both)
        try:
            bert.config_set("backup.hour", "5", if_version=seen_by_both)
        except StaleVersion as refusal:
            print(f"bert was too late: {refusal}")
        agreed = bert.config_get("backup.hour")
        print(f"everybody reads {agreed.value!r}, version {agreed.version}")


if __name__ == "__main__":
    main()
