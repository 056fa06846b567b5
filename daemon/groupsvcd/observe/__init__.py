"""What can be seen of a daemon from outside: the event journal for programs, the log for people."""
