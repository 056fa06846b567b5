"""The story of ``fenced_resource.py`` with a resource that does not look at fences: a lock alone does not save it.

Run it: ``python examples/unfenced_resource.py``. anna checked that she has the lock, fell asleep, and writes when
she wakes up, over what bert wrote who has the lock by then. No lock service can prevent that: the time between a check
and a write belongs to the program, not to the service. What is written to must compare fences.
"""

from __future__ import annotations

from fenced_resource import Resource, main


class Forgetful(Resource):
    """It takes whatever comes."""

    def is_old(self, fence: int) -> bool:
        """Never, as far as it knows."""
        return False


if __name__ == "__main__":
    main(Forgetful)
