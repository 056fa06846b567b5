"""The configuration says everything at once, and what it says of an option is true."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import attrs
import pytest

from groupsvcd import config
from groupsvcd.__main__ import main
from groupsvcd.config import BadConfig, Config, Limits
from groupsvcd.config.options import ESSENTIAL
from groupsvcd.core.parameters import Timers

EXAMPLE = Path(__file__).parents[3] / "daemon" / "config" / "groupsvcd.example.toml"

THREE = """
state_directory = "state"
[voters]
n1 = "tcp://127.0.0.1:7400"
n2 = "tcp://127.0.0.1:7410"
n3 = "ipc:///run/n3.peer"
"""


def loaded(tmp_path: Path, text: str, environment: dict[str, str] | None = None) -> Config:
    path = tmp_path / "groupsvcd.toml"
    path.write_text(text)
    return config.load(path, environment or {})


def problems(tmp_path: Path, text: str, environment: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(BadConfig) as caught:
        loaded(tmp_path, text, environment)
    return [str(problem).removeprefix(str(tmp_path) + "/") for problem in caught.value.problems]


# --- The example ------------------------------------------------------------------------------------


def uncommented() -> str:
    """The example with every option in force."""
    return re.sub(r"^#(?=\[|[a-z0-9_]+ = )", "", EXAMPLE.read_text(), flags=re.MULTILINE)


def test_the_example_as_shipped_is_a_domain_of_one_with_all_defaults() -> None:
    """OPS-01: an operator can start from the example without changing a line."""
    assert config.load(None, {}) == config.load(EXAMPLE, {})


def test_the_example_lists_exactly_the_options_there_are() -> None:
    content = tomllib.loads(uncommented())
    shown = {key for key, value in content.items() if not isinstance(value, dict)}
    shown |= {f"{table}.{key}" for table in ("timers", "limits") for key in content[table]}
    assert set(config.OPTIONS) == shown


def test_the_example_shows_the_defaults() -> None:
    content = tomllib.loads(uncommented())
    assert attrs.asdict(Timers()) == content["timers"]
    assert attrs.asdict(Limits()) == content["limits"]
    defaults = Config(node="n1", runtime_directory=Path("/run/groupsvc"), client_address="")
    for key in ("domain", "insecure", "candidate", "pinned", "preference", "log_level", "journal_level"):
        assert getattr(defaults, key) == content[key], key
    assert list(defaults.form_without) == content["form_without"]


def test_the_example_is_good_with_every_line_in_force(tmp_path: Path) -> None:
    made = loaded(tmp_path, uncommented())
    assert "n1" == made.node
    assert made.is_voter


def test_every_option_of_the_example_has_a_comment_before_it() -> None:
    for block in EXAMPLE.read_text().split("\n\n"):
        if re.search(r"^#[a-z0-9_]+ = ", block, flags=re.MULTILINE):
            assert block.startswith("# "), block


# --- Where values come from -------------------------------------------------------------------------


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    environment = {
        "GROUPSVC_NODE": "n2",
        "GROUPSVC_TIMERS_LEASE": "3",
        "GROUPSVC_LIMITS_CLIENTS_MAX": "5",
        "GROUPSVC_PINNED": "yes",
        "GROUPSVC_FORM_WITHOUT": "n1, n3",
        "GROUPSVC_STATE_DIRECTORY": "/var/lib/other",
        "GROUPSVC_ADDRESS": "ipc:///for/clients/only.sock",
        "GROUPSVC_LOCK": "of/the/command/that/started/us",
        "GROUPSVC_FENCE": "17",
        "HOME": "/root",
    }
    made = loaded(tmp_path, 'node = "n1"' + THREE, environment)
    assert ("n2", 3.0, 5, True) == (made.node, made.timers.lease, made.limits.clients_max, made.pinned)
    assert ("n1", "n3") == made.form_without
    assert Path("/var/lib/other") == made.state_directory
    assert "tcp://127.0.0.1:7410" == made.address


def test_where_each_essential_option_is_set_is_known_to_the_engine(tmp_path: Path) -> None:
    """MSG-13: a node that is refused says which line of which file to correct."""
    text = 'node = "n1"' + THREE + "[timers]\nlease = 5\n"
    made = loaded(tmp_path, text, {"GROUPSVC_DOMAIN": "shop"}).parameters(measured=0, started_ms=0)
    file = f"{tmp_path}/groupsvcd.toml"
    assert f"timers.lease is set in {file}:8" == made.where("timers.lease")
    assert f"voters is set in {file}:3" == made.where("voters")
    assert "domain is set in environment GROUPSVC_DOMAIN" == made.where("domain")
    assert f"timers.margin is left at its default, 0.5; set it in {file}" == made.where("timers.margin")


def test_the_essential_options_are_those_that_nodes_compare() -> None:
    parameters = config.load(None, {}).parameters(measured=0, started_ms=0)
    assert sorted(ESSENTIAL) == sorted(parameters.essentials())


def test_voters_can_come_from_the_environment(tmp_path: Path) -> None:
    text = "n1=ipc:///tmp/a, n2=ipc:///tmp/b,n3=ipc:///tmp/c"
    made = loaded(tmp_path, 'node = "n1"\nstate_directory = "s"', {"GROUPSVC_VOTERS": text})
    assert {"n1": "ipc:///tmp/a", "n2": "ipc:///tmp/b", "n3": "ipc:///tmp/c"} == made.voters


def test_relative_paths_begin_where_the_file_is(tmp_path: Path) -> None:
    assert tmp_path / "state" == loaded(tmp_path, 'node = "n1"' + THREE).state_directory


def test_the_client_socket_is_in_the_directory_that_systemd_made(tmp_path: Path) -> None:
    made = loaded(tmp_path, "", {"RUNTIME_DIRECTORY": "/run/one:/run/two"})
    assert "ipc:///run/one/client.sock" == made.client_address


def test_nothing_configured_is_a_domain_of_one_in_memory() -> None:
    parameters = config.load(None, {}).parameters(measured=7, started_ms=1)
    assert (parameters.node,) == parameters.all_voters
    assert not parameters.durable
    assert 7 == parameters.measured


def test_the_engine_gets_what_the_operator_wrote(tmp_path: Path) -> None:
    text = 'node = "n2"\npreference = 4\ndomain = "shop"' + THREE + "[timers]\nlease = 5\n[limits]\nanswers_kept = 9"
    parameters = loaded(tmp_path, text).parameters(measured=3, started_ms=12)
    assert ("n1", "n2", "n3") == parameters.voters
    assert "tcp://127.0.0.1:7410" == parameters.address == parameters.voter_addresses["n2"]
    assert ("shop", 4, 3, 12, 5.0, 9) == (
        parameters.domain,
        parameters.preference,
        parameters.measured,
        parameters.started_ms,
        parameters.timers.lease,
        parameters.answers_kept,
    )
    assert parameters.durable


def test_the_event_journal_has_a_line_per_batch_unless_asked_for_every_entry(tmp_path: Path) -> None:
    expected = {"": False, 'journal_level = "batch"': False, 'journal_level = "full"': True}
    made = {text: loaded(tmp_path, text).parameters(measured=0, started_ms=0).journal_full for text in expected}
    assert expected == made


# --- Problems ---------------------------------------------------------------------------------------


def test_all_problems_are_reported_at_once_with_their_lines(tmp_path: Path) -> None:
    text = """node = "n one"
