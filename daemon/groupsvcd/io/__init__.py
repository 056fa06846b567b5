"""Everything that blocks or fails: sockets, disk, clocks, and the loop that drives the engine with them."""
