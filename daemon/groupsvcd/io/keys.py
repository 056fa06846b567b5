"""Who may connect: answering ZeroMQ's question whether a key is welcome.

Somebody connects to node A and proves to have the secret of a public key. Before A hears a byte of it, libzmq asks the
ZAP handler of the process, over a socket inside it, whether this key may come in at this door (the *ZAP domain*). The
answer here is no, or what libzmq marks every frame of that connection with from then on, as its ``User-Id``. A name in
a frame is only a claim; this one is proven.

There are two doors: ``NODES`` for daemons, ``CLIENTS`` for programs of other machines. The same key may be known at one
and unknown at the other. The door for daemons has a side entrance, ``MULTICASTS``, for the same keys. Frames of
programs are marked with the name that the key has in the configuration. Those of daemons are marked with the key
itself, for a frame may have been under way while the list was changed: B's key is taken off and B is listed with
another one, and what comes with the old key is not from B.

Nothing waits here: a question is answered in the loop of the daemon, from a table. While the loop does something else,
who connects waits. The handler must exist before the first door is opened.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import zmq
from zmq.utils import z85

from groupsvc.keys import Keys

from ..core.audit import Audit
from . import sockets
from .complaints import Complaints
from .sockets import NOBLOCK, Context
from .watch import Watch

NODES = "nodes"
MULTICASTS = "multicasts"
CLIENTS = "clients"
ZAP_ADDRESS = "inproc://zeromq.zap.01"
ZAP_VERSION = b"1.0"
QUESTION_PARTS = 7
WELCOME = b"200"
NOT_NOW = b"300"
"""Cut off without a word, as at the side entrance: a ZeroMQ socket tries again, and gets in when its key is listed."""
NEVER = b"400"
"""Cut off with a word: a program, or a node, is told that its key is not listed. A ZeroMQ socket that was told so gives
up; the library and the daemon know that, and begin again."""

Names = Mapping[str, tuple[str, ...]]


@attrs.frozen
class PeerKeys:
    """This node's own pair, and the public keys of the nodes it knows."""

    own: Keys
    nodes: Names


class Doorkeeper:
    """The ZAP handler of the daemon."""

    def __init__(
        self,
        context: Context,
        *,
        doors: Mapping[str, Names],
        watch: Watch,
        complaints: Complaints,
        audit: Audit | None = None,
    ) -> None:
        self._audit = audit or Audit(lambda: 0.0, lambda op, args: None)
        self.change(doors)
        self._watch = watch
        self._complaints = complaints
        self._asked = sockets.new_socket(context, zmq.REP, send_queue=0, receive_queue=0)
        self._asked.bind(ZAP_ADDRESS)
        watch.add(sockets.fd_of(self._asked), self.run)
        self.run()  # a socket tells of what comes only when it was once found empty

    def change(self, doors: Mapping[str, Names]) -> None:
        """From now on these are welcome. Who is in already stays, as far as this goes, until its connection ends."""
        self._names = {
            door.encode(): {z85.decode(key): name.encode() for name, keys in names.items() for key in keys}
            for door, names in doors.items()
        }

    def run(self) -> None:
        """Answer everybody who waits."""
        try:
            while True:
                question = self._asked.recv_multipart(NOBLOCK)
                self._asked.send_multipart(self._answer(question), NOBLOCK)
        except zmq.Again:
            pass

    def _answer(self, question: list[bytes]) -> list[bytes]:
        number = question[1] if len(question) > 1 else b""
        if len(question) != QUESTION_PARTS or question[0] != ZAP_VERSION or question[5] != b"CURVE":
            self._audit.record_stranger("key_refused", "", why="no key")
            return [ZAP_VERSION, number, NEVER, b"keys are asked for here", b"", b""]
        _, _, asked_at, address, _, _, key = question
        door = NODES.encode() if asked_at == MULTICASTS.encode() else asked_at
        name = self._names.get(door, {}).get(key)
        if name is None:
            door_name, where = door.decode(errors="replace"), address.decode(errors="replace")
            shown = z85.encode(key).decode()
            self._audit.record_stranger("key_refused", shown, why="not listed", door=door_name, peer=where)
            text = f"{shown}, from {where}, is none of the keys of"
            self._complaints.note("stranger", f"{text} [{'client' if door == CLIENTS.encode() else 'node'}_keys]")
            return [ZAP_VERSION, number, NEVER if asked_at == door else NOT_NOW, b"not listed", b"", b""]
        who, where = f"key:{name.decode()}", address.decode(errors="replace")
        self._audit.record("key_admitted", who, door=door.decode(), peer=where)
        return [ZAP_VERSION, number, WELCOME, b"", z85.encode(key) if door == NODES.encode() else name, b""]

    def close(self) -> None:
        """Let nobody in any more."""
        if not self._asked.closed:
            self._watch.remove(sockets.fd_of(self._asked))
            self._asked.close(linger=0)


def let_in_as(part: zmq.Frame) -> str:
    """What the connection of this frame was let in as: a node's key, the name of a program; empty if as nobody.

    Only where keys are asked for: elsewhere nobody but the one who connects has written it.
    """
    try:
        return str(part.get("User-Id"))
    except zmq.ZMQError:
        return ""
