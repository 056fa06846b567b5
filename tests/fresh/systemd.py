"""The package on three machines with a real systemd: what docs/OPERATIONS.md says, played from beginning to end.

    tests/fresh/systemd.py PACKAGE [DIRECTORY]      `make systemd` makes the package first

An operator installs the package, makes keys, writes the configuration and starts the service; then everything happens
to it that happens to services: reload, hang, crash, stop, drain, reboot, a machine that is missing, an upgrade, a
package that is removed. Each line that is printed is a promise that was kept, with the seconds it took. The first one
that is not ends the play, and the logs of all machines are shown.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

from machines import Broken, Machine, debian, needed, on_this_machine, say, three, unplug_all

ROOT = Path(__file__).resolve().parents[2]
CONFIG = "/etc/groupsvc/groupsvcd.toml"
WATCHDOG_S = 20

INSTALLED = {
    "/usr/bin/groupsvc": "755 root:root",
    "/usr/bin/groupsvcd": "755 root:root",
    "/usr/lib/systemd/system/groupsvcd.service": "644 root:root",
    CONFIG: "644 root:root",
    "/etc/groupsvc": "755 root:root",
    "/etc/groupsvc/keys": "750 root:groupsvc",
}
RUNNING = {
    "/run/groupsvc": "755 groupsvc:groupsvc",
    "/run/groupsvc/client.sock": "660 groupsvc:groupsvc",
    "/var/lib/groupsvc": "700 groupsvc:groupsvc",
    "/var/log/groupsvc": "750 groupsvc:groupsvc",
}


def look(condition: object, text: str) -> None:
    """Nothing is said if it is so."""
    if not condition:
        raise Broken(text)


def modes_are(machine: Machine, expected: dict[str, str]) -> None:
    """Every path is there, with this mode and owner."""
    for path, mode in expected.items():
        found = machine.run(f"stat --format='%a %U:%G' {path}").strip()
        look(found == mode, f"{machine.name}: {path} is {found} and not {mode}")


def name_server(machine: Machine) -> str:
    """Who it is, as the machine sees it."""
    return str(json.loads(machine.run("groupsvc status --json"))["name_server"])


def log_of(machine: Machine, since: str = "") -> str:
    """What the daemon has logged, in this boot, from a cursor on."""
    return machine.run(f"journalctl --boot --unit=groupsvcd --output=cat --no-pager {since}")


def cursor(machine: Machine) -> str:
    """From here on."""
    said = machine.run("journalctl --show-cursor --lines=0 --no-pager")
    return f"--after-cursor='{said.rsplit('cursor: ', 1)[1].strip()}'"


# --- The promises, in the order in which an operator meets them ----------------------------------------------


def the_package_is_installed_and_starts_nothing(machines: list[Machine], package: Path) -> None:
    for machine in machines:
        machine.write("/root/groupsvc.deb", "")
        (machine.root / "root/groupsvc.deb").write_bytes(package.read_bytes())
        said = machine.run("dpkg -i /root/groupsvc.deb")
        look("warning" not in said.lower() and "error" not in said.lower(), said)
        modes_are(machine, INSTALLED)
        look(machine.shown("ActiveState") == "inactive", "it runs before it is configured")
        machine.run("dpkg --verify groupsvc")
        look("groupsvc 0" in machine.run("groupsvc --version"), "the command does not run")


def keys_and_configuration_are_written_and_good(machines: list[Machine]) -> None:
    keys = {}
    for machine in machines:
        machine.run(f"groupsvc keygen --name {machine.name} --out /etc/groupsvc/keys")
        machine.run(f"chown groupsvc: /etc/groupsvc/keys/{machine.name}.key")
        public = machine.run(f"cat /etc/groupsvc/keys/{machine.name}.pub")
        keys[machine.name] = re.findall(r'"(.*)"', public)[0]
    for machine in machines:
        installed = machine.run(f"cat {CONFIG}").replace('#node = "n1"', f'node = "{machine.name}"')
        installed = installed.replace('#key_file = ""', f'key_file = "/etc/groupsvc/keys/{machine.name}.key"')
        voters = "".join(f'{one.name} = "tcp://{one.address}:7400"\n' for one in machines)
        public = "".join(f'{name} = "{key}"\n' for name, key in keys.items())
        machine.write(CONFIG, f"{installed}\n[voters]\n{voters}\n[node_keys]\n{public}")
        said = machine.run(f"runuser -u groupsvc -- groupsvcd --config {CONFIG} --check-config")
        look("configuration is good" in said, said)


def a_node_that_waits_for_others_is_activating_for_as_long_as_it_takes(machines: list[Machine]) -> None:
    one, two, _ = machines
    one.run("mkdir -p /run/systemd/system/groupsvcd.service.d")
    one.run("printf '[Service]\\nTimeoutStartSec=4\\n' >/run/systemd/system/groupsvcd.service.d/soon.conf")
    one.run("systemctl daemon-reload")
    for machine in (one, two):
        machine.run("systemctl enable --now --no-block groupsvcd")
    one.until("systemctl status groupsvcd | grep -q 'the domain is not formed yet: waits for n3'")
    pid = one.shown("MainPID")
    one.run("sleep 6")
    look(one.shown("ActiveState") == "activating", f"n1 is {one.shown('ActiveState')}")
    look(one.shown("MainPID") == pid, "systemd has given up waiting, and started it anew")
    one.run("rm -r /run/systemd/system/groupsvcd.service.d && systemctl daemon-reload")


def a_start_returns_when_the_node_is_in_the_domain(machines: list[Machine]) -> None:
    last = machines[2]
    last.run("systemctl enable --now groupsvcd")
    last.run("groupsvc status")
    for machine in machines:
        machine.until("systemctl is-active groupsvcd")
        machine.run("groupsvc status")
        modes_are(machine, RUNNING)
        look("in the domain" in machine.shown("StatusText"), machine.shown("StatusText"))
    machines[0].run("groupsvc doctor")


def the_socket_is_for_the_group(machines: list[Machine]) -> None:
    one = machines[0]
    one.run("useradd alice && useradd bob && usermod --append --groups groupsvc alice")
    one.run("runuser -u alice -- groupsvc status")
    said = one.run("runuser -u bob -- groupsvc status", expected=3)
    look("may not open" in said, said)


def the_log_can_be_searched_by_level_and_by_event(machines: list[Machine]) -> None:
    one = machines[0]
    lines = [json.loads(line) for line in one.run("journalctl --unit=groupsvcd --output=json").splitlines()]
    ours = [line for line in lines if line.get("GROUPSVC_EVENT")]
    look({line["GROUPSVC_NODE"] for line in ours} == {"n1"}, f"no line has our fields: {lines[-1]}")
    look("ready" in one.run("journalctl --unit=groupsvcd GROUPSVC_EVENT=ready --output=cat"), "no event is found")
    look(all(line["SYSLOG_IDENTIFIER"] == "groupsvcd" for line in ours), "not all lines are groupsvcd's")


def a_reload_is_done_and_one_with_a_mistake_changes_nothing(machines: list[Machine]) -> None:
    one = machines[0]
    pid, here = one.shown("MainPID"), cursor(one)
    one.run(f"sed -i 's/^#log_level = .*/log_level = \"debug\"/' {CONFIG} && systemctl reload groupsvcd")
    one.until(f"journalctl --unit=groupsvcd --output=cat {here} | grep -q reloaded")
    here = cursor(one)
    one.run(f"sed -i 's/^log_level = .*/log_level = \"loud\"/' {CONFIG} && systemctl reload groupsvcd")
    one.until(f"journalctl --unit=groupsvcd --output=cat {here} | grep -q 'not reloaded'")
    look(
        "not reloaded" in one.run("journalctl --boot --unit=groupsvcd --priority=err"), "it is no error in the journal"
    )
    one.run(f"sed -i 's/^log_level = .*/#log_level = \"info\"/' {CONFIG} && systemctl reload groupsvcd")
    look((one.shown("MainPID"), one.shown("ActiveState")) == (pid, "active"), "the daemon is another one")


def a_daemon_that_hangs_is_killed_and_comes_back(machines: list[Machine]) -> None:
    one, two, _ = machines
    pid = two.shown("MainPID")
    two.run(f"kill -STOP {pid}")
    one.until("systemctl status groupsvcd | grep -q '2 nodes are up'", WATCHDOG_S // 2)
    two.until(f"test $(systemctl show --property=MainPID --value groupsvcd) != {pid}", WATCHDOG_S + 5)
    two.until("systemctl is-active groupsvcd", 30)
    two.run("groupsvc status")
    look(two.shown("NRestarts") == "1", f"restarts: {two.shown('NRestarts')}")
    look("Watchdog timeout" in log_of(two), log_of(two)[-500:])


def a_daemon_that_is_killed_comes_back(machines: list[Machine]) -> None:
    last = machines[2]
    pid = last.shown("MainPID")
    last.run(f"kill -KILL {pid}")
    last.until(f"test $(systemctl show --property=MainPID --value groupsvcd) != {pid} && systemctl is-active groupsvcd")
    last.run("groupsvc status")


def a_stop_is_a_drain_and_the_state_is_there_afterwards(machines: list[Machine]) -> None:
    machines[0].run("groupsvc config set limits.clients_max 777")
    leader = next(one for one in machines if one.name == name_server(machines[0]))
    other = next(one for one in machines if one is not leader)
    here = cursor(leader)
    leader.run("systemctl stop groupsvcd")
    said = log_of(leader, here)
    look("drain" in said, f"it was not drained: {said}")
    look(
        leader.shown("Result") == "success" and leader.shown("ExecMainStatus") == "0",
        leader.run("systemctl status groupsvcd", expected=3),
    )
    look(name_server(other) != leader.name, "the office was not handed over")
    leader.run("test -d /var/lib/groupsvc -a ! -e /run/groupsvc")
    leader.run("systemctl start groupsvcd")
    leader.run("groupsvc status")
    look("blank" not in leader.run("groupsvc status"), "it has forgotten what it has promised")


def drained_by_the_command_it_stays_stopped(machines: list[Machine]) -> None:
    two = machines[1]
    two.run("groupsvc drain")
    two.until("test $(systemctl is-active groupsvcd) = inactive", 10)
    two.run("sleep 4")  # twice RestartSec
    look(two.shown("ActiveState") == "inactive", f"it is {two.shown('ActiveState')}")
    two.run("systemctl start groupsvcd && groupsvc status")


def a_state_directory_of_another_node_is_for_a_person(machines: list[Machine]) -> None:
    """As when the disk of n2 was copied for n3."""
    _, two, last = machines
    last.run("systemctl stop groupsvcd && mv /var/lib/groupsvc /var/lib/kept")
    on_this_machine("cp", "-a", two.root / "var/lib/groupsvc", last.root / "var/lib/groupsvc")
    last.run("chown -R groupsvc: /var/lib/groupsvc")
    last.run("systemctl start groupsvcd", expected=1)
    last.run("sleep 4")  # twice RestartSec
    said = last.run("systemctl status groupsvcd", expected=3)
    look((last.shown("ActiveState"), last.shown("ExecMainStatus")) == ("failed", "4"), said)
    last.run("rm -r /var/lib/groupsvc && mv /var/lib/kept /var/lib/groupsvc")
    last.run("systemctl start groupsvcd && groupsvc status")


def a_bad_configuration_is_for_a_person(machines: list[Machine]) -> None:
    """In two seconds it would be no better."""
    last = machines[2]
    last.run(f"systemctl stop groupsvcd && cp -p {CONFIG} /root/good.toml && sed -i '1i colour = 1' {CONFIG}")
    last.run("systemctl start groupsvcd", expected=1)
    last.run("sleep 4")  # twice RestartSec
    said = last.run("systemctl status groupsvcd", expected=3)
    look((last.shown("ActiveState"), last.shown("ExecMainStatus")) == ("failed", "2"), said)
    last.run(f"mv /root/good.toml {CONFIG} && systemctl start groupsvcd && groupsvc status")


def one_after_the_other_they_are_restarted(machines: list[Machine]) -> None:
    for machine in machines:
        machine.run("systemctl restart groupsvcd && groupsvc status")


def a_machine_that_reboots_is_in_the_domain_again(machines: list[Machine]) -> None:
    last = machines[2]
    last.reboot()
    last.until("systemctl is-active groupsvcd")
    last.run("groupsvc status")


def after_all_have_crashed_the_domain_knows_what_was_decided(machines: list[Machine]) -> None:
    for machine in machines:
        machine.crash()
    for machine in machines:
        machine.switch_on()
    for machine in machines:
        machine.until("systemctl is-active groupsvcd")
        said = machine.run("groupsvc config get limits.clients_max")
        look("777" in said, said)
    machines[0].run("groupsvc config unset limits.clients_max")


def what_is_ordered_behind_it_waits_for_the_domain(machines: list[Machine]) -> None:
    one, *others = machines
    unit = "[Unit]\nAfter=groupsvcd.service\nRequires=groupsvcd.service\n"
    service = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=groupsvc status\n"
    one.write("/etc/systemd/system/behind.service", unit + service)
    one.run("systemctl daemon-reload")
    for machine in machines:
        machine.run("systemctl stop groupsvcd")
    one.run("systemctl start --no-block behind")
    one.until("systemctl status groupsvcd | grep -q 'waits'")
    look(one.run("systemctl is-active behind", expected=3).strip() == "inactive", "it was not kept waiting")
    for machine in others:
        machine.run("systemctl start --no-block groupsvcd")
    one.until("systemctl is-active behind")


def the_unit_exposes_little(machines: list[Machine]) -> None:
    said = machines[0].run("systemd-analyze security --threshold=20 --no-pager groupsvcd")
    say("        " + said.strip().splitlines()[-1].lstrip("→ "))


def an_upgrade_keeps_the_configuration_and_returns_with_a_node_in_the_domain(machines: list[Machine]) -> None:
    one = machines[0]
    before, pid = one.run(f"sha256sum {CONFIG}"), one.shown("MainPID")
    one.run("DEBIAN_FRONTEND=noninteractive dpkg -i /root/groupsvc.deb")
    one.run("groupsvc status")
    look(one.run(f"sha256sum {CONFIG}") == before, "the configuration is another one")
    look(one.shown("MainPID") != pid, "the older version still runs")


def removed_it_leaves_what_is_the_operators_and_purged_nothing(machines: list[Machine]) -> None:
    last = machines[2]
    here = cursor(last)
    last.run("dpkg --remove groupsvc")
    look("drain" in log_of(last, here), "it was not drained")
    last.run(f"test -e {CONFIG} -a -d /var/lib/groupsvc -a -e /etc/groupsvc/keys/n3.key -a ! -e /usr/lib/groupsvc")
    machines[0].run("groupsvc status")
    last.run("dpkg --purge groupsvc")
    left = last.run(
        "find / -xdev -name '*groupsvc*' -not -path '/proc/*' -not -path '/root/*' -not -path '/var/lib/dpkg/*'"
    )
    look(not left.strip(), f"left behind:\n{left}")


def installed_without_a_package_it_runs_too(machines: list[Machine]) -> None:
    """A domain of one: what `make install` has put there, and nothing written into its configuration."""
    last = machines[2]
    last.run("rm -rf /etc/groupsvc; userdel groupsvc")
    settings = (f"DESTDIR={last.root}", "PREFIX=/usr/local", "PYTHON=/usr/bin/python3")
    on_this_machine("env", *settings, "sh", ROOT / "daemon/packaging/install.sh")
    last.run("systemd-sysusers && systemd-tmpfiles --create && systemctl daemon-reload")
    modes_are(last, {path: mode for path, mode in INSTALLED.items() if path.startswith("/etc")})
    last.run("systemctl enable --now groupsvcd && groupsvc status")
    modes_are(last, RUNNING)
    last.run("systemctl restart groupsvcd && groupsvc doctor")


PROMISES: list[Callable[[list[Machine]], None]] = [
    keys_and_configuration_are_written_and_good,
    a_node_that_waits_for_others_is_activating_for_as_long_as_it_takes,
    a_start_returns_when_the_node_is_in_the_domain,
    the_socket_is_for_the_group,
    the_log_can_be_searched_by_level_and_by_event,
    a_reload_is_done_and_one_with_a_mistake_changes_nothing,
    a_daemon_that_hangs_is_killed_and_comes_back,
    a_daemon_that_is_killed_comes_back,
    a_stop_is_a_drain_and_the_state_is_there_afterwards,
    drained_by_the_command_it_stays_stopped,
    a_state_directory_of_another_node_is_for_a_person,
    a_bad_configuration_is_for_a_person,
    one_after_the_other_they_are_restarted,
    a_machine_that_reboots_is_in_the_domain_again,
    after_all_have_crashed_the_domain_knows_what_was_decided,
    what_is_ordered_behind_it_waits_for_the_domain,
    the_unit_exposes_little,
    an_upgrade_keeps_the_configuration_and_returns_with_a_node_in_the_domain,
    removed_it_leaves_what_is_the_operators_and_purged_nothing,
    installed_without_a_package_it_runs_too,
]


def play(machines: list[Machine], package: Path) -> None:
    """All of it; ``Broken`` at the first promise that is."""
    for machine in machines:
        machine.switch_on()
    for promise in (lambda them: the_package_is_installed_and_starts_nothing(them, package), *PROMISES):
        began = time.monotonic()
        name = promise.__name__ if promise in PROMISES else the_package_is_installed_and_starts_nothing.__name__
        try:
            promise(machines)
        except Broken as problem:
            raise Broken(f"{name.replace('_', ' ')}: {problem}") from None
        say(f"  {time.monotonic() - began:5.1f} s  {name.replace('_', ' ')}")


def main(arguments: list[str]) -> int:
    """0: every promise was kept."""
    missing = needed()
    if not arguments or missing:
        say(f"systemd.py: this needs {', '.join(missing)}" if missing else str(__doc__))
        return 2
    directory = Path(arguments[1]) if len(arguments) > 1 else ROOT / "build/systemd"
    machines = three(debian(directory / "base"), directory)
    try:
        play(machines, Path(arguments[0]))
    except Broken as problem:
        say(f"BROKEN  {problem}")
        for machine in machines:
            say(f"--- {machine.name}\n{machine.shown_log()}")
        return 1
    finally:
        for machine in machines:
            machine.switch_off()
        unplug_all([machine.name for machine in machines])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