colour = "red"
log_level = "loud"
[timers]
leese = 2
alive_interval = "soon"
lease = 0.1
[limits]
clients_max = 0
"""
    found = problems(tmp_path, text)
    starts = [": ".join(problem.split(": ")[:2]) for problem in found]
    assert [
        "groupsvcd.toml:2: colour",
        "groupsvcd.toml:5: timers.leese",
        "groupsvcd.toml:6: timers.alive_interval",
        "groupsvcd.toml:1: node",
        "groupsvcd.toml:3: log_level",
        "groupsvcd.toml:7: timers.lease",
        "groupsvcd.toml:9: limits.clients_max",
    ] == starts
    assert found[1].endswith("is no option; did you mean timers.lease?")


@pytest.mark.parametrize(
    "text, expected",
    [
        ("node = \n", "groupsvcd.toml:1: is no valid TOML"),
        ("node = 5\n", "groupsvcd.toml:1: node: must be text, not 5"),
        ("insecure = 1\n", "groupsvcd.toml:1: insecure: must be true or false, not 1"),
        ("preference = true\n", "groupsvcd.toml:1: preference: must be a whole number, not True"),
        ('journal_level = "none"\n', "groupsvcd.toml:1: journal_level: 'none' is none of batch, full"),
        ('log_format = "xml"\n', "groupsvcd.toml:1: log_format: 'xml' is none of text, json"),
        ('metrics_address = "127.0.0.1:9464"\n', "metrics_address: '127.0.0.1:9464' is not http://HOST:PORT"),
        ('metrics_address = "https://127.0.0.1:9464"\n', "metrics_address: 'https://127.0.0.1:9464' is not http://"),
        ('metrics_address = "http://127.0.0.1:0"\n', "metrics_address: 'http://127.0.0.1:0' is not http://HOST:PORT"),
        ('metrics_address = "http://127.0.0.1:9464/x"\n', "is not http://HOST:PORT"),
        ("timers = 3\n", "groupsvcd.toml:1: timers: is a table"),
        ("timers.lease = nan\n", "groupsvcd.toml:1: timers.lease: must be a number of seconds, not nan"),
        ('[voters]\n"n 1" = "ipc:///a"\n', "groupsvcd.toml:2: voters.n 1: 'n 1' is no name"),
        ("[voters]\nn1 = 7\n", "groupsvcd.toml:2: voters.n1: must be the voter's address as text, not 7"),
        ('address = "127.0.0.1:7400"\n', "is neither tcp://HOST:PORT nor ipc:///PATH"),
        ('address = "tcp://127.0.0.1:65535"\n', "port 65535 is not between 1 and 65534"),
        ('address = "tcp://0.0.0.0:7400"\ninsecure = true\n', "no place where peers could reach"),
        ('client_address = "tcp://127.0.0.1:1"\n', "it must begin with 'ipc://'"),
        (f"preference = {10**30}\n", "preference: = 1000000000000000000000000000000 must be 0 to 1000"),
        ("preference = -1\n", "preference: = -1 must be 0 to 1000"),
        (f"limits.logical_lifetime = {10**23}\n", "limits.logical_lifetime: = 100000000000000000000000 must be 1 to"),
        ("timers.lease = 1e300\n", "timers.lease: = 1e+300 must be 0.001 to 3600 seconds"),
        ("timers.alive_interval = 1e-7\n", "timers.alive_interval: = 1e-07 must be 0.001 to 3600 seconds"),
        ('node = "n4"' + THREE, "address: is required: n4 is not in [voters]"),
        ('node = "n1"\naddress = "ipc:///x"' + THREE, "address: ipc:///x differs from voters.n1"),
        ('node = "n1"\nform_without = ["n9"]' + THREE, "form_without: 'n9' is not in [voters]"),
        ('node = "n1"\nform_without = ["n1"]' + THREE, "form_without: names this node itself"),
        (
            'node = "a"\nstate_directory="s"\n[voters]\na = "ipc:///x"\nb = "ipc:///x"',
            "voters.b: ipc:///x is used by a as well",
        ),
        (
            'node = "c"\naddress = "ipc:///c"\n[voters]\na = "tcp://[::1]:7400"\nb = "tcp://[::1]:7401"',
            ":7401 is used by a as well",
        ),
        ('node = "n4"\naddress = "ipc:///a"\n[voters]\na = "ipc:///a"', "address: ipc:///a is used by a as well"),
        (
            'address = "tcp://127.0.0.1:7400"\nlisten_clients = "tcp://127.0.0.1:7401"\n',
            "listen_clients: tcp://127.0.0.1:7401 is used by",
        ),
        (
            'listen_clients = "tcp://127.0.0.1:7500"\nmetrics_address = "http://127.0.0.1:7500"\n',
            "metrics_address: tcp://127.0.0.1:7500 is used by this daemon for listen_clients already",
        ),
    ],
)
def test_a_problem_names_the_place_and_the_reason(tmp_path: Path, text: str, expected: str) -> None:
    found = problems(tmp_path, text)
    assert any(expected in problem for problem in found), found


def test_a_socket_stands_beside_the_file_like_other_files(tmp_path: Path) -> None:
    assert f"ipc://{tmp_path}/n1.sock" == loaded(tmp_path, 'client_address = "ipc://n1.sock"').client_address
    for address in ("ipc:///run/x.sock", "ipc://@abstract"):
        assert address == loaded(tmp_path, f'client_address = "{address}"').client_address


def test_a_voter_of_several_needs_a_state_directory(tmp_path: Path) -> None:
    found = problems(tmp_path, 'node = "n1"' + THREE.replace('state_directory = "state"', ""))
    assert 1 == len(found)
    assert "state_directory: is required: n1 is one of 3 voters" in found[0]


def test_an_address_that_leaves_the_machine_needs_the_word_insecure(tmp_path: Path) -> None:
    text = 'node = "n1"\naddress = "tcp://192.0.2.1:7400"\n'
    assert "write insecure = true" in problems(tmp_path, text)[0]
    made = loaded(tmp_path, text + "insecure = true\n")
    assert any("insecure" in warning for warning in made.warnings())


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "[::1]", "localhost"])
def test_loopback_needs_no_word(tmp_path: Path, host: str) -> None:
    assert f"tcp://{host}:7400" == loaded(tmp_path, f'address = "tcp://{host}:7400"').address


@pytest.mark.parametrize("word", ["insecure", "metrics_insecure"])
def test_metrics_leave_the_machine_only_if_that_is_written(tmp_path: Path, word: str) -> None:
    text = 'metrics_address = "http://0.0.0.0:9464"\n'
    assert "metrics_address: 0.0.0.0 is not loopback, and no key is asked for there" in problems(tmp_path, text)[0]
    assert "write metrics_insecure = true" in problems(tmp_path, text)[0]
    assert any("reads the metrics" in one for one in loaded(tmp_path, f"{text}{word} = true\n").warnings())


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost"])
def test_metrics_on_loopback_need_no_word(tmp_path: Path, host: str) -> None:
    made = loaded(tmp_path, f'metrics_address = "http://{host}:9464"')
    assert f"http://{host}:9464" == made.metrics_address
    assert [] == made.warnings()


def test_a_bad_variable_is_reported_by_its_name(tmp_path: Path) -> None:
    found = problems(tmp_path, "", {"GROUPSVC_TIMERS_LEESE": "2", "GROUPSVC_PREFERENCE": "high"})
    assert "environment GROUPSVC_PREFERENCE: preference: must be a whole number, not 'high'" == found[0]
    assert "environment GROUPSVC_TIMERS_LEESE: is the variable of no option" in found[1]
    assert "did you mean GROUPSVC_TIMERS_LEASE?" in found[1]


def test_two_voters_are_warned_of(tmp_path: Path) -> None:
    """GS-43: both are needed, and the operator is told what would help."""
    text = 'node = "a"\nstate_directory = "s"\n[voters]\na = "ipc:///a"\nb = "ipc:///b"'
    assert any("witness" in warning for warning in loaded(tmp_path, text).warnings())
    assert [] == loaded(tmp_path, 'node = "n1"' + THREE).warnings()


# --- The command ------------------------------------------------------------------------------------


def test_check_config_says_good_or_everything_that_is_bad(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.toml"
    path.write_text('node = "n1"' + THREE)
    assert 0 == main(["--config", str(path), "--check-config"])
    assert "n1, voter of a domain of 3 voters" in capsys.readouterr().out
    path.write_text("nodee = 1\nlogg = 2\n")
    assert 2 == main(["--config", str(path), "--check-config"])
    assert 2 == capsys.readouterr().err.count(str(path))


def test_a_missing_file_and_a_wrong_command_line_have_exit_codes_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == main(["--config", str(tmp_path / "none.toml"), "--check-config"])
    assert "cannot be read: No such file" in capsys.readouterr().err
    assert 2 == main(["--colour"])
    assert 0 == main(["--version"])
    assert capsys.readouterr().out.startswith("groupsvcd ")


def test_a_file_that_is_nested_without_end_is_no_configuration(tmp_path: Path) -> None:
    assert ["groupsvcd.toml: is no valid TOML: it is nested too deep"] == problems(tmp_path, "node = " + "[" * 5_000)


def test_paths_that_can_be_none_are_named(tmp_path: Path) -> None:
    text = 'state_directory = "~nobody-of-this-name/state"\njournal_directory = "a\\u0000b"\nkey_file = "a\\u0000b"\n'
    found = problems(tmp_path, text)
    assert any("state_directory" in one and "no such user" in one for one in found), found
    assert 2 == sum("no character zero" in one for one in found), found
