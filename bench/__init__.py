"""The promised times and sizes, measured on this machine with real daemons. ``python -m bench --help``."""
