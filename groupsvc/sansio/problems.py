"""A daemon's ``Problem`` as the error it stands for.

The family decides what is known (failed, unknown, usage), the code which of its errors it is. A code nobody here knows
is no reason to guess: it stays a plain error of its family, with the daemon's text.
"""

from __future__ import annotations

from ..errors import (
    AttributesMismatch,
    Busy,
    Draining,
    Failed,
    GroupExists,
    GroupServiceError,
    NoSuchGroup,
    NotAMember,
    OutcomeUnknown,
    PermissionDenied,
    StaleVersion,
    TimedOut,
    UsageError,
    WouldBlock,
)
from ..views import text_of
from ..wire.client_messages import Problem

HOW_THERE_IS_ONE = "a join without create=False forms it, and subscribe(..., wait=seconds) waits until somebody has"

FAILED_BY_CODE: dict[str, type[Failed]] = {
    "attributes mismatch": AttributesMismatch,
    "busy": Busy,
    "draining": Draining,
    "full": Busy,
    "group exists": GroupExists,
    "no such group": NoSuchGroup,
    "not a member": NotAMember,
    "permission denied": PermissionDenied,
    "stale": StaleVersion,
    "stale version": StaleVersion,
    "timed out": TimedOut,
    "too many clients": Busy,
    "withdrawn": TimedOut,
    "would block": WouldBlock,
}


def error_of(problem: Problem, what: str, *, group: str | None = None, ids: tuple[str, ...] = ()) -> GroupServiceError:
    """The error to raise for a call that was to do ``what``."""
    text = f"could not {what}: {problem.text}"
    match problem.family:
        case "usage":
            return UsageError(text, group=group)
        case "unknown":
            if problem.code != "not known":  # else it was a question, and this is the answer
                text = f"it is not known whether it was possible to {what}: {problem.text}"
            if problem.proposal is not None:
                ids = (text_of(problem.proposal),)
            return OutcomeUnknown(text, ids, group=group)
        case "failed":
            code = problem.code.replace("-", " ").replace("_", " ")
            family = FAILED_BY_CODE.get(code, Failed)
            if family is NoSuchGroup:
                return NoSuchGroup(text, group=group, advice=HOW_THERE_IS_ONE)
            if family is StaleVersion:
                return StaleVersion(text, problem.version, group=group)
            return family(text, group=group)


def no_answer(
    family: type[Failed], what: str, why: str, *, harmless: bool, group: str | None = None, ids: tuple[str, ...] = (),
    advice: str = "",
) -> GroupServiceError:  # fmt: skip
    """The error for a call that nobody answers; ``harmless``: it changes nothing, so nothing happened."""
    if harmless:
        return family(f"could not {what}: {why}", group=group, advice=advice)
    text = f"it is not known whether it was possible to {what}: {why}"
    look = "look whether it has happened before you try again"
    return OutcomeUnknown(text, ids, group=group, advice=f"{advice}; {look}" if advice else look)
