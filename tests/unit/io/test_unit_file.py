"""The unit, the user and the directories that are installed: systemd takes them, and the daemon runs within them."""

from __future__ import annotations

import configparser
import ctypes
import platform
import re
import shutil
import socket
import struct
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from groupsvc.testing.local_node import environment
from groupsvc.testing.loopback_ports import PortBlock
from groupsvc.wire.limits import DRAIN_S
from groupsvcd.__main__ import __doc__ as exit_codes
from groupsvcd.__main__ import main as daemon_main
from groupsvcd.daemon import EXIT_CANNOT_BIND
from tests.tidy.test_protocol_document import rows_under

SYSTEMD = Path(__file__).parents[3] / "daemon/systemd"
UNIT = SYSTEMD / "groupsvcd.service"
OPERATIONS = SYSTEMD.parents[1] / "docs/OPERATIONS.md"
EXPOSURE_MAX = 20
"""In tenths. That of a unit without any protection is 96."""

HEADER = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_SET_MDWE = 38, 22, 65
MDWE_REFUSE_EXEC_GAIN = 1
SECCOMP_MODE_FILTER = 2
ALLOW, EPERM, EAFNOSUPPORT = 0x7FFF0000, 0x00050001, 0x00050061
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
CALL_NUMBER, FIRST_ARGUMENT = 0, 16
"""Where they are in what the program is shown."""


def setting(name: str) -> list[str]:
    """What the unit says of this, in order."""
    return re.findall(rf"^{name}=(.*)$", UNIT.read_text(), re.M)


@pytest.fixture
def systemd_analyze(tmp_path: Path) -> Path:
    """The unit, as it can be looked at where nothing is installed; skips where there is nobody to look."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze; on Debian and Ubuntu: apt install systemd")
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/usr/bin/groupsvcd", "/bin/true"))
    return copy


def analyzed(*arguments: str | Path) -> str:
    """What systemd-analyze says, if it is content."""
    done = subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, timeout=60)
    assert 0 == done.returncode, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_systemd_finds_nothing_wrong_with_the_unit(systemd_analyze: Path) -> None:
    assert "" == analyzed("verify", "--man=no", systemd_analyze)


def test_the_unit_exposes_little(systemd_analyze: Path) -> None:
    """At least as strict as what operators know from others."""
    assert "Overall exposure level" in analyzed(
        "security", "--offline=true", f"--threshold={EXPOSURE_MAX}", "--no-pager", systemd_analyze
    )


@pytest.mark.parametrize(
    "name, value",
    [
        ("Type", "notify"), ("NotifyAccess", "main"), ("NoNewPrivileges", "true"), ("ProtectSystem", "strict"),
        ("CapabilityBoundingSet", ""), ("MemoryDenyWriteExecute", "true"), ("UMask", "0077"),
        ("RestrictAddressFamilies", "AF_UNIX AF_INET AF_INET6 AF_NETLINK"), ("User", "groupsvc"), ("Group", "groupsvc"),
    ],
)  # fmt: skip
def test_the_unit_says_what_the_documents_promise(name: str, value: str) -> None:
    assert [value] == setting(name)


def test_the_exit_codes_that_prevent_a_restart_are_those_of_which_the_daemon_says_so() -> None:
    codes = dict(re.findall(r"^ +(\d)  (.*)$", exit_codes or "", re.M))
    prevented = {code for code, text in codes.items() if "restart will not help" in text}
    assert prevented == set(setting("RestartPreventExitStatus")[0].split())


def test_the_page_for_operators_says_after_which_codes_it_is_left_stopped() -> None:
    rows = rows_under(["exit code", "what it means", "what systemd does"], OPERATIONS.read_text(encoding="utf-8"))
    assert re.findall(r"^ +(\d)  ", exit_codes or "", re.M) == [code for code, _, _ in rows]
    stopped = [code for code, _, what in rows if what.startswith("leaves it stopped")]
    assert stopped == ["0", *setting("RestartPreventExitStatus")[0].split()]


@pytest.mark.parametrize("arguments", [(), ("--check-config",), ("--check-config", "--json")])
def test_a_bad_configuration_is_not_started_again_and_an_address_in_use_is(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    """It was, every two seconds for ever."""
    bad = tmp_path / "groupsvcd.toml"
    bad.write_text("colour = 1\n")
    prevented = set(map(int, setting("RestartPreventExitStatus")[0].split()))
    assert daemon_main(["--config", str(bad), *arguments]) in prevented
    assert EXIT_CANNOT_BIND not in prevented


def test_the_time_for_a_stop_is_more_than_a_drain_takes() -> None:
    assert DRAIN_S + 10 <= int(setting("TimeoutStopSec")[0])
    assert ["SIGUSR2"] == setting("KillSignal")


def test_user_and_directories_are_declared_in_the_form_that_systemd_reads(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    for tool, snippet, flag in (
        ("systemd-sysusers", "groupsvc.sysusers", "--dry-run"),
        ("systemd-tmpfiles", "groupsvc.tmpfiles", "--create"),
    ):
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool}; on Debian and Ubuntu: apt install systemd")
        if tool == "systemd-tmpfiles":
            (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
            (root / "etc/group").write_text("root:x:0:\ngroupsvc:x:987:\n")
        done = subprocess.run([tool, flag, f"--root={root}", str(SYSTEMD / snippet)], capture_output=True, text=True)
        if flag == "--dry-run" and "unrecognized option" in done.stderr:
            continue  # before version 250
        assert (0, "") == (done.returncode, re.sub(r"(Would |Creating ).*\n", "", done.stderr)), done.stderr


# --- The daemon within it --------------------------------------------------------------------------------


@cache
def group_of_calls(name: str) -> frozenset[str]:
    """The system calls behind a name of systemd's."""
    if not name.startswith("@"):
        return frozenset({name})
    lines = analyzed("syscall-filter", "--no-pager", name).splitlines()
    members = [line.strip() for line in lines[1:] if line.strip() and not line.strip().startswith("#")]
    return frozenset().union(*map(group_of_calls, members))


