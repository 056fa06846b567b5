"""The ordered stream: sequencer, server, receiver, recovery. Used by the domain; knows of no election."""
