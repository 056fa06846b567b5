"""The audit on Spark: what is sound it calls sound, and every planted contradiction is found, by the right rule.

One audit looks at many domains at once, as each costs a session's worth of time by itself: journals that no daemon
wrote, sound, or with one contradiction of every kind in 200 000 lines; damaged ones; histories of simulated disasters,
some of them edited; that of real daemons of which some are killed. What the simulator's own checkers say of the same
histories is compared with it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import groupsvc.spark.audit
from groupsvc.spark.audit import AuditResult, audit
from groupsvc.spark.audit.auditing import CHECKS, J1
from groupsvc.spark.audit.sources import sources
from groupsvc.testing.made_journals import PLANTS, Shape, make_journals
from groupsvc.testing.sim import draw, run_plan
from groupsvc.testing.sim.checkers import check
from groupsvc.testing.sim.trial import judge_nothing
from groupsvc.wire.history import HistoryEvent, to_line

from .audit_cases import Case, measured
from .audit_cases.cases import CASES
from .spark_sessions import environment, needs_spark, session

pytestmark = [pytest.mark.timeout(900), *needs_spark]  # the first test waits for an audit of seventy domains

SMALL = Shape(
    blocks=150, groups=2, hot=0.8, entries=4, ballot_every=4, barrier_every=5, view_every=10, failure_every=12
)
SEEDS = (7001, 7002, 346021, 400011, 400016, 400027)
"""The last four are sound, and were not called so: a lost tail in G1, a second stay in V5, who answers again in G5, and
in L1 an office that outlives its incarnation.
"""
EVENTS = 200_000

_replace = msgspec.structs.replace


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two cores."""
    with environment(), session("local[2]", tmp_path_factory.mktemp("spark")) as spark:
        yield spark


# --- Histories of the simulator, as they are and edited -------------------------------------------------------

History = Sequence[HistoryEvent]


def _one(history: History, fits: Callable[[HistoryEvent], bool], **fields: Any) -> list[HistoryEvent]:
    """The same, with the first line that fits changed; without it if it has no fields."""
    line = next(line for line in history if line.who == "daemon" and line.boot and fits(line))
    if not fields:
        return [one for one in history if one is not line]
    changed = _replace(line, **{name: value(line) if callable(value) else value for name, value in fields.items()})
    return [changed if one is line else one for one in history]


def _again(history: History, fits: Callable[[HistoryEvent], bool]) -> list[HistoryEvent]:
    """The same, with a line written twice, one right behind the other."""
    line = next(line for line in history if line.boot and fits(line))
    twice = [one for line_ in history for one in ((line_, line_) if line_ is line else (line_,))]
    return [_replace(one, i=i) for i, one in enumerate(twice)]


def _is(op: str, seq: int = 0) -> Callable[[HistoryEvent], bool]:
    return lambda line: line.op == op and line.group > 0 and line.seq > seq


EDITS: dict[str, Callable[[History], list[HistoryEvent]]] = {
    "B1": lambda history: _again(history, _is("delivered", 8)),
    "B4": lambda history: _one(history, lambda line: _is("delivered", 8)(line) and line.origin != ""),
    "V1": lambda history: _one(history, _is("view_installed"), args=lambda line: {**line.args, "members": ["nobody"]}),
    "V3": lambda history: _one(
        history, lambda line: _is("view_installed")(line) and len(line.args["members"]) > 1,
        args=lambda line: {**line.args, "k": 99},
    ),
    "V6": lambda history: _one(
        history, lambda line: _is("ordered")(line) and line.origin == "" and line.seq == 1, origin="n9/1"
    ),
    "L1": lambda history: _one(history, lambda line: _is("ordered", 8)(line) and line.origin != "", node="n1x"),
    "L6": lambda history: _one(
        history, lambda line: _is("view_active")(line) and line.args["base"] > 0,
        args=lambda line: {**line.args, "fence": 1},
    ),
}  # fmt: skip
"""By the rule that both must find."""


@pytest.fixture(scope="module")
def histories() -> dict[str, tuple[list[HistoryEvent], Any]]:
    """By name: the lines, and what the simulator's checkers find in them."""
    found: dict[str, tuple[list[HistoryEvent], Any]] = {}
    for seed in SEEDS:
        world, trial = run_plan(draw(seed), judge=judge_nothing)
        history, voters = world.history.events(), tuple(f"n{number + 1}" for number in range(draw(seed).voters))
        assert trial is not None
        found[f"sim-{seed}"] = (history, voters)
    whole, voters = found[f"sim-{SEEDS[0]}"]
    for rule, edit in EDITS.items():
        found[f"edited-{rule}"] = (edit(whole), voters)
    return found