def allowed_calls() -> set[str]:
    """What is left of all system calls by the unit, in the order in which it says so."""
    found: set[str] = set(group_of_calls("@default"))
    for line in setting("SystemCallFilter"):
        calls = frozenset().union(*map(group_of_calls, line.removeprefix("~").split()))
        found = found - calls if line.startswith("~") else found | calls
    return found


def filter_of(numbers: list[int], families: list[int], socket_call: int) -> bytes:
    """The program for the kernel: these are allowed, all others are answered with EPERM; of sockets these families."""
    allow = struct.pack("HBBI", RETURN, 0, 0, ALLOW)
    sockets = [struct.pack("HBBI", LOAD, 0, 0, FIRST_ARGUMENT)]
    for family in families:
        sockets += [struct.pack("HBBI", JUMP_IF_EQUAL, 0, 1, family), allow]
    sockets.append(struct.pack("HBBI", RETURN, 0, 0, EAFNOSUPPORT))
    code = [struct.pack("HBBI", LOAD, 0, 0, CALL_NUMBER)]
    code += [struct.pack("HBBI", JUMP_IF_EQUAL, 0, len(sockets), socket_call), *sockets]
    for number in numbers:
        code += [struct.pack("HBBI", JUMP_IF_EQUAL, 0, 1, number), allow]
    return b"".join([*code, struct.pack("HBBI", RETURN, 0, 0, EPERM)])


CONFINED = """
import ctypes, sys
from groupsvcd.__main__ import main
program = bytes.fromhex(sys.stdin.read())
prctl = ctypes.CDLL(None, use_errno=True).prctl
buffer = ctypes.create_string_buffer(program)
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
given = Filter(len(program) // 8, ctypes.addressof(buffer))
for request in ((%d, 1, 0, 0, 0), (%d, %d, 0, 0, 0), (%d, %d, ctypes.byref(given), 0, 0)):
    if prctl(*request):
        sys.exit(f"prctl{request[:2]}: error {ctypes.get_errno()}")
sys.exit(main(["--config", sys.argv[1]]))
""" % (PR_SET_NO_NEW_PRIVS, PR_SET_MDWE, MDWE_REFUSE_EXEC_GAIN, PR_SET_SECCOMP, SECCOMP_MODE_FILTER)  # noqa: UP031


def has_mdwe() -> bool:
    """Whether this kernel can refuse memory that is written and then run."""
    release = tuple(map(int, re.findall(r"\d+", platform.release())[:2]))
    return release >= (6, 3) and hasattr(ctypes.CDLL(None), "prctl")


def test_the_daemon_runs_with_the_system_calls_and_the_memory_that_the_unit_leaves_it(
    systemd_analyze: Path, short_path: Path
) -> None:
    """Everything that a domain of one does: a disk, a port for others, a client, a group, a clean end."""
    if platform.machine() != "x86_64" or not HEADER.exists() or not has_mdwe():
        pytest.skip("needs x86_64, a kernel from 6.3 on, and linux-libc-dev for the numbers of system calls")
    from groupsvc import connect

    numbers = {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)", HEADER.read_text())}
    families = [int(getattr(socket, name)) for name in setting("RestrictAddressFamilies")[0].split()]
    program = filter_of(
        sorted(numbers[name] for name in allowed_calls() if name in numbers), families, numbers["socket"]
    )
    config = short_path / "groupsvcd.toml"
    ports = PortBlock()
    address = f"ipc://{short_path}/client.sock"
    config.write_text(
        f'node = "n1"\nclient_address = "{address}"\nstate_directory = "{short_path}/state"\n'
        f'address = "{ports.address}"\njournal_directory = "{short_path}/journal"\n'
    )
    process = subprocess.Popen(
        [sys.executable, "-c", CONFINED, str(config)],
        env=environment(), stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(program.hex())
    process.stdin.close()
    log = ""
    try:
        for line in process.stderr:
            log += line
            if "in the domain" in line:
                break
        assert "in the domain" in log, log
        with connect(address) as session:
            group = session.join("db", events=True)
            assert group.propose_state(b"x").require() is not None
    finally:
        process.terminate()
        ports.close()
    assert 0 == process.wait(20), log + process.stderr.read()
    process.stderr.close()


def test_the_unit_is_an_ini_file_without_doubled_sections() -> None:
    parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(UNIT.read_text())
    assert ["Unit", "Service", "Install"] == parser.sections()
