"""``python -m groupsvc.cli`` is the ``groupsvc`` command."""

from __future__ import annotations

import sys

from .main import main

sys.exit(main())
