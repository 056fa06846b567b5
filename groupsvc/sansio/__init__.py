"""The client without sockets, threads or clocks: what a session says, waits for and is told, as a pure machine.

A program calls ``session.join``: ``asking`` makes the request and what is to become of its answer, ``session_machine``
numbers it, keeps it until it is answered, and says it again after a broken connection. What the daemon tells goes to
the ``membership_machine`` of its group, which makes events of it and puts them into an ``event_buffer``. Messages of
one's own are in ``own_messages``, those for a state machine in ``applying``.

Both drivers, blocking and asyncio, and the simulator drive this one machine. Nothing here waits, and time is an
argument; ``tests/tidy`` reads the imports.
"""