# --- One audit of everything ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, histories: dict[str, tuple[list[HistoryEvent], Any]]) -> Path:
    """A directory for every domain."""
    root = tmp_path_factory.mktemp("domains")
    make_journals(root / "made" / "sound", SMALL)
    make_journals(root / "made" / "batch", Shape(blocks=150, groups=2, level="batch", view_every=20))
    make_journals(root / "made" / "planted", Shape.of_events(EVENTS), plants=PLANTS)
    _damaged(root / "damaged")
    for case in CASES:
        case.write(root / "cases" / case.name)
    (root / "histories").mkdir()
    for name, (history, _) in histories.items():
        (root / "histories" / f"{name}.ndjson").write_bytes(b"".join(map(to_line, history)))
    _of_real_daemons(root / "histories")
    return root


def _damaged(place: Path) -> None:
    """Whole at n1; n2 as Parquet and as lines; n3 torn; n4 with a hole and a line of another version; n5 unreadable."""
    made = make_journals(place / "a", SMALL, file_lines=600)
    (place / "b").mkdir()
    files = {node: sorted(made.directory.glob(f"{node}.*")) for node in SMALL.names}
    for file in files["n2"][:2]:
        shutil.copy(file, place / "b")
    from groupsvc.journals.parquet import compact

    assert 2 == len(list(compact(place / "b")))
    files["n3"][-1].write_bytes(files["n3"][-1].read_bytes()[:-7])
    lines = files["n4"][1].read_bytes().splitlines(keepends=True)
    lines[20] = lines[20].replace(b'"v":1', b'"v":99')
    files["n4"][1].write_bytes(b"".join(lines[:100] + lines[110:]))
    with files["n5"][0].open("ab") as file:
        file.write(b"no line at all\n")


def _of_real_daemons(place: Path) -> None:
    """A run of the fault tests, where it can be had."""
    from tests.faults.runs import Run
    from tests.faults.wires import Missing

    try:
        Run(seed=20, seconds=4.0, histories=place / "kept", nemesis="kill", workload="mix", keep=True).go()
    except Missing:
        return
    for file in (place / "kept").rglob("*.ndjson"):
        file.rename(place / f"faults-{file.name}")


@pytest.fixture(scope="module")
def audited(spark: Any, root: Path, tmp_path_factory: pytest.TempPathFactory) -> AuditResult:
    """What one audit finds in all of them."""
    made = sorted(str(path) for path in (root / "made").iterdir())
    cases = [str(root / "cases" / case.name) for case in CASES]
    paths = [*made, *cases, str(root / "damaged" / "*"), str(root / "histories" / "*.ndjson")]
    return audit(spark, paths, tmp_path_factory.mktemp("audit") / "out", apart=True, settled=True, progress=print)


def _found(audited: AuditResult, name: str) -> dict[str, list[str]]:
    """By rule: what is found in this domain."""
    found: dict[str, list[str]] = {}
    for one in audited.violations:
        if one.domain.endswith((f"/made/{name}", f"/{name}.ndjson")) or f"/{name}/" in one.domain:
            found.setdefault(one.invariant, []).append(f"{one.text} {one.first} {one.second}")
    return found


def test_what_is_sound_is_called_sound(audited: AuditResult) -> None:
    """SPK-06: none invented."""
    assert {} == _found(audited, "sound")
    assert {} == _found(audited, "batch")


@pytest.mark.parametrize("rule", PLANTS)
def test_every_planted_contradiction_is_found_by_its_rule(audited: AuditResult, rule: str) -> None:
    """SPK-06: one of each kind in 200 000 lines; where it was planted at one node, that node is named."""
    found = _found(audited, "planted")
    assert rule in found, sorted(found)
    where = re.match(r"n\d", PLANTS[rule].what)
    assert where is None or any(where[0] in text for text in found[rule]), found[rule]


def test_nothing_is_invented_beside_what_was_planted(audited: AuditResult) -> None:
    """SPK-06: all plants together break no other promise, and none more often, than each does by itself."""

    def promises(where: str) -> Counter[str]:
        return Counter(f"{one.invariant}: {one.promise}" for one in audited.violations if where in one.domain)

    together, apart = promises("/made/planted"), promises("/cases/plant-")
    assert set(apart) == set(together)
    assert {} == {promise: count for promise, count in together.items() if count > apart[promise]}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_is_judged_as_it_should_be(audited: AuditResult, case: Case) -> None:
    """SPK-06: what each case has in it is found, by the right check, and nothing else is."""
    found = {
        f"{one.invariant}: {one.promise}" for one in audited.violations if f"/cases/{case.name}/" in f"{one.domain}/"
    }
    assert {rule.partition(":")[0] for rule in case.finds} == {rule.partition(":")[0] for rule in found}, found
    assert {rule for rule in case.finds if ":" in rule} <= found


