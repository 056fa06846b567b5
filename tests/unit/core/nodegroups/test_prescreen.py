"""Whoever joins a group that is there already gets what it asked for, or is told what differs (GS-22)."""

from __future__ import annotations

import pytest

from groupsvcd.core.nodegroups.group_settings import GroupSettings
from groupsvcd.core.nodegroups.phases import Phase
from groupsvcd.core.nodegroups.prescreen import differences
from groupsvcd.core.parameters import Parameters
from groupsvcd.core.peer_messages import Insert
from groupsvcd.core.views import AttributeValue

from .carriers import GROUP, Carriers, Witness


class Machine(Witness):
    """A user with a state: how many entries there were."""

    def snapshot(self) -> bytes:
        """As text."""
        return str(len(self.entries)).encode()

    def restore(self, seq: int, state: bytes) -> None:
        """The next is the one behind."""
        self._next = seq + 1


def test_a_joiner_with_other_attributes_is_refused_before_it_is_inserted() -> None:
    """The answer names what differs, and both values; nobody was asked to insert it."""
    nodes = Carriers.with_group("DE", replicas=2)
    user = nodes.join("F", replicas=3, on_quorum_lost="dissolve")
    nodes.run(0.5)
    assert [
        "attribute on_quorum_lost is 'continue' (by default) in this group, not 'dissolve'; "
        "attribute replicas is 2 in this group, not 3"
    ] == user.losses
    assert ([], "DE", "none") == (nodes.messages(Insert, "F"), nodes.user("D").names, nodes.roles("F")[0])


def test_a_joiner_that_states_nothing_takes_the_group_as_it_is() -> None:
    nodes = Carriers.with_group("DE", replicas=2, history_entries_max=50)
    user = nodes.join("F")
    nodes.run(0.5)
    assert ([], "DEF") == (user.losses, user.names)
    assert 50 == nodes.part("F").settings.history_entries_max


def test_a_joiner_that_states_what_is_so_by_default_is_let_in() -> None:
    nodes = Carriers.with_group("DE")
    user = nodes.join("F", replicas=3, commit_k=2, delivery="safe", machine=False)
    nodes.run(0.5)
    assert ([], "DEF") == (user.losses, user.names)


def test_of_two_who_form_a_group_at_the_same_time_one_is_refused() -> None:
    """Both found no such group; the directory has one of them form it."""
    nodes = Carriers()
    nodes.boot(*nodes.names)
    nodes.run(2.0)
    users = [nodes.join("D", replicas=2), nodes.join("E", replicas=4)]
    nodes.run(1.0)
    assert 1 == sum(bool(user.joined_at) for user in users)
    assert 1 == sum("attribute replicas is " in "".join(user.losses) for user in users)


def test_a_second_user_on_a_node_is_judged_like_the_first() -> None:
    """Whether the node carries the group already, or is on its way into it."""
    nodes = Carriers.with_group("D", replicas=2)
    second, early, late = Witness(), Witness(), Witness()
    nodes.act("D", lambda groups: groups.join(GROUP, {"replicas": 1}, second))
    first = nodes.join("E")
    nodes.act("E", lambda groups: groups.join(GROUP, {"replicas": 1}, early))
    nodes.run(0.5)
    nodes.act("E", lambda groups: groups.join(GROUP, {"replicas": 2}, late))
    assert ["attribute replicas is 2 in this group, not 1"] == second.losses == early.losses
    assert ([], [], []) == (first.losses, late.losses, nodes.user("D").losses)
    assert late.joined_at


def test_a_joiner_without_a_machine_is_refused_by_members_that_have_one() -> None:
    """It would give others an empty state."""
    nodes = _with_machine()
    user = nodes.join("E")
    nodes.run(0.5)
    assert ["the members of this group have a state machine; join with one"] == user.losses
    assert "D" == nodes.user("D").names


def test_a_joiner_with_a_machine_is_refused_by_members_that_have_none() -> None:
    nodes = Carriers.with_group("D")
    user = Machine()
    nodes.act("E", lambda groups: groups.join(GROUP, {}, user, user))
    nodes.run(0.5)
    assert ["the members of this group have no state machine; join without one"] == user.losses
    assert "D" == nodes.user("D").names


def test_a_node_has_one_machine_in_a_group_and_other_users_may_watch() -> None:
    """A second machine would not be restored with the first."""
    nodes = _with_machine()
    second, watcher = Machine(), Witness()
    nodes.act("D", lambda groups: groups.join(GROUP, {}, second, second))
    nodes.act("D", lambda groups: groups.join(GROUP, {}, watcher))
    nodes.submit("D", "a")
    nodes.run(0.5)
    assert ["this node has its state machine in this group already; join without one"] == second.losses
    assert ["a"] == watcher.texts


def test_a_machine_whose_user_has_left_is_asked_for_no_state() -> None:
    """Nobody applies entries to it any more: what it would give is old."""
    nodes = _with_machine()
    watcher = Witness()
    nodes.act("D", lambda groups: groups.join(GROUP, {}, watcher))
    nodes.leave("D")
    assert nodes.part("D").participants.machine is None
    assert not nodes.part("D").can_snapshot
    assert [] == watcher.losses


def test_who_rejoins_after_its_node_has_left_is_judged_anew() -> None:
    """It joined while the node was leaving; what it asked for is not forgotten."""
    nodes = Carriers.with_group("DE", replicas=2)
    nodes.leave("E")
    user = nodes.join("E", replicas=3)
    nodes.run(2.0)
    assert ["attribute replicas is 2 in this group, not 3"] == user.losses


@pytest.mark.parametrize(
    "stated, found",
    [
        ({"colour": 1}, ["attribute colour is not known"]),
        ({"durable": 0}, ["attribute durable is false (by default) in this group, not 0"]),
        ({"machine": True}, ["attribute machine is false (by default) in this group, not true"]),
        ({"data_k": 2, "checkpoint_k": 2, "sync_window": 5, "checkpoint_every": 1_000}, []),
    ],
)
def test_values_are_compared_as_they_are(stated: dict[str, AttributeValue], found: list[str]) -> None:
    assert found == differences(stated, GroupSettings({}, Parameters(node="A")))


def _with_machine() -> Carriers:
    nodes = Carriers()
    nodes.boot(*nodes.names)
    nodes.run(2.0)
    user = Machine()
    nodes.users["D", GROUP] = user
    nodes.act("D", lambda groups: groups.join(GROUP, {}, user, user))
    nodes.run(0.5)
    return nodes


def test_of_two_machines_that_wait_for_their_node_one_is_refused() -> None:
    """The node comes back from a restart and is no member yet: whoever asked first has its machine there."""
    nodes = _with_machine()
    nodes.part("D").participants.set_machine_aside()
    nodes.part("D").participants.applications.clear()
    nodes.part("D").users.clear()
    nodes.part("D").phase = Phase.RETURNING
    first, second = Machine(), Machine()
    nodes.act("D", lambda groups: groups.join(GROUP, {}, first, first))
    nodes.act("D", lambda groups: groups.join(GROUP, {}, second, second))
    assert ([], ["this node has its state machine in this group already; join without one"]) == (
        first.losses,
        second.losses,
    )
