"""What a group can be asked to be: names, kinds and ranges, and all that is wrong in one answer (GS-22)."""

from __future__ import annotations

import pytest

from groupsvcd.core.domain.attributes import ATTRIBUTES, problem_with_attributes
from groupsvcd.core.domain.commands import FormGroup
from groupsvcd.core.domain.limits import ATTRIBUTES_MAX
from groupsvcd.core.views import AttributeValue

from .scene import Scene

RIGHT: list[dict[str, AttributeValue]] = [
    {},
    {"replicas": 1, "commit_k": 1, "data_k": 1, "checkpoint_k": 1},
    {"replicas": 32, "commit_k": 32, "data_k": 32, "checkpoint_k": 32},
    {"commit_k": 3},
    {"durable": True, "on_quorum_lost": "wait"},
    {"durable": False, "on_quorum_lost": "dissolve"},
    {"on_quorum_lost": "wait"},
    {"delivery": "fast", "sync_window": 1, "machine": True},
    {"inline_bytes_max": 0, "checkpoint_every": 1, "logical_lifetime": 1},
    {"history_entries_max": 1, "history_bytes_max": 1024},
]

WRONG: list[tuple[str, AttributeValue, str]] = [
    ("replicas", 0, "attribute replicas = 0 must be a whole number from 1 to 32"),
    ("replicas", 33, "attribute replicas = 33 must be a whole number from 1 to 32"),
    ("replicas", True, "attribute replicas = true must be a whole number from 1 to 32"),
    ("replicas", 2.0, "attribute replicas = '2.0' must be a whole number from 1 to 32"),
    ("commit_k", 4, "attribute commit_k = 4 must be a whole number from 1 to replicas, which is 3"),
    ("data_k", 0, "attribute data_k = 0 must be a whole number from 1 to replicas, which is 3"),
    ("checkpoint_k", 9, "attribute checkpoint_k = 9 must be a whole number from 1 to replicas, which is 3"),
    ("checkpoint_every", 0, "attribute checkpoint_every = 0 must be a whole number from 1 to 1000000"),
    ("inline_bytes_max", -1, "attribute inline_bytes_max = -1 must be a whole number from 0 to 131072"),
    ("logical_lifetime", 0, "attribute logical_lifetime = 0 must be a whole number from 1 to 10000000"),
    ("history_entries_max", 0, "attribute history_entries_max = 0 must be a whole number from 1 to 10000000"),
    ("history_bytes_max", 1, "attribute history_bytes_max = 1 must be a whole number from 1024 to 4294967296"),
    ("sync_window", 0, "attribute sync_window = 0 must be a whole number from 1 to 10000"),
    ("delivery", "soon", "attribute delivery = 'soon' must be safe or fast"),
    ("durable", 1, "attribute durable = 1 must be true or false"),
    ("machine", "yes", "attribute machine = 'yes' must be true or false"),
    ("processes", 1, "attribute processes = 1 must be true or false"),
    ("exclusive", 1, "attribute exclusive = 1 must be true or false"),
    ("state_machine", "yes", "attribute state_machine = 'yes' must be true or false"),
    (
        "source_group",
        "other",
        "attribute source_group = 'other' must be null: groups that follow another one are not built yet; leave it out",
    ),
    ("on_quorum_lost", "pray", "attribute on_quorum_lost = 'pray' must be continue or dissolve or wait"),
    ("client_version", "v" * 65, f"attribute client_version = '{'v' * 65}' must be a text of at most 64 characters"),
    ("batch", "some", "attribute batch = 'some' must be none or joins or leaves or both"),
    ("batch_window", 61, "attribute batch_window = 61 must be seconds from 0 to 60"),
    *(
        (f"{what}_phases", 2, f"attribute {what}_phases = 2 must be one or n")
        for what in ("join", "leave", "failure", "state", "message")
    ),
    ("default_vote", "continue", "attribute default_vote = 'continue' must be approve or reject"),
    ("time_limit", True, "attribute time_limit = true must be seconds from 0 to 86400"),
    ("colour", "red", "attribute 'colour' is not known"),
]


@pytest.mark.parametrize("attributes", RIGHT)
def test_what_makes_sense_is_taken(attributes: dict[str, AttributeValue]) -> None:
    assert "" == problem_with_attributes(attributes)


@pytest.mark.parametrize("name, value, problem", WRONG)
def test_what_makes_no_sense_is_named_with_its_value_and_what_is_allowed(
    name: str, value: AttributeValue, problem: str
) -> None:
    assert problem == problem_with_attributes({name: value})


def test_there_is_a_wrong_value_here_for_every_attribute() -> None:
    assert set(ATTRIBUTES) | {"colour"} == {name for name, _, _ in WRONG}


def test_the_disks_of_a_durable_group_are_waited_for() -> None:
    """Nothing else makes sense: they come back."""
    problem = problem_with_attributes({"durable": True, "on_quorum_lost": "continue"})
    assert "attribute on_quorum_lost = 'continue' of a durable group must be wait" == problem


def test_everything_that_is_wrong_is_said_in_one_answer() -> None:
    """GS-22. Whoever forms a group does not find out one by one."""
    scene = Scene()
    scene.up("x")
    answer = scene.order(FormGroup("jobs", "x", 1, {"replicas": 2, "commit_k": 3, "machine": 1, "colour": "red"}))
    assert not answer["ok"]
    assert [
        "attribute 'colour' is not known",
        "attribute commit_k = 3 must be a whole number from 1 to replicas, which is 2",
        "attribute machine = 1 must be true or false",
    ] == answer["problem"].split("; ")
    assert scene.directory.group("jobs") is None


def test_an_answer_stays_short_however_much_is_wrong() -> None:
    """Answers are kept by the directory."""
    assert "65 attributes are more than the 64" in problem_with_attributes(
        {f"a{number}": number for number in range(ATTRIBUTES_MAX + 1)}
    )
    assert 200 > len(problem_with_attributes({"delivery": "x" * 3_000}))