def test_every_check_is_red_somewhere(audited: AuditResult) -> None:
    """SPK-06: a checker without a red run counts as absent, so who adds one adds a case that it must find."""
    red = {(one.invariant, one.promise) for one in audited.violations}
    assert [] == [f"{one.rule}: {one.promise}" for one in (*CHECKS, *J1) if (one.rule, one.promise) not in red]


def test_a_violation_shows_the_two_lines_that_contradict_each_other(audited: AuditResult) -> None:
    one = next(one for one in audited.violations if one.invariant == "V3" and '"k' in one.first_line + one.second_line
               and "n3" in one.nodes and "/planted" in one.domain)  # fmt: skip
    first, second = json.loads(one.first_line), json.loads(one.second_line)
    assert "n3" in one.nodes
    assert {1, 3} == {json.loads(line["args"])["k"] for line in (first, second)}
    assert first["epoch"] == second["epoch"]
    assert one.first == f"{first['node']}.{first['boot']}:{first['i']}"


def test_damage_is_told_and_no_contradiction(audited: AuditResult, root: Path) -> None:
    """Copies count once; a torn tail, missing lines and other versions are not checked; garbage is J1."""
    found = _found(audited, "damaged")
    assert ["J1"] == list(found), found
    assert 1 == len(found["J1"])
    told = [f"{one.what} ({one.count})" for one in audited.findings.unchecked]
    assert any("which is torn" in text and "n3." in text for text in told), told
    assert any("n4." in text and "lines that are missing (11)" in text for text in told), told
    others = 1 + sum(file.read_bytes().count(b'"v": 2') for file in (root / "cases" / "other-names").iterdir())
    assert others > 1
    assert any(f"lines of a version that is not known here ({others})" in text for text in told), told


def test_the_simulators_checkers_and_the_audit_agree(
    audited: AuditResult, histories: dict[str, tuple[list[HistoryEvent], Any]]
) -> None:
    """Histories of disasters in which the one finds nothing the other finds sound; what is edited both find."""
    for name, (history, voters) in histories.items():
        theirs = {one.invariant for one in check(history, voters=voters, converged=False)}
        ours = set(_found(audited, name))
        if name.startswith("sim-"):
            assert (set(), set()) == (theirs, ours), name
        else:
            rule = name.removeprefix("edited-")
            assert rule in theirs, (name, theirs)
            assert rule in ours, (name, _found(audited, name))


def test_a_history_of_real_daemons_that_are_killed_is_sound(audited: AuditResult, root: Path) -> None:
    kept = list((root / "histories").glob("faults-*.ndjson"))
    if not kept:
        pytest.skip("the fault tests cannot run here: they say what is missing")
    found = [one for one in audited.violations if "/faults-" in one.domain or one.domain.startswith("faults-")]
    assert [] == found


def test_everything_that_is_asked_was_asked_of_something(audited: AuditResult) -> None:
    """No check passes because there was nothing to look at."""
    assert [] == [
        f"{one.check.rule} {one.check.promise}: {one.why_not}" for one in audited.findings.asked if one.why_not
    ]
    rules = {one.rule for one in CHECKS}
    expected = "B1 B2 B3 B4 B5 B6 V1 V2 V3 V4 V5 V6 L1 L2 L3 L5 L6 G1 G2 G3 G4 G5 G10 R1 R2 R3"
    assert set(expected.split()) == rules


# --- What it leaves -------------------------------------------------------------------------------------------


def test_tables_and_summary_are_there_for_programs(spark: Any, audited: AuditResult) -> None:
    summary = json.loads((Path(audited.out) / "summary.json").read_text())
    assert not summary["sound"]
    assert set(PLANTS) <= set(summary["violations"])
    assert {"ballots", "barriers, the last to come", "hand-over: it was not"} <= set(summary["latencies"])
    violations = spark.read.parquet(str(Path(audited.out) / "violations"))
    assert len(audited.violations) == violations.count()
    assert {"availability", "leaderships", "fail_overs", "rates", "default_votes"} <= {
        path.name for path in Path(audited.out).iterdir()
    }
    rows = spark.read.parquet(str(Path(audited.out) / "availability")).collect()
    assert all(row["availability"] is None or 0.0 <= row["availability"] <= 1.0 for row in rows)
    silent = [row["availability"] for row in rows if row["domain"].endswith("/silent-leader")]
    assert [pytest.approx(measured.AVAILABILITY)] == silent


