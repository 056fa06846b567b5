"""The enemies of a real cluster, by name; each file has those of one kind, and each is found by being here.

Those of storage are in ``storage_*.py``.
"""

from __future__ import annotations

import importlib
import pkgutil

from ..nemesis import Nemesis


def _found() -> dict[str, type[Nemesis]]:
    by_name: dict[str, type[Nemesis]] = {}
    for module in pkgutil.iter_modules(__path__):
        for value in vars(importlib.import_module(f"{__name__}.{module.name}")).values():
            if isinstance(value, type) and issubclass(value, Nemesis) and value.name:
                by_name[value.name] = value
    return dict(sorted(by_name.items()))


NEMESES = _found()
"""By name."""
