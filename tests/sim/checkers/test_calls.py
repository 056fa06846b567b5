"""K1 turns red when a call ends twice or not at all, or when its answer is not true."""

from __future__ import annotations

import pytest

from .story import Story, changed, find, honest, inserted, red, without


class Desk(Story):
    """Clients alone; entries are taken to be on every disk, for K1 is all that is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.boot("d", durable=False)

    def verdict(self, *, converged: bool = False) -> set[str]:
        """What is red."""
        return red(self.lines, converged=converged, voters=("d",)) - {"V7", "B2"}

    def set(self, value: str, if_version: int, version: int = 0, how: str = "ok") -> None:
        """A whole config_set."""
        call = self.invoke("x", "config_set", node="d", key="k", value=value, if_version=if_version)
        if how == "ok":
            self.end("x", "config_set", call, node="d", version=version)
        elif how == "fail":
            self.end("x", "config_set", call, "fail", node="d")
        elif how == "info":
            self.end("x", "config_set", call, "info", node="d")

    def get(self, value: str, version: int) -> None:
        """A whole config_get."""
        call = self.invoke("y", "config_get", node="d", key="k")
        self.end("y", "config_get", call, node="d", value=value, version=version)

    def look(
        self, *, exists: bool = True, formed: bool = False, group: int = 0, form: bool = False, leader: str = "d"
    ) -> None:
        """A whole look_up."""
        call = self.invoke("y", "look_up", node="d", name="g", form=form)
        self.end("y", "look_up", call, node="d", exists=exists, formed=formed, group=group, leader=leader)


def test_a_second_completion_is_seen() -> None:
    lines = honest()
    place = find(lines, "config_set", type="ok")
    assert {"K1"} == red(inserted(lines, place + 1, lines[place]))


def test_a_completion_without_a_call_is_seen() -> None:
    lines = without(honest(), lambda line: line.op == "config_get" and line.type == "invoke")
    assert {"K1"} == red(lines)


def test_a_read_that_never_ends_is_seen() -> None:
    lines = without(honest(), lambda line: line.op == "config_get" and line.type == "ok")
    assert {"K1"} == red(lines)
    assert set() == red(lines, converged=False)


def test_a_call_may_end_with_the_node_of_its_client() -> None:
    d = Desk()
    d.invoke("x", "config_get", node="d", key="k")
    d.crash("d")
    assert set() == d.verdict(converged=True)


def test_a_failed_write_that_is_read_later_is_seen() -> None:
    lines = honest()
    lines = changed(lines, find(lines, "config_set", type="ok"), type="fail", result={})
    assert {"K1"} == red(lines)


def test_a_write_of_unknown_fate_may_be_read_later_or_never() -> None:
    d = Desk()
    d.set("x1", 0, how="info")
    d.get("", 0)
    d.get("x1", 5)
    d.set("x2", 5, 6)
    d.set("x3", 6, how="info")
    d.get("x2", 6)
    assert set() == d.verdict()


def test_a_value_may_be_set_again_after_a_failure() -> None:
    d = Desk()
    d.set("x1", 0, how="fail")
    d.set("x1", 0, 5)
    d.get("x1", 5)
    assert set() == d.verdict()


def test_a_value_that_nobody_wrote_is_seen() -> None:
    d = Desk()
    d.get("ghost", 4)
    assert {"K1"} == d.verdict()


def test_a_stale_read_is_seen() -> None:
    d = Desk()
    d.set("x1", 0, 1)
    d.set("x2", 1, 2)
    d.get("x1", 1)
    assert {"K1"} == d.verdict()


def test_a_read_beside_a_write_may_show_either() -> None:
    for value, version in (("x1", 1), ("x2", 2)):
        d = Desk()
        d.set("x1", 0, 1)
        call = d.invoke("x", "config_set", node="d", key="k", value="x2", if_version=1)
        d.get(value, version)
        d.end("x", "config_set", call, node="d", version=2)
        assert set() == d.verdict()


def test_reads_that_go_back_beside_a_write_are_seen() -> None:
    d = Desk()
    d.set("x1", 0, 1)
    call = d.invoke("x", "config_set", node="d", key="k", value="x2", if_version=1)
    d.get("x2", 2)
    d.get("x1", 1)
    d.end("x", "config_set", call, node="d", version=2)
    assert {"K1"} == d.verdict()


def test_two_writes_that_replace_the_same_version_are_seen() -> None:
    d = Desk()
    d.set("x1", 0, 1)
    d.set("x2", 1, 2)
    d.set("x3", 1, 3)
    assert {"K1"} == d.verdict()


def test_a_group_with_two_ids_is_seen() -> None:
    d = Desk()
    d.look(form=True, formed=True, group=3)
    d.look(group=4)
    assert {"K1"} == d.verdict()


def test_a_group_formed_twice_is_seen() -> None:
    d = Desk()
    d.look(form=True, formed=True, group=3)
    d.look(form=True, formed=True, group=3)
    assert set() == d.verdict()  # the node that formed it asked again
    d.look(form=True, formed=True, group=3, leader="e")
    assert {"K1"} == d.verdict()


def test_a_group_that_was_found_and_then_is_not_there_is_seen() -> None:
    d = Desk()
    d.look(exists=False)
    d.look(form=True, formed=True, group=3)
    assert set() == d.verdict()
    d.look(exists=False)
    assert {"K1"} == d.verdict()


def test_a_group_that_has_ended_may_be_formed_anew_and_its_old_id_never_comes_back() -> None:
    d = Desk()
    d.look(form=True, formed=True, group=3)
    d.add("a", "group_dropped", seq=7, args={"id": 3})
    d.look(exists=False)
    d.look(form=True, formed=True, group=8, leader="e")
    assert set() == d.verdict()
    d.look(group=3)
    assert {"K1"} == d.verdict()


@pytest.mark.parametrize("fate, expected", [("fail", {"K1"}), ("info", set())])
def test_only_a_call_that_may_have_worked_forms_a_group(fate: str, expected: set[str]) -> None:
    d = Desk()
    call = d.invoke("x", "form", node="d", group="g")
    d.end("x", "form", call, "fail" if fate == "fail" else "info", node="d")
    d.look(group=3)
    assert expected == d.verdict()
