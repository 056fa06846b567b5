"""What can be seen of a daemon from outside: its journal of events, its numbers, its status."""
