"""Both drivers keep the contract with applications: names, arguments, defaults, and the same in one as in the other."""

from __future__ import annotations

import enum
import inspect
from types import ModuleType
from typing import Any

import attrs
import msgspec
import pytest

import groupsvc
from groupsvc import aio
from groupsvc.tables import AioTable, Table
from groupsvc.wire import limits as wire_limits
from tests.unit.client import contract

RECIPES = ("Lock", "Semaphore", "ReadWriteLock", "Election", "Counter", "Latch", "Party")
WITH_METHODS = ("Session", "Group", "Subscription", "Barrier", *RECIPES)
NOT_ENTERED = ("Barrier", "ReadWriteLock", "Election")


def names_of(owner: type) -> list[str]:
    """What the contract says of a class, with what that inherits."""
    return [name for name in dir(owner) if not name.startswith("_")]


METHODS = [(owner, name) for owner in WITH_METHODS for name in names_of(getattr(contract, owner))]
OF_VALUES = [(owner, name) for owner in ("Held", "Proposal", "Outcome") for name in names_of(getattr(contract, owner))]


def arguments(function: Any) -> dict[str, tuple[inspect._ParameterKind, object]]:
    """Name by name: how it is given, and what it is if it is not."""
    found = inspect.signature(function).parameters.values()
    return {one.name: (one.kind, one.default) for one in found}


def promised(owner: str, name: str) -> Any:
    return inspect.getattr_static(getattr(contract, owner), name)


