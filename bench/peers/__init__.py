"""Ours beside others: the same programs on several services, in turns, in one run. ``python -m bench.peers --help``."""
