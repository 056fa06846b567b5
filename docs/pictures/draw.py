"""Draws the pictures of the documentation: ``python docs/pictures/draw.py`` writes the SVG files beside it.

Whoever changes a picture changes this file and runs it; a test compares what it draws with what is there. Each picture
is a card with a ground of its own, so that it reads the same on light and on dark pages. Text is text: it can be
searched, copied and read aloud, and ``desc`` says in sentences what the picture shows.
"""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

INK, FAINT, GROUND, LINE = "#1b2733", "#4a5663", "#fbfaf6", "#8793a0"
MACHINE, DAEMON, PROGRAM, LIBRARY = "#f0efe9", "#ffffff", "#d8e8f8", "#b5d3f0"
REACTOR, ENGINE, DISK = "#fde7bf", "#d3eed6", "#e4def4"
LEADS, SERVES, RECEIVES = "#93350f", "#1b5a85", "#56606b"
WIRE = "#1b5a85"

CHARACTER = 0.56
"""The width of an average letter in parts of its size, for what is fitted to a text."""


class Drawing:
    """A card of some width and height, drawn from back to front."""

    def __init__(self, width: int, height: int, title: str, description: str) -> None:
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
            ' role="img" aria-labelledby="title desc" font-family="Helvetica, Arial, sans-serif" font-size="13">',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="desc">{escape(description)}</desc>',
            "<defs>",
            *(self._head(name, colour) for name, colour in (("wire", WIRE), ("ink", FAINT), ("leads", LEADS))),
            "</defs>",
        ]
        self.box(1, 1, width - 2, height - 2, GROUND, radius=10)

    @staticmethod
    def _head(name: str, colour: str) -> str:
        return (
            f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
            f' orient="auto-start-reverse"><path d="M0 0 L8 4 L0 8 z" fill="{colour}"/></marker>'
        )

    def box(
        self, x: float, y: float, width: float, height: float, fill: str, *, radius: int = 5, dashed: bool = False,
        edge: str = LINE,
    ) -> None:  # fmt: skip
        """A rectangle."""
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        self._parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius}" fill="{fill}"'
            f' stroke="{edge}"{dash}/>'
        )

    def text(
        self, x: float, y: float, words: str, *, size: int = 13, colour: str = INK, anchor: str = "middle",
        bold: bool = False,
    ) -> None:  # fmt: skip
        """One line of text, its middle at ``x`` unless it begins there (``anchor="start"``)."""
        weight = ' font-weight="bold"' if bold else ""
        self._parts.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}" text-anchor="{anchor}"{weight}>'
            f"{escape(words)}</text>"
        )

    def label(self, x: float, y: float, words: str, *, colour: str = INK, size: int = 12, ground: str = GROUND) -> None:
        """Text over a line, on a piece of the ground."""
        width = len(words) * size * CHARACTER + 6
        self._parts.append(
            f'<rect x="{x - width / 2:g}" y="{y - size:g}" width="{width:g}" height="{size + 4}" fill="{ground}"/>'
        )
        self.text(x, y, words, size=size, colour=colour)

    def pill(self, x: float, y: float, words: str, colour: str) -> None:
        """What somebody is, in white on a colour; ``x`` is its middle."""
        width = len(words) * 12 * CHARACTER + 24
        self._parts.append(
            f'<rect x="{x - width / 2:g}" y="{y:g}" width="{width:g}" height="20" rx="10" fill="{colour}"/>'
        )
        self.text(x, y + 14, words, size=12, colour="#ffffff", bold=True)

    def line(self, *points: tuple[float, float], kind: str = "ink", both: bool = False, dashed: bool = False) -> None:
        """An arrow through the points, with a head at its end; ``both``: and one at its beginning."""
        colour = {"wire": WIRE, "ink": FAINT, "leads": LEADS}[kind]
        path = "M" + " L".join(f"{x:g} {y:g}" for x, y in points)
        start = f' marker-start="url(#{kind})"' if both else ""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self._parts.append(
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}{start}'
            f' marker-end="url(#{kind})"/>'
        )

    def rule(self, x1: float, y1: float, x2: float, y2: float) -> None:
        """A thin line that only divides, or leads down."""
        self._parts.append(f'<path d="M{x1:g} {y1:g} L{x2:g} {y2:g}" stroke="{LINE}" stroke-dasharray="2 4"/>')

    def disk(self, x: float, y: float, width: float, height: float) -> None:
        """A cylinder."""
        right, low, flat = x + width, y + height, 7
        self._parts.append(
            f'<path d="M{x:g} {y + flat:g} V{low - flat:g} A{width / 2:g} {flat} 0 0 0 {right:g} {low - flat:g}'
            f' V{y + flat:g}" fill="{DISK}" stroke="{LINE}"/>'
            f'<ellipse cx="{x + width / 2:g}" cy="{y + flat:g}" rx="{width / 2:g}" ry="{flat}" fill="{DISK}"'
            f' stroke="{LINE}"/>'
        )

    def entries(self, x: float, y: float, first: int, count: int, *, open_from: int) -> None:
        """The end of a log, ``x`` its middle; entries from ``open_from`` on are not held by enough yet."""
        width = 34
        left = x - count * width / 2
        for place in range(count):
            number = first + place
            is_open = number >= open_from
            self.box(left + place * width, y, width, 22, GROUND if is_open else "#ffffff", radius=2, dashed=is_open)
            self.text(left + place * width + width / 2, y + 15, str(number), size=12, colour=FAINT if is_open else INK)

    def svg(self) -> str:
        """The file."""
        return "\n".join([*self._parts, "</svg>", ""])


