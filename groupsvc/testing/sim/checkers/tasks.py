"""R6: tasks at a barrier that waits: one attempt of each rank in every round, and none that was replaced.

There are as many parties as ranks. Whoever comes says its rank, its attempt, and up to which round it knows. It has put
out older attempts of its rank before it came, and then asked how far the others are. What must hold:

- *A round is released when every rank has come to it*, and each is listed once.
- *Nothing is missed, and nothing done twice*: an attempt that knows rounds up to 56 is released from round 57, whether
  it was in round 56 itself or came in the place of who was. So from its question on no round ended without it. It is
  told of no end of an earlier round.
- *Who was replaced does not count*: of each rank, an attempt that another one has followed is in no later round. (It
  need not be an older one. Who was started first may come when a newer one has come and died.)
- *Who was replaced learns it*: when all is well, no two attempts of one rank are in the group.

Behind a view that may have lost entries numbers go on from its fence: who comes then knows none that is near.

That who was replaced is never released with a round that ended after it had gone is R1; that all who were in a round
have one end of it, R2; that a task which asks what came before is told the same, R5; that nobody waits for ever, R4.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..application_ops import FENCE_BITS
from .application_stories import Story
from .barriers import Barriers, Round, Visit
from .invocations import call_key
from .verdict import Violation


def r6(found: Barriers, converged: bool) -> Iterator[Violation]:
    """Every rank once in each round, none missed, none done twice, and nobody there who was replaced."""
    yield from _every_rank_once(found)
    yield from _one_after_the_other(found)
    if converged:
        yield from _nobody_twice(found)


def _is_of_task(visit: Visit) -> bool:
    return "rank" in visit.call.invoke.args


def _every_rank_once(found: Barriers) -> Iterator[Violation]:
    for rounds in found.in_order():
        present: dict[int, int] = {}  # by rank, the attempt that was in the last round
        followed: set[int] = set()
        for one in rounds:
            visits = _listed(found, one)
            if one.end != "released" or not visits or not all(map(_is_of_task, visits)):
                continue
            args = [visit.call.invoke.args for visit in visits]
            ranks = sorted(int(each["rank"]) for each in args)
            if ranks != list(range(int(args[0]["parties"]))):
                text = f"{one.title} is released with ranks {ranks} of {args[0]['parties']}"
                yield Violation("R6", text, one.at.i)
            for each in args:
                rank, attempt = int(each["rank"]), int(each["attempt"])
                if attempt in followed:
                    text = (
                        f"{one.title} counts attempt {attempt} of rank {rank}, which attempt {present[rank]} followed"
                    )
                    yield Violation("R6", text, one.at.i)
                if present.setdefault(rank, attempt) != attempt:
                    followed.add(present[rank])
                    present[rank] = attempt


def _listed(found: Barriers, one: Round) -> list[Visit]:
    visits = [found.brought.get((one.place, provider, crc)) for provider, crc in one.listed]
    return [visit for visit in visits if visit is not None]


def _one_after_the_other(found: Barriers) -> Iterator[Violation]:
    asked: set[int] = set()  # attempts that have asked how far the others are
    for visit in found.visits:
        if not _is_of_task(visit) or not visit.result or visit.call.end is None:
            continue
        args, result = visit.call.invoke.args, visit.result
        number, after = int(result["round"]), int(args["after"])
        is_question = int(args["attempt"]) not in asked
        asked.add(int(args["attempt"]))
        if is_question or number >> FENCE_BITS > after >> FENCE_BITS or found.stories.is_void(visit.call.end):
            continue
        is_nothing = result["end"] == "reset" and not result["arrived"]  # it was not broken, and there was no round
        if number < after + (not is_nothing) or (result["end"] == "released" and number != after + 1):
            text = f"{visit.title}, attempt {args['attempt']} of rank {args['rank']}, knows rounds up to {after}"
            yield Violation("R6", f"{text}, and round {number} is {result['end']} for it", visit.call.end.i)


def _nobody_twice(found: Barriers) -> Iterator[Violation]:
    there: dict[tuple[int, int], Story] = {}
    for group, stories in found.stories.groups():
        for story in stories:
            join = found.stories.calls[call_key(story.began)].invoke
            if story.ended is not None or "rank" not in join.args:
                continue
            other = there.setdefault((group, int(join.args["rank"])), story)
            if other is not story:
                text = f"{other.title} and {story.title} are both there as rank {join.args['rank']}"
                yield Violation("R6", text, story.began.i)
