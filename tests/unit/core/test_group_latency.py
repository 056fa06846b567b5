"""What a program submits when something is handed up to it leaves in the same step, and waits for no timer."""

from __future__ import annotations

import pytest

from bench.costs import ROUND_S, World
from bench.load import Load


@pytest.mark.parametrize("window", [1, 256])
def test_a_program_that_answers_every_delivery_waits_for_no_timer(window: int) -> None:
    """Submit, Order, Held, stable: three nodes get through it in a few rounds of the clock."""
    world = World(Load(senders=1, window=window))
    world.send(window)
    began = world.clock
    world.send(21 * window)
    assert world.clock - began <= 20 * 5 * ROUND_S
