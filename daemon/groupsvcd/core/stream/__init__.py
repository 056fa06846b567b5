"""The ordered stream: sequencer, server, receiver, recovery. One code for the domain and every group."""
