"""What a new provider with a state machine begins with: a checkpoint that is in the stream, and what came since."""

from __future__ import annotations

import pytest

from groupsvcd.core.groups import archive as rules
from groupsvcd.core.groups import commands as cmd
from groupsvcd.core.groups.archive import Archive
from groupsvcd.core.groups.process_group import ProcessGroup

from .assembly import Assembly, process

EVERY = 4


def _two(**attributes: bool) -> Assembly:
    group = Assembly(state_machine=True, checkpoint_every=EVERY, **attributes)
    group.join("A1", "B1")
    return group


def _archive(group: Assembly) -> Archive:
    assert group.group.archive is not None
    return group.group.archive


def _tail(group: Assembly) -> list[bytes]:
    return [payload for _, _, payload in _archive(group).since(0)]


def _block(group: Assembly, name: str, at: int, index: int, block: bytes) -> None:
    group.entry(name[0], cmd.StoreBlock(process(name)[2], at, index, block))


def _seal(group: Assembly, name: str, at: int, count: int) -> None:
    group.entry(name[0], cmd.SealCheckpoint(process(name)[2], at, count))


def test_messages_are_kept_in_order_plain_ones_and_those_by_ballot() -> None:
    """SAM-08."""
    group = _two()
    group.say("A1", b"one")
    group.send("B1", b"two")
    group.say("A1", b"three")
    assert [b"one", b"two", b"three"] == _tail(group)


def test_a_group_without_machines_keeps_nothing() -> None:
    group = Assembly()
    group.join("A1")
    group.say("A1", b"one")
    assert group.group.archive is None


def test_a_sealed_checkpoint_replaces_the_older_one_and_what_came_before_it() -> None:
    """SAM-07."""
    group = _two()
    for payload in (b"one", b"two"):
        group.say("A1", payload)
    at = group.group.seq
    group.say("B1", b"three")
    _block(group, "A1", at, 0, b"first")
    _block(group, "A1", at, 1, b"second")
    assert (0, ()) == (_archive(group).at, _archive(group).blocks)
    _seal(group, "A1", at, 2)
    assert (at, (b"first", b"second")) == (_archive(group).at, _archive(group).blocks)
    assert [b"three"] == _tail(group)
    _seal(group, "B1", at - 1, 0)
    assert (at, (b"first", b"second")) == (_archive(group).at, _archive(group).blocks)


@pytest.mark.parametrize("how", ["dies", "its node fails", "leaves"])
def test_who_goes_half_way_leaves_nothing_behind(how: str) -> None:
    group = _two()
    group.say("B1", b"one")
    at = group.group.seq
    _block(group, "A1", at, 0, b"first")
    if how == "dies":
        group.die("A1")
    elif how == "its node fails":
        group.fail_nodes("A")
    else:
        group.leave("A1")
    _seal(group, "A1", at, 1)
    assert (0, (), [b"one"]) == (_archive(group).at, _archive(group).blocks, _tail(group))
    assert () == _archive(group).stored().drafts


def test_blocks_that_do_not_fit_together_are_no_checkpoint() -> None:
    group = _two()
    group.say("A1", b"one")
    at = group.group.seq
    _block(group, "A1", at, 0, b"first")
    _block(group, "A1", at, 2, b"third")
    _seal(group, "A1", at, 2)
    assert 0 == _archive(group).at
    _block(group, "A1", group.group.seq + 5, 0, b"of the future")
    _seal(group, "A1", group.group.seq + 5, 1)
    assert 0 == _archive(group).at
    _block(group, "A1", at, 0, b"again")
    _seal(group, "A1", at, 1)
    assert (at, (b"again",)) == (_archive(group).at, _archive(group).blocks)


def test_a_checkpoint_that_is_too_large_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "CHECKPOINT_BYTES_MAX", 10)
    group = _two()
    group.say("A1", b"one")
    at = group.group.seq
    for index in range(3):
        _block(group, "A1", at, index, b"12345")
    _seal(group, "A1", at, 3)
    assert (0, ()) == (_archive(group).at, _archive(group).stored().drafts)


def test_the_oldest_living_provider_is_the_scribe_and_half_a_tail_later_the_next_one() -> None:
    """So nobody waits for a process that hangs."""
    group = _two()
    turns: list[tuple[int, str]] = []
    for number in range(1, 3 * EVERY + 1):
        group.say("A1", b"%d" % number)
        turn = group.group.scribe_turns
        if turn > (turns[-1][0] if turns else 0):
            scribe = group.group.scribe(turn)
            assert scribe is not None
            turns.append((turn, scribe[0]))
    assert [(1, "A"), (2, "B"), (3, "A"), (4, "B"), (5, "A")] == turns
    group.die("A1")
    assert process("B1") == group.group.scribe(1)


