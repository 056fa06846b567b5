"""The protocol without I/O: ``Engine.step(event, now) -> effects``.

There is no socket, file, clock, thread or hidden randomness below this package; a test in ``tests/tidy``
reads every import to make sure. ``events`` is what can happen to an engine, ``effects`` what it wants done,
``records`` what it wants kept, ``peer_messages`` what engines say to one another.
"""
