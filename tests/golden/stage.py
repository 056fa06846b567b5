"""Plays a golden script: a text file of commands, each followed by what it brought about.

    # What this scene is about.
    domain nodes=3
    ----
    three voters: n1 n2 n3

    run until name-server
    ----
       0.031 n2 -> all: Canvass(…)

A command is one or more lines; ``----`` ends it; what follows up to the next empty line is the transcript. The
commands:

    domain nodes=4 voters=3 [seed=7] [durable=no]   makes the world; the first command; nothing runs yet
    domain nodes=7 about=groups                     the same, told for those who want to know about groups
    configure n3 lease=3.0                          before its start, another parameter or timer for one node
    start n1 n2 · restart n1                        processes begin
    run 2.0 · run until name-server [not n1]        let time pass (at most 30 s)
    crash n1 · power-off n1 · pause n1 · resume n1
    lose-disk n2                                    ends the process, too; a start finds a blank directory
    cut n1>n2 n2>n1 · isolate n1 · heal
    drop Promised n3>n1                             this kind on this link, until heal
    call n2 set key=value [if=3] · call n2 get key · call n2 form group · call n2 look-up group · call n1 hand-over n2
    domain nodes=6 about=applications               the same, told for those who write applications; see ``cast``
    a opens at n4 · a joins db · b votes db approve what applications do; their verbs are in ``cast``
    assemble db a@n4 b@n5 state_phases=n            these have joined, one after the other: the scene is set
    join n4 jobs [replicas=2] · leave n4 jobs       a user on n4 takes part in a group, or no longer
    submit n4 jobs "a" "b" · send n7 jobs "x"       a user submits; somebody who takes no part does
    show · show groups                              what every process says of itself, or of its groups
    show beats · hide beats                         whether everything that repeats is written down
    show votes · hide votes                         whether votes on their way to a leader are (about=applications)
    hide everything · show everything               what only sets the scene is not written down at all

The world is calm: every link takes one millisecond, clocks agree, seeds are fixed, and the wall clock begins at 0.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from groupsvc.testing.sim import Play, Weather, World
from groupsvc.testing.sim.network import Packet, between
from groupsvc.testing.sim.world import ENGINE
from groupsvcd.core.parameters import Parameters, Timers
from tests.golden.application_play import ApplicationPlay
from tests.golden.cast import Cast
from tests.golden.group_play import GroupPlay
from tests.golden.group_users import GroupUsers

STILL = Weather(delay_min=0.001, delay_spread=0.0)
RUN_S_MAX = 30.0
_TIMERS = frozenset(field.name for field in attrs.fields(Timers))
_PARAMETERS = frozenset(field.name for field in attrs.fields(Parameters))


@attrs.frozen
class Scene:
    """One command block: the lines before it that are for people, its commands, and its transcript."""

    comments: tuple[str, ...]
    commands: tuple[str, ...]
    transcript: tuple[str, ...]


class BadScript(Exception):
    """The script itself is wrong; the text says where."""


def scenes(text: str) -> Iterator[Scene]:
    """The scenes of a script."""
    for block in text.strip("\n").split("\n\n"):
        lines = block.split("\n")
        comments = tuple(line for line in lines if line.startswith("#"))
        rest = [line for line in lines if not line.startswith("#")]
        if "----" in rest:
            at = rest.index("----")
            yield Scene(comments, tuple(rest[:at]), tuple(rest[at + 1 :]))
        else:
            yield Scene(comments, tuple(rest), ())


def perform(text: str, *, engine: str = ENGINE) -> str:
    """The script with the transcripts that it really brings about."""
    stage = Stage(engine)
    blocks = []
    for scene in scenes(text):
        lines = list(scene.comments)
        if scene.commands:
            stage.lines.clear()
            for command in scene.commands:
                stage.command(command)
            stage.close()
            lines += [*scene.commands, "----", *stage.lines]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


class Stage:
    """The world of one script and the commands that change it."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.lines: list[str] = []
        self.play = Play(self.write)
        self.settings: dict[str, dict[str, Any]] = {}
        self.options: dict[str, str] = {}
        self.made: World | None = None
        self.made_users: GroupUsers | None = None
        self.made_cast: Cast | None = None
        self.hidden = False
        self.callers = 0
        self.sieves: list[tuple[str, str, str]] = []

    def write(self, line: str) -> None:
        """One more line of the transcript."""
        if not self.hidden:
            self.lines.append(line)

    @property
    def world(self) -> World:
        """The world, made at first use."""
        if self.made is None:
            if not self.options:
                raise BadScript("the first command must be: domain nodes=…")
            nodes = int(self.options.get("nodes", "3"))
            self.made = World(
                int(self.options.get("seed", "1")),
                nodes,
                voters=int(self.options.get("voters", str(min(nodes, 3)))),
                parameters={"durable": self.options.get("durable", "yes") == "yes"},
                parameters_of=self.settings,
                weather=STILL,
                engine=self.engine,
                drift=False,
                sync_spread_s=0.0,
                start_within_s=None,
                wall_base=0.0,
                halt_is_failure=False,
                play=self.play,
            )
        return self.made

    @property
    def users(self) -> GroupUsers:
        """The users of groups, from the first of them on."""
        if self.made_users is None:
            if not isinstance(self.play, GroupPlay):
                raise BadScript("a script with users of groups begins with: domain nodes=… about=groups")
            self.made_users = GroupUsers(self.world, self.play)
        return self.made_users

    @property
    def cast(self) -> Cast | None:
        """The applications, if this is a play of applications."""
        if self.made_cast is None and isinstance(self.play, ApplicationPlay):
            self.made_cast = Cast(self.world, self.play)
        return self.made_cast

    def close(self) -> None:
        """A scene is over."""
        if isinstance(self.play, ApplicationPlay):
            self.play.close()

    def command(self, line: str) -> None:
        """Obey one line."""
        verb, *words = shlex.split(line)
        commands: dict[str, Callable[[list[str]], None]] = {
            "domain": self.domain,
            "configure": self.configure,
            "start": self.start,
            "restart": self.start,
            "run": self.run,
            "crash": lambda names: self.each(names, lambda node: node.crash("killed")),
            "power-off": lambda names: self.each(names, lambda node: node.crash("power loss", power=True)),
            "pause": lambda names: self.each(names, lambda node: node.pause()),
            "resume": lambda names: self.each(names, lambda node: node.resume()),
            "lose-disk": self.lose_disk,
            "cut": lambda links: self.world.network.cut([_link(link) for link in links]),
            "isolate": self.isolate,
            "drop": self.drop,
            "heal": self.heal,
            "call": self.call,
            "join": lambda words: self.users.join(words),
            "leave": lambda words: self.users.leave(words),
            "submit": lambda words: self.users.submit(words),
            "send": lambda words: self.users.send(words),
            "assemble": self.assemble,
            "show": self.show,
            "hide": self.hide,
        }
        if verb not in commands and self.options and self.cast is not None and self.cast.obeys([verb, *words]):
            return
        if verb not in commands:
            raise BadScript(f"no command {verb!r} in line {line!r}")
        commands[verb](words)
        self.play.release()
        if self.made is not None and self.made.failures:
            failure = self.made.failures[0]
            self.lines.append(f"FAILED {failure.invariant}: {failure.text}")

    def domain(self, words: list[str]) -> None:
        """Say how large the world is."""
        self.options = dict(word.split("=", 1) for word in words)
        if self.options.get("about") == "groups":
            self.play = GroupPlay(self.write)
        elif self.options.get("about") == "applications":
            self.play = ApplicationPlay(self.write)

    def configure(self, words: list[str]) -> None:
        """Give one node a parameter of its own."""
        if self.made is not None:
            raise BadScript("configure must come before the first start")
        name, *settings = words
        of_node = self.settings.setdefault(name, {})
        for setting in settings:
            key, value = setting.split("=", 1)
            if key in _TIMERS:
                of_node["timers"] = attrs.evolve(of_node.get("timers", Timers()), **{key: float(value)})
            elif key in _PARAMETERS:
                of_node[key] = _value(key, value)
            else:
                raise BadScript(f"no parameter {key!r}")

    def assemble(self, words: list[str]) -> None:
        """Have applications join a group; not a word about it."""
        group, *rest = words
        cast = self.cast
        if cast is None:
            raise BadScript("a script with applications begins with: domain nodes=… about=applications")
        self.close()
        self.hidden, was_hidden = True, self.hidden
        settings = [word for word in rest if "=" in word]
        for name, node in (word.split("@") for word in rest if "@" in word):
            cast.obeys([name, "opens", "at", node])
            self.run(["0.01"])
            cast.obeys([name, "joins", group, *settings])
            self.run(["1.0"])
        self.close()
        self.hidden = was_hidden

    def each(self, names: list[str], do: Callable[[Any], None]) -> None:
        """Do something to every named node."""
        for name in names:
            do(self.world.nodes[name])

    def start(self, names: list[str]) -> None:
        """Begin processes, all at this moment."""
        self.each(names, lambda node: node.start())

    def run(self, words: list[str]) -> None:
        """Let time pass."""
        world = self.world
        if words[0] != "until":
            world.run(until=world.t + float(words[0]))
            return
        besides = set(words[3:])
        world.run_until(lambda: (world.name_server() or "") not in {"", *besides}, within=RUN_S_MAX, every=0.01)
        self.play.line(f"{world.t:8.3f} name server: {world.name_server()}")

    def lose_disk(self, names: list[str]) -> None:
        """Take the state directory away."""

        def lose(node: Any) -> None:
            node.crash("lost its disk")
            node.disk.make_blank()

        self.each(names, lose)

    def isolate(self, names: list[str]) -> None:
        """Cut a node off from all others."""
        for name in names:
            self.world.network.cut(between([name], [other for other in self.world.names if other != name]))

    def drop(self, words: list[str]) -> None:
        """Lose one kind of message on some links."""
        kind, *links = words
        self.sieves += [(kind, *_link(link)) for link in links]
        self.world.network.sieve = self._drops

    def _drops(self, source: str, target: str, packet: Packet) -> bool:
        kinds = {kind for kind, a, b in self.sieves if (a, b) == (source, target)}
        if not kinds:
            return False
        event = packet.open()
        return event is not None and any(type(message).__name__ in kinds for message in event.messages)

    def heal(self, words: list[str]) -> None:
        """All links work again; processes and disks stay as they are."""
        self.sieves.clear()
        self.world.network.sieve = None
        self.world.network.heal_all()

    def call(self, words: list[str]) -> None:
        """Have a client of a node ask something, and wait for the answer."""
        name, verb, *rest = words
        world = self.world
        options = dict(word.split("=", 1) for word in rest if "=" in word)
        if verb == "set":
            key, value = rest[0].split("=", 1)
            op, args = "config_set", {"key": key, "value": value, "if_version": int(options.get("if", "0"))}
        elif verb == "get":
            op, args = "config_get", {"key": rest[0]}
        elif verb == "form":
            op, args = "form", {"group": rest[0]}
        elif verb == "look-up":
            op, args = "look_up", {"group": rest[0]}
        elif verb == "hand-over":
            op, args = "hand_over", {"to": rest[0]}
        else:
            raise BadScript(f"a client cannot {verb!r}")
        self.callers += 1
        client = world.clients.client_at(world.nodes[name], f"client-{self.callers}")
        client.ask(op, args, 3.0)
        world.run_until(lambda: client.call is None, within=10.0, every=0.005)

    def show(self, words: list[str]) -> None:
        """Write down what every process says of itself."""
        if words == ["beats"]:
            self.play.steady = True
            return
        if words == ["votes"] and isinstance(self.play, ApplicationPlay):
            self.play.shows_votes = True
            return
        if words == ["groups"]:
            self.play.release()
            self.lines += self.users.status()
            return
        if words == ["everything"]:
            self.play.release()
            self.close()
            self.hidden = False
            return
        for name, node in self.world.nodes.items():
            status = node.status()
            if status is None:
                self.lines.append(f"  {name}: {'stands still' if node.running else 'down'}")
                continue
            up = " ".join(line.name for line in status.nodes if line.status == "up")
            text = f"  {name}: {status.role}, {status.election}, follows {status.name_server or 'nobody'}"
            text += f", epoch {status.epoch}, up: {up or 'none'}"
            text += ", suspended" if status.suspended else ""
            text += f", trouble: {status.trouble}" if status.trouble else ""
            self.lines.append(text)

    def hide(self, words: list[str]) -> None:
        """Leave out again what repeats, or everything."""
        if words == ["everything"]:
            self.play.release()
            self.close()
            self.hidden = True
        elif words == ["votes"] and isinstance(self.play, ApplicationPlay):
            self.play.shows_votes = False
        else:
            self.play.steady = False


def _link(text: str) -> tuple[str, str]:
    source, target = text.split(">")
    return source, target


def _value(key: str, text: str) -> Any:
    if text in ("yes", "no"):
        return text == "yes"
    if key in ("form_without", "voters"):
        return tuple(text.split(","))
    return int(text) if text.lstrip("-").isdigit() else text
