"""What drives the machine of a session (``groupsvc.sansio``): sockets, threads, signals, the event loop.

``daemon_socket`` is the socket to the daemon, ``exchange`` one turn of a machine on it. ``pump`` does the turns for
blocking programs, with a ``background`` thread for the time in which nobody waits, ``callbacks`` on a thread of their
own, and signals kept from the middle of a step (``interrupts``); ``loop_pump`` does them in asyncio. ``connection`` is
the plain connection of the command line, which has no session.
"""