def test_the_report_needs_no_network(audited: AuditResult) -> None:
    page = (Path(audited.out) / "report.html").read_text()
    assert not [word for word in ("http://", "https://", "<script", "<link", "@import", "url(") if word in page]
    assert page.count("<svg") >= 4


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.mark.skipif(CHROMIUM is None, reason="there is no browser: apt install chromium")
def test_the_report_is_seen_in_a_browser(audited: AuditResult, tmp_path: Path) -> None:
    """It is not blank: there are the colours of text, of verdicts and of several leaders."""
    shot = tmp_path / "report.png"
    assert CHROMIUM is not None
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    flags += " --disable-component-update --disable-sync --hide-scrollbars --window-size=1200,2400"
    command = [CHROMIUM, *flags.split(), f"--user-data-dir={tmp_path / 'profile'}", f"--screenshot={shot}"]
    done = subprocess.run([*command, (Path(audited.out) / "report.html").as_uri()], capture_output=True, timeout=90)
    assert shot.exists(), done.stderr.decode(errors="replace")[-500:]
    assert (1200, 2400) == _size(shot.read_bytes())
    assert len(_colours(shot.read_bytes())) > 20


def _size(png: bytes) -> tuple[int, int]:
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


def _colours(png: bytes) -> set[bytes]:
    """Bytes of the picture, three at a time, before any filter is undone: enough to tell a page from a blank one."""
    place, data = 8, b""
    while place < len(png):
        length, kind = int.from_bytes(png[place : place + 4], "big"), png[place + 4 : place + 8]
        data += png[place + 8 : place + 8 + length] if kind == b"IDAT" else b""
        place += length + 12
    raw = zlib.decompress(data)
    return {raw[at : at + 3] for at in range(0, len(raw) - 3, 3)}


def test_the_command_says_what_is_wrong_with_its_input(spark: Any, tmp_path: Path, capsys: Any) -> None:
    from groupsvc.cli import main

    (tmp_path / "empty").mkdir()
    assert 2 == main(["audit", str(tmp_path / "empty"), "--out", str(tmp_path / "out"), "--quiet"])
    assert "there are no journals in" in capsys.readouterr().err
    assert 2 == main(["audit", str(tmp_path / "nothing"), "--out", str(tmp_path / "out"), "--quiet"])
    assert "there is no file or directory" in capsys.readouterr().err


def test_a_damaged_file_of_parquet_is_named(spark: Any, tmp_path: Path, capsys: Any) -> None:
    """Whoever has it can copy it again: whether its end is missing, or something in the middle is wrong."""
    from groupsvc.cli import main

    made = make_journals(tmp_path / "made", Shape(nodes=3, groups=1, hot=1.0, blocks=6), parquet=True)
    (file,) = made.directory.glob("n2.*")
    whole = file.read_bytes()
    for damaged, words in ((whole[:-30], "is no whole file of Parquet"), (_holed(whole), "is damaged")):
        file.write_bytes(damaged)
        assert 4 == main(["audit", str(made.directory), "--out", str(tmp_path / "out"), "--quiet"])
        told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("groupsvc: ")]
        assert 1 == len(told)
        assert f"{file.name} {words}" in told[0]


def _holed(whole: bytes) -> bytes:
    return whole[:20] + bytes(400) + whole[420:]


def test_histories_that_are_called_alike_are_domains_of_their_own(spark: Any, tmp_path: Path) -> None:
    files = [tmp_path / run / "history.ndjson" for run in ("run1", "run2")]
    for file in files:
        file.parent.mkdir()
        file.write_bytes(b"{}\n")
    named = ("run1/history.ndjson", "run2/history.ndjson")
    assert named == sources(spark, map(str, files)).domains
    assert named == sources(spark, [str(tmp_path / "run?" / "history.ndjson")], apart=True).domains
    assert ("history.ndjson",) == sources(spark, [str(files[0].parent)]).domains


def test_spark_submit_runs_it_and_hands_on_its_exit_code(tmp_path: Path) -> None:
    """SPK-06: the summary, and nothing else, on the stream that spark-submit makes of two; the verdict as exit code.

    From journals of batches a contradiction among ballots is found, and of what needs a line for every entry of a group
    nothing is said to hold.
    """
    from .standalone import HOME

    shape = Shape(blocks=150, groups=2, level="batch", view_every=20, ballot_every=4)
    made = make_journals(tmp_path / "made", shape, plants=("G3",)).directory
    program = Path(groupsvc.spark.audit.__file__).parent / "__main__.py"
    submit = [str(HOME / "bin/spark-submit"), "--master", "local[2]", "--conf", "spark.driver.host=127.0.0.1"]
    command = [*submit, str(program), str(made), "--out", str(tmp_path / "out"), "--json"]
    with environment():
        done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert 11 == done.returncode, done.stderr[-2_000:]
    told = json.loads(done.stdout)
    assert {"G3"} == set(told["violations"])
    verdicts = {(one["rule"], one["promise"]): one["verdict"] for one in told["checks"] if one["level"] == "full"}
    assert 10 < len(verdicts)
    assert {} == {check: verdict for check, verdict in verdicts.items() if verdict == "holds"}