# --- The parts and where they run --------------------------------------------------------------------------------

COLUMNS = (35, 385, 735)
"""Where each node begins."""
NODE_WIDTH = 290
MACHINE_Y, DAEMON_Y = 118, 222


def architecture() -> str:
    """Three nodes, the programs at them, and the two kinds of streams."""
    drawing = Drawing(
        1060,
        758,
        "groupsvc: three nodes, their daemons, and what the daemons agree on",
        "Three nodes, n1, n2 and n3, each run one daemon, groupsvcd. Programs with the library use the daemon of their"
        " node over a local socket. A Spark executor or another remote program uses the daemon of n3 over tcp with"
        " CURVE keys. In each daemon a reactor owns the sockets and gives events to the engine, which has no I/O and"
        " answers with effects; what must survive goes to the disk. The daemons speak with one another over tcp, with"
        " CURVE keys. Below are two streams. The directory: n1 is its leader, the name server; n2 and n3 are voters and"
        " follow; all three have it on disk. The group orders: n2 is its leader, n3 a server that also holds the"
        " stream, n1 a receiver that only follows. An entry is delivered when enough nodes hold it.",
    )
    _legend(drawing)
    for name, x in zip(("n1", "n2", "n3"), COLUMNS, strict=True):
        _node(drawing, name, x)
    _between(drawing)
    _remote(drawing)
    middle = [x + NODE_WIDTH / 2 for x in COLUMNS]
    for x in middle:
        drawing.rule(x, 432, x, 446)
    _stream(
        drawing, 446, "The directory: which nodes are up, which groups there are and who may lead them, settings."
        " On the disks of the voters.",
        (("name server", LEADS), ("voter", SERVES), ("voter", SERVES)), leader=0, first=87, k_note="a majority"
    )  # fmt: skip
    _stream(
        drawing, 598, "One of many groups, “orders”: members, messages, votes, state, barriers, in one order."
        " In memory, or on disks.",
        (("receiver", RECEIVES), ("leader", LEADS), ("server", SERVES)), leader=1, first=41, k_note="k servers"
    )  # fmt: skip
    return drawing.svg()


def _legend(drawing: Drawing) -> None:
    drawing.text(35, 36, "groupsvc", size=20, bold=True, anchor="start")
    drawing.text(
        35, 58, "A daemon on every node. What they agree on are streams: entries in one order,", anchor="start"
    )
    drawing.text(35, 76, "held by enough nodes before anybody sees them.", anchor="start")


