"""What is built on groups for everybody's use, one recipe in each file: both drivers' classes over the same rules.

A session makes them (``session.lock("name")``); each lives in a group of its own, as in ``_lock/name``. There is
nothing in the daemon for any of them: who is on the list of a group, and in which order, is all they need.
"""
