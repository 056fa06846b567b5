"""What enemies of wires have in common: they look whether their harm is there, in each strike.

Rules that let everything pass would give green runs for ever. So a strike ends with a look by probes
(``tests/faults/probes.py``): who should hear nobody hears nobody, and all others hear. What is not as it was told to be
turns the run red, and ``bites`` counts the strikes that were seen to be there.
"""

from __future__ import annotations

from ..nemesis import Nemesis, Scene


class WireNemesis(Nemesis):
    """One that is undone by healing all wires."""

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[str] = []
        self.bitten = 0

    def found(self) -> list[str]:
        return self.failures

    def bites(self) -> int | None:
        return self.bitten

    def seen(self, problem: str) -> None:
        """What was looked for is there, if there is no problem."""
        if problem:
            self.failures.append(f"{self.name} is not there: {problem}")
        else:
            self.bitten += 1

    def heal(self, scene: Scene) -> None:
        scene.wires.heal()
