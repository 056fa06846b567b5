"""G1 for who asked for what came before it: those messages, all of them, and nothing else.

B joins after entry 40 and asks for the messages since 25. Before its own ``Joined`` it is told every message that any
provider was told between the two, in the same words. If they are no longer kept its join fails, and says so; and so it
does if entry 25 is one of an earlier group of that name. Who asks for all that is kept begins somewhere, and misses
nothing from there on.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from .application_stories import Stories, Story
from .verdict import Violation

Known = dict[int, tuple[int, ...]]
"""Entry -> digests of the messages that follow from it."""


def told_what_came_before(stories: Stories) -> Iterator[Violation]:
    """Every story of a provider that asked for earlier messages, and of those who did not."""
    for group, those in stories.groups():
        known: Known = {}
        for story in those:
            for told in story.whole:
                is_partly = told.seq == story.view["seq"] or (story.ended is not None and told is story.told[-1])
                if story.provider and not is_partly:
                    digests = tuple(line.crc for line in told.lines if line.args["kind"] == "message")
                    known.setdefault(told.seq, digests)
        for story in those:
            yield from _judge(story, group, known)


def _judge(story: Story, group: int, known: Known) -> Iterator[Violation]:
    found: Known = {}
    for line in story.earlier:
        found[line.seq] = (*found.get(line.seq, ()), line.crc)
    seqs = list(found)
    where = f"{story.title}, which joined group {group} with entry {story.view['seq']} and asked for {story.since}"
    last = story.earlier[-1].i if story.earlier else story.began.i
    if story.since_in not in (None, group):
        yield Violation("G1", f"{where}, an entry of group {story.since_in}, is let in", last)
    if seqs and story.since is None:
        yield Violation("G1", f"{where}, is told of {seqs[:5]}", last)
        return
    if any(line.args["kind"] != "message" for line in story.earlier):
        yield Violation("G1", f"{where}, is told more than messages before it is in", last)
    if any(after.seq < before.seq for before, after in pairwise(story.earlier)):
        yield Violation("G1", f"{where}, is told of {seqs} in this order", last)
    for seq, digests in found.items():
        is_whole = story.told or seq != seqs[-1]  # else it may not have read all of it
        if seq < story.view["seq"] and known.get(seq, digests)[: None if is_whole else len(digests)] != digests:
            yield Violation("G1", f"{where}, is told something else of {seq} than others", last)
    if story.table or story.since is None:
        return  # what a machine applies before it is in nobody reads
    begins = story.since if isinstance(story.since, int) else seqs[0] - 1 if seqs else int(story.view["seq"])
    ends = int(story.view["seq"]) if story.told else seqs[-1] if seqs else begins
    missed = sorted(seq for seq, digests in known.items() if begins < seq < ends and digests and seq not in found)
    if missed:
        yield Violation("G1", f"{where}, is not told of {missed[:5]}", last)