def _node(drawing: Drawing, name: str, x: float) -> None:
    drawing.box(x, MACHINE_Y, NODE_WIDTH, 314, MACHINE, radius=8)
    drawing.text(x + 14, MACHINE_Y + 20, f"node {name}", anchor="start", bold=True)
    drawing.box(x + 14, DAEMON_Y, 262, 198, DAEMON)
    for left, words in ((x + 14, "a program"), (x + 152, "another one")):
        if name == "n3" and words == "another one":
            continue
        drawing.box(left, MACHINE_Y + 30, 124, 46, PROGRAM)
        drawing.text(left + 62, MACHINE_Y + 47, words)
        drawing.box(left + 4, MACHINE_Y + 53, 116, 19, LIBRARY, radius=3)
        drawing.text(left + 62, MACHINE_Y + 67, "library groupsvc", size=12)
        drawing.line((left + 62, MACHINE_Y + 76), (left + 62, DAEMON_Y + 27), both=True)
    drawing.label(x + 145, MACHINE_Y + 95, "local socket", ground=MACHINE)
    drawing.text(x + 145, DAEMON_Y + 19, "groupsvcd", bold=True)
    drawing.box(x + 28, DAEMON_Y + 28, 234, 52, REACTOR)
    drawing.text(x + 145, DAEMON_Y + 49, "reactor", bold=True)
    drawing.text(x + 145, DAEMON_Y + 67, "sockets, clock, one thread", size=12)
    drawing.box(x + 28, DAEMON_Y + 118, 134, 66, ENGINE)
    drawing.text(x + 95, DAEMON_Y + 143, "engine", bold=True)
    drawing.text(x + 95, DAEMON_Y + 161, "decides; no I/O", size=12)
    drawing.line((x + 62, DAEMON_Y + 80), (x + 62, DAEMON_Y + 118))
    drawing.line((x + 128, DAEMON_Y + 118), (x + 128, DAEMON_Y + 80))
    drawing.label(x + 62, DAEMON_Y + 101, "events", ground=DAEMON)
    drawing.label(x + 128, DAEMON_Y + 101, "effects", ground=DAEMON)
    drawing.disk(x + 190, DAEMON_Y + 118, 72, 66)
    drawing.text(x + 226, DAEMON_Y + 151, "disk", bold=True)
    drawing.text(x + 226, DAEMON_Y + 168, "2nd thread", size=12)
    drawing.line((x + 226, DAEMON_Y + 80), (x + 226, DAEMON_Y + 118), both=True)


def _between(drawing: Drawing) -> None:
    """Daemons speak with daemons."""
    y = DAEMON_Y + 54
    for left in COLUMNS[:2]:
        drawing.line((left + 262, y), (left + 378, y), kind="wire", both=True)
        drawing.label(left + 320, y - 8, "tcp", colour=WIRE)
        drawing.label(left + 320, y + 20, "CURVE", colour=WIRE, size=11)


def _remote(drawing: Drawing) -> None:
    """From another machine, with a key."""
    x = COLUMNS[2] + 130
    drawing.box(x, 18, 160, 62, PROGRAM)
    drawing.text(x + 80, 35, "a Spark executor, or")
    drawing.text(x + 80, 51, "a program elsewhere")
    drawing.box(x + 4, 57, 152, 19, LIBRARY, radius=3)
    drawing.text(x + 80, 71, "library groupsvc", size=12)
    drawing.line((x + 80, 80), (x + 80, DAEMON_Y + 27), kind="wire", both=True)
    drawing.label(x + 80, MACHINE_Y - 11, "tcp with keys (CURVE)", colour=WIRE)