def check(expected: Any, found: Any) -> None:
    """Everything that is promised is there as promised; what is there besides can be left out."""
    if isinstance(expected, property):
        assert isinstance(found, property)
        return
    wanted, given = arguments(expected), arguments(found)
    assert wanted == {name: given.get(name) for name in wanted}
    by_position = [name for name, (kind, _) in wanted.items() if kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert by_position == list(given)[: len(by_position)]
    for name, (_, default) in given.items():
        assert name in wanted or default is not inspect.Parameter.empty, f"{name} must be given"


@pytest.mark.parametrize(
    "driver, owner, name",
    [
        (driver, *one)
        for driver in (groupsvc, aio)
        for one in METHODS
        if driver is groupsvc or one not in contract.NOT_IN_AIO
    ],
    ids=lambda part: getattr(part, "__name__", part),
)
def test_every_name_is_there_with_its_arguments_and_defaults(driver: ModuleType, owner: str, name: str) -> None:
    check(promised(owner, name), inspect.getattr_static(getattr(driver, owner), name))


@pytest.mark.parametrize("driver", [groupsvc, aio], ids=["blocking", "asyncio"])
def test_connect(driver: ModuleType) -> None:
    check(contract.connect, driver.connect)


@pytest.mark.parametrize("owner, name", OF_VALUES, ids=lambda part: part)
def test_what_calls_return_has_its_names_too(owner: str, name: str) -> None:
    check(promised(owner, name), inspect.getattr_static(getattr(groupsvc, owner), name))


@pytest.mark.parametrize("name", names_of(contract.StateMachine))
@pytest.mark.parametrize("machine", [groupsvc.StateMachine, Table, AioTable])
def test_a_state_machine_is_what_has_these(machine: type, name: str) -> None:
    check(promised("StateMachine", name), inspect.getattr_static(machine, name))


@pytest.mark.parametrize("owner", WITH_METHODS)
def test_what_one_driver_has_the_other_has_with_the_same_arguments(owner: str) -> None:
    """Also what is beyond the contract."""
    blocking, asynchronous = getattr(groupsvc, owner), getattr(aio, owner)
    exempt = {name for of, name in contract.NOT_IN_AIO if of == owner}
    assert set(names_of(blocking)) - exempt == set(names_of(asynchronous))
    for name in names_of(asynchronous):
        one, other = inspect.getattr_static(blocking, name), inspect.getattr_static(asynchronous, name)
        assert isinstance(one, property) == isinstance(other, property)
        if not isinstance(one, property):
            only_there = contract.ONLY_IN_AIO.get((owner, name), {})
            assert arguments(one) == {name: how for name, how in arguments(other).items() if name not in only_there}, (
                name
            )
    if owner in NOT_ENTERED:
        return
    for entered, left in (("__enter__", "__exit__"), ("__aenter__", "__aexit__")):
        which = blocking if entered == "__enter__" else asynchronous
        assert hasattr(which, entered)
        assert hasattr(which, left)


def test_what_waits_is_awaited_and_what_does_not_is_a_plain_call() -> None:
    """connect, join and subscribe can be awaited and entered; events are iterated."""
    plain = {"on_state", "multicast_nowait", "held", "check", "events", "join", "subscribe", "barrier"}
    plain |= {"lock", "rwlock", "semaphore", "election", "counter", "latch", "party", "read", "write"}
    for owner in WITH_METHODS:
        for name in names_of(getattr(aio, owner)):
            found = inspect.getattr_static(getattr(aio, owner), name)
            if not isinstance(found, property):
                assert inspect.iscoroutinefunction(found) != (name in plain), name
    for method in (aio.connect, aio.Session.join, aio.Session.subscribe):
        assert str(inspect.signature(method).return_annotation).startswith("Entering[")


def fields_of(value: type) -> list[str]:
    """The names of its fields, those that are given by position first."""
    if issubclass(value, msgspec.Struct):
        return list(value.__struct_fields__)
    if issubclass(value, groupsvc.GroupServiceError):
        return list(arguments(value.__init__))[1:]
    return [field.name for field in sorted(attrs.fields(value), key=lambda field: field.kw_only)]


@pytest.mark.parametrize("name", contract.FIELDS)
def test_values_have_their_fields_and_can_be_matched_by_position(name: str) -> None:
    expected = contract.FIELDS[name].split()
    value = getattr(groupsvc, name)
    found = fields_of(value)
    assert expected == [field for field in found if field in expected]
    if name not in ("Proposal", "Outcome"):
        assert expected == found[: len(expected)]
        assert expected == list(value.__match_args__)[: len(expected)]
    if name in contract.EVENTS and name not in contract.NOT_OF_THE_STREAM:
        assert hasattr(value, "view") or "view" in found
        assert "seq" in found


@pytest.mark.parametrize("name", [name for name in contract.FIELDS if name not in ("Suspended", "Lost", "Rejected")])
def test_values_are_frozen(name: str) -> None:
    value = getattr(groupsvc, name)
    is_frozen = (
        value.__struct_config__.frozen if issubclass(value, msgspec.Struct) else "__attrs_attrs__" in vars(value)
    )
    assert is_frozen
    if not issubclass(value, msgspec.Struct):
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            value.__setattr__(value.__new__(value), "seq", 1)


def test_attributes_of_groups_have_their_defaults() -> None:
    nothing_said = groupsvc.GroupAttributes()
    found = {name: getattr(nothing_said, name) for name in contract.ATTRIBUTES}
    assert contract.ATTRIBUTES == {
        name: value.name if isinstance(value, enum.Enum) else value for name, value in found.items()
    }
    for name, value in found.items():
        assert nothing_said == groupsvc.GroupAttributes(**{name: value})


@pytest.mark.parametrize("name", contract.WORDS)
def test_words(name: str) -> None:
    members = list(getattr(groupsvc, name).__members__)
    assert set(contract.WORDS[name].split()) <= set(members)


@pytest.mark.parametrize("name", contract.ERRORS)
def test_errors_are_families(name: str) -> None:
    error = getattr(groupsvc, name)
    assert issubclass(error, getattr(groupsvc, contract.ERRORS[name]))
    families = (groupsvc.UsageError, groupsvc.PeerProtocolError, groupsvc.Failed, groupsvc.OutcomeUnknown)
    assert 1 == sum(issubclass(error, family) for family in families), "exactly one says what is known"
    assert "group" in inspect.signature(error).parameters


def test_a_call_that_is_late_is_a_timeout_as_python_knows_it() -> None:
    assert issubclass(groupsvc.TimedOut, TimeoutError)
    assert {"ids"} <= set(inspect.signature(groupsvc.OutcomeUnknown).parameters)
    assert {"outcome"} <= set(inspect.signature(groupsvc.JoinRejected).parameters)
    assert {"outcome"} <= set(inspect.signature(groupsvc.Rejected).parameters)


def test_every_name_is_exported() -> None:
    names = {*contract.FIELDS, *contract.WORDS, *contract.ERRORS, *contract.OTHER_NAMES, *WITH_METHODS, "connect"}
    assert names <= set(groupsvc.__all__)
    assert {*WITH_METHODS, "connect"} <= set(aio.__all__)


def test_limits_have_the_names_of_the_contract_and_no_second_ones() -> None:
    """In capitals they are constants of the protocol, and those are elsewhere."""
    assert set(contract.LIMITS) <= set(groupsvc.limits.__all__)
    assert (wire_limits.OUTSTANDING_MAX, wire_limits.EVENTS_MAX) == (
        groupsvc.limits.outstanding_max,
        groupsvc.limits.events_max,
    )
    assert [] == [name for name in dir(groupsvc.limits) if name.isupper()]
    for name in groupsvc.limits.__all__:
        assert getattr(wire_limits, name.upper()) == getattr(groupsvc.limits, name)
