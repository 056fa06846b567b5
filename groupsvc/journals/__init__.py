"""Event journals of daemons: which lines there are, reading, checking and compacting them. Needs no daemon."""