def _stream(
    drawing: Drawing, y: float, words: str, roles: tuple[tuple[str, str], ...], *, leader: int, first: int, k_note: str
) -> None:
    """One stream as each node has it."""
    drawing.box(COLUMNS[0], y, COLUMNS[2] + NODE_WIDTH - COLUMNS[0], 138, MACHINE, radius=8)
    drawing.text(COLUMNS[0] + 14, y + 20, words, anchor="start", bold=True)
    for place, (role, colour) in enumerate(roles):
        x = COLUMNS[place] + NODE_WIDTH / 2
        drawing.pill(x, y + 34, f"n{place + 1}: {role}", colour)
        ahead = place == leader
        drawing.entries(x, y + 62, first, 5 if ahead else 4, open_from=first + 4)
    start = COLUMNS[leader] + NODE_WIDTH / 2
    for place in range(len(roles)):
        if place == leader:
            continue
        end = COLUMNS[place] + NODE_WIDTH / 2
        low = y + (112 if abs(place - leader) > 1 else 102)
        side = 24 if place > leader else -24
        drawing.line((start + side, y + 84), (start + side, low), (end, low), (end, y + 86), kind="leads")
    beside = COLUMNS[leader] + NODE_WIDTH / 2
    drawing.text(beside, y + 130, f"{first + 4}: delivered when {k_note} hold it", size=12, colour=LEADS)


# --- How one message travels -------------------------------------------------------------------------------------

LIVES = (("a program at n1", 110, PROGRAM), ("daemon n1", 330, DAEMON), ("daemon n2", 560, DAEMON),
         ("daemon n3", 790, DAEMON), ("a program at n3", 970, PROGRAM))  # fmt: skip


def message() -> str:
    """From one program to all others, step by step."""
    drawing = Drawing(
        1080,
        478,
        "How one message travels",
        "Five columns: a program at n1, the daemons of n1, n2 and n3, a program at n3. n1 is a receiver in the"
        " group, n2 leads it, n3 is a server. One: the program gives the message to its daemon. Two: n1 submits it"
        " to n2. Three: n2 gives it the next number, 45, and multicasts it to n1 and n3. Four: n3 holds it, which"
        " makes two with n2; it is stable, so n3 delivers it to its program and tells n2. Five: n2 tells everybody"
        " that 45 is stable, and delivers it. Six: n1 delivers it, too, and the sender sees its own message in its"
        " place in the order.",
    )
    places = [x for _, x, _ in LIVES]
    for words, x, fill in LIVES:
        drawing.rule(x, 74, x, 422)
        drawing.box(x - 72, 18, 144, 34, fill)
        drawing.text(x, 40, words, bold=True)
    for x, role, colour in ((330, "receiver", RECEIVES), (560, "leader", LEADS), (790, "server", SERVES)):
        drawing.pill(x, 54, role, colour)
    sender, n1, n2, n3, reader = places
    drawing.line((sender, 112), (n1, 112))
    drawing.label((sender + n1) / 2, 104, "1  multicast(b“…”)")
    drawing.line((n1, 150), (n2, 150), kind="wire")
    drawing.label((n1 + n2) / 2, 142, "2  Submit")
    drawing.pill(n2, 170, "number 45", LEADS)
    drawing.line((n2, 218), (n1, 218), kind="leads")
    drawing.line((n2, 218), (n3, 218), kind="leads")
    drawing.label((n1 + n2) / 2, 210, "3  Order 45", colour=LEADS)
    drawing.label((n2 + n3) / 2, 210, "3  Order 45", colour=LEADS)
    drawing.pill(n3, 240, "two hold it: stable", SERVES)
    drawing.line((n3, 288), (n2, 288), kind="wire")
    drawing.label((n2 + n3) / 2, 280, "4  Held up to 45")
    drawing.line((n3, 288), (reader, 288))
    drawing.label((n3 + reader) / 2, 280, "4  delivered")
    drawing.line((n2, 346), (n1, 346), kind="leads")
    drawing.line((n2, 346), (n3, 346), kind="leads")
    drawing.label((n1 + n2) / 2, 338, "5  stable up to 45", colour=LEADS)
    drawing.label((n2 + n3) / 2, 338, "5  stable up to 45", colour=LEADS)
    drawing.line((n1, 404), (sender, 404))
    drawing.label((sender + n1) / 2, 396, "6  its own message, 45")
    drawing.text(
        540, 444, "What comes together travels together: one frame carries all that waited.", colour=FAINT, size=12
    )
    return drawing.svg()


PICTURES = {"architecture.svg": architecture, "message.svg": message}
"""File name → what draws it."""


if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (Path(__file__).parent / name).write_text(draw(), encoding="utf-8")
