"""The command without the rest of groupsvc around it, for ``spark-submit``."""

from __future__ import annotations

import sys

from groupsvc.spark.audit.command import main

if __name__ == "__main__":
    sys.exit(main())
