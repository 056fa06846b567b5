"""CURVE: giving keys to sockets. What ZeroMQ must be asked about keys is asked here, by clients and daemons alike.

The one who connects must know the public key of the one who listens, and shows its own. The one who listens asks the
ZAP handler of its process whether that key is welcome. Without a handler it would let in everybody, so
``serve`` names a ZAP domain and enforces it: if nobody answers for the domain, nobody gets in.
"""

from __future__ import annotations

import zmq

from ..keys import Keys

HANDSHAKE_FAILED = int(
    zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
)
"""What the monitor of a connecting socket tells when one end does not take the key of the other, or one has none."""


def new_keys(servers: tuple[str, ...] = ()) -> Keys:
    """A new pair. Its public key does not begin with a dash: a command would take that for an option."""
    while True:
        public, secret = zmq.curve_keypair()
        if not public.startswith(b"-"):
            return Keys(public.decode(), secret.decode(), servers)


def public_of(secret: str) -> str:
    """The public key that belongs to this secret one."""
    return zmq.curve_public(secret.encode()).decode()


def problem_with_pair(keys: Keys) -> str | None:
    """Why nobody could be convinced with these, or None."""
    if public_of(keys.secret) != keys.public:
        return "the public key does not belong to the secret key; they are of different pairs"
    return None


def show(connecting: zmq.Socket[bytes], keys: Keys) -> None:
    """What ``connecting`` connects to from now on is shown this pair."""
    connecting.setsockopt(zmq.CURVE_PUBLICKEY, keys.public.encode())
    connecting.setsockopt(zmq.CURVE_SECRETKEY, keys.secret.encode())


def expect(connecting: zmq.Socket[bytes], server: str) -> None:
    """What ``connecting`` connects to from now on must have the secret of the public key ``server``."""
    connecting.setsockopt(zmq.CURVE_SERVERKEY, server.encode())


def serve(listening: zmq.Socket[bytes], keys: Keys, zap_domain: str) -> None:
    """Where ``listening`` binds from now on, everybody must show a key that the handler of ``zap_domain`` lets in."""
    listening.setsockopt(zmq.CURVE_SERVER, 1)
    listening.setsockopt(zmq.CURVE_PUBLICKEY, keys.public.encode())
    listening.setsockopt(zmq.CURVE_SECRETKEY, keys.secret.encode())
    listening.setsockopt(zmq.ZAP_DOMAIN, zap_domain.encode())
    listening.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)