def test_few_large_messages_call_for_a_checkpoint_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "TAIL_BYTES_WANTED", 100)
    group = _two()
    group.say("A1", b"x" * 99)
    assert 0 == group.group.scribe_turns
    group.say("A1", b"x")
    assert 1 == group.group.scribe_turns


def test_the_checkpoint_of_a_large_state_is_taken_when_as_much_has_been_said_again() -> None:
    """The stream carries at most about twice what the providers say."""
    group = _two()
    group.say("A1", b"one")
    at = group.group.seq
    _block(group, "A1", at, 0, b"x" * 100 * rules.MESSAGE_BYTES)
    _seal(group, "A1", at, 1)
    for number in range(99):
        group.say("A1", b"%d" % number)
    assert 0 == group.group.scribe_turns
    group.say("A1", b"the hundredth")
    assert 1 == group.group.scribe_turns


def test_if_nobody_takes_a_checkpoint_the_tail_is_dropped_and_the_next_one_makes_it_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A bound on what every member keeps; who is in misses nothing."""
    monkeypatch.setattr(rules, "TAIL_MESSAGES_MIN", EVERY)
    group = _two()
    for number in range(rules.TAIL_TIMES_MAX * EVERY + 3):
        group.say("A1", b"%d" % number)
    assert not _archive(group).is_whole
    assert len(_archive(group)) <= EVERY
    assert group.group.scribe_turns >= 1
    too_old = _archive(group).begins - 1
    _seal(group, "A1", too_old, 0)
    assert not _archive(group).is_whole
    at = group.group.seq
    _seal(group, "B1", at, 0)
    assert _archive(group).is_whole
    assert (at, []) == (_archive(group).at, _tail(group))


def test_a_fast_writer_does_not_outrun_the_checkpoints_of_a_group_that_takes_them_often() -> None:
    """SAM-08: what it says while one is on its way is kept, however often they are to be taken."""
    group = _two()
    for number in range(rules.TAIL_MESSAGES_MIN):
        group.say("A1", b"%d" % number)
    assert _archive(group).is_whole
    group.say("A1", b"one too many")
    assert not _archive(group).is_whole


def test_how_messages_were_batched_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are handed up as they arrived: the state must not depend on that."""
    monkeypatch.setattr(rules, "TAIL_MESSAGES_MIN", EVERY)
    one_by_one, at_once = Archive(), Archive()
    payloads = [b"%d" % number for number in range(3 * rules.TAIL_TIMES_MAX * EVERY)]
    for seq, payload in enumerate(payloads, 1):
        one_by_one.keep(seq, process("A1"), (payload,), EVERY)
    at_once.keep(1, process("A1"), payloads, EVERY)
    assert one_by_one.stored() == at_once.stored()


def test_checkpoint_tail_and_drafts_are_in_a_checkpoint_of_the_stream_and_its_bytes_are_the_same() -> None:
    """The service compares them: the same entries, the same bytes, also at who began with a checkpoint."""
    group = _two()
    for number in range(3):
        group.say("A1", b"%d" % number)
    at = group.group.seq
    _block(group, "A1", at, 0, b"first")
    _seal(group, "A1", at, 1)
    copy = ProcessGroup({})
    copy.restore(group.group.snapshot())
    copy_of = Assembly()
    copy_of.group, copy_of._seq = copy, copy.seq
    for one in (group, copy_of):
        one.say("B1", b"more")
        _block(one, "B1", one.group.seq, 0, b"draft")
    assert group.group.snapshot() == copy.snapshot()
    assert b"first" in copy.snapshot()
    assert b"draft" in copy.snapshot()


def test_the_archive_goes_with_the_last_provider_unless_the_group_is_durable() -> None:
    """GS-31, as the state value."""
    for durable, kept in ((False, []), (True, [b"one"])):
        group = _two(durable=durable)
        group.say("A1", b"one")
        group.fail_nodes("A", "B")
        group.join("C1")
        assert kept == _tail(group)


def test_the_messages_of_before_the_group_was_empty_are_not_kept() -> None:
    """SAM-15. A1 and B1 fail; C1, which waited, joins with the entry that removes them, and begins with nothing.

    Who goes on from before is told so.
    """
    group = _two(exclusive=True)
    group.gone = set()
    group.say("A1", b"one")
    last = group.group.seq
    group.fail_nodes("A", "B")
    group.join("C1")
    group.gone = None
    group.wait(2.0)
    empty = group.group.seq
    assert "C1" == group.names
    group.say("C1", b"two")
    assert last < empty == _archive(group).begins
    assert (empty, ()) == (_archive(group).at, _archive(group).blocks)
    assert _archive(group).is_whole
    assert [b"two"] == _tail(group)
    at = group.group.seq
    _block(group, "C1", at, 0, b"state")
    _seal(group, "C1", at, 1)
    assert (at, (b"state",)) == (_archive(group).at, _archive(group).blocks)
