"""Client sessions: what an application does in groups, beyond the life of one connection."""
