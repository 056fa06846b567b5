"""What stands inside of messages and in logs: entries, commands, rulings. It comes from nodes, which are believed."""

from __future__ import annotations

from groupsvcd.core.domain import commands as domain_commands
from groupsvcd.core.groups import commands as group_commands
from groupsvcd.core.nodegroups import controls
from groupsvcd.core.stream import entries
from tests.fuzz.family import Family, round_trip
from tests.unit.directory.scene import DOMAIN, VOTERS, Scene

COMMANDS = tuple(
    map(
        domain_commands.encode_command,
        (
            domain_commands.FormDomain(DOMAIN, VOTERS, {"domain": "test"}),
            domain_commands.ViewStarted(2, "b", VOTERS, 2),
            domain_commands.NodeUp("x", 2, "disk-x", "tcp://x", voter=False),
            domain_commands.NodeDown("x", 1, early=False),
            domain_commands.NodeGone("x", 1),
            domain_commands.FormGroup("jobs", "x", 1, {"durable": True, "replicas": 3, "hosts": ["x"]}),
            domain_commands.VoterReplaced("b", "new"),
            domain_commands.SetConfig("key", "value", 0),
        ),
    )
)


def order_anything(data: bytes) -> None:
    """Whatever an entry of the domain is, every voter has an answer; what is refused changes only what was answered."""
    scene = Scene()
    scene.up("a", "x")
    tables = (scene.directory.nodes.all(), scene.directory.groups.all(), scene.directory.settings.stored())
    answer = scene.directory.apply_entry(scene.seq + 1, ("x", 1), 1, data)
    assert answer == scene.directory.answer_for(("x", 1), 1) or answer["ok"]
    if not answer["ok"]:
        assert tables == (scene.directory.nodes.all(), scene.directory.groups.all(), scene.directory.settings.stored())
    assert scene.directory.snapshot() == type(scene.directory).restore(scene.directory.snapshot()).snapshot()


INSIDE = Family(
    name="inside",
    about="entries, commands of the domain and of groups, rulings, control entries",
    decoders=(
        "groupsvc.wire.codec:Reader",
        "groupsvcd.core.stream.entries:_decoder",
        "groupsvcd.core.stream.entries:_reference_decoder",
        "groupsvcd.core.domain.commands:_decoder",
        "groupsvcd.core.groups.commands:_command_reader",
        "groupsvcd.core.groups.commands:_ruling_reader",
        "groupsvcd.core.nodegroups.controls:_reader",
    ),
    readers=(
        (round_trip(entries.decode_entry), (entries.encode_entry("n1", 7, 1, b"body"),)),
        (round_trip(entries.decode_reference), (entries.encode_reference("n1", 7, 1, 10_000, 2**32 - 1),)),
        (round_trip(domain_commands.decode_command), COMMANDS),
        (order_anything, COMMANDS),
        (
            round_trip(group_commands.decode_command),
            tuple(
                map(
                    group_commands.encode,
                    (
                        group_commands.ProvidersFailed(((1, "failure"),)),
                        group_commands.StoreBlock(1, 5, 0, b"block"),
                        group_commands.Bring(1, "barrier", 2, b"payload"),
                        group_commands.Withdraw(3),
                    ),
                )
            ),
        ),
        (
            round_trip(group_commands.decode_ruling),
            (
                group_commands.encode(group_commands.NodesGone((("n1", 7),))),
                group_commands.encode(group_commands.WindowEnded("joins", 7)),
            ),
        ),
        (
            round_trip(controls.decode_control),
            (
                controls.encode_control(controls.ViewStarted(2, "n1", (("n1", 7), ("n2", "disk")), 2, 9)),
                controls.encode_control(controls.NodeInserted(("n1", 7), 1, 5)),
                controls.encode_control(controls.NodesFailed((("n1", 7),))),
            ),
        ),
    ),
)
