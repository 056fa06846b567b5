"""Journals that no daemon wrote: as many lines as one wants, sound, or with one contradiction of each kind planted.

``python -m groupsvc.testing.made_journals DIR --events 200000`` writes the journals of five nodes. An audit of a real
domain seldom has ten million lines at hand, and never one that is known to be wrong in one place.
"""

from __future__ import annotations

from .planting import PLANTS, Plant
from .story import Shape
from .writing import Made, make_journals

__all__ = ["PLANTS", "Made", "Plant", "Shape", "make_journals"]
