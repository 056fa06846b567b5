"""Machines with a real systemd as their first process: Debian in directories, booted by systemd-nspawn.

Each machine has a file system, a host name and an address of its own, and all of them hang at one bridge in a network
of their own, which nobody else sees. A reboot is a reboot: every process ends, what was in /run is gone, what is on the
disk is there again. The kernel is the one of the machine below, so what a kernel does at boot is not tried.

Needs root, debootstrap and systemd-nspawn.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

PACKAGES = "python3,systemd,systemd-sysv,dbus,iproute2,procps"
BRIDGE = "groupsvc-fresh"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CGROUPS = Path("/sys/fs/cgroup")
NAMESPACES = ("--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root", "--wd")

BOOT_S = 60
COMMAND_S = 180
POWER_OFF_S = 60
REBOOT = 133
"""With this systemd-nspawn says that the machine wants to be booted again."""


class Broken(Exception):
    """Something was not as it should be; the text is for people."""


def needed() -> list[str]:
    """What is missing here, in words."""
    programs = {"debootstrap": "debootstrap", "systemd-nspawn": "systemd-container", "ip": "iproute2"}
    missing = [f"{name} (apt install {package})" for name, package in programs.items() if shutil.which(name) is None]
    return missing if os.geteuid() == 0 else ["root", *missing]


def on_this_machine(*command: str | Path) -> None:
    """Run it here; it must succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise Broken(f"{shlex.join(map(str, command))}: {(done.stdout + done.stderr).strip()[-2000:]}")


def debian(directory: Path) -> Path:
    """A Debian that was never booted, from its packages; what is there is taken again."""
    if not (directory / "usr/bin/python3").exists():
        directory.mkdir(parents=True, exist_ok=True)
        mirror = [os.environ["MIRROR"]] if os.environ.get("MIRROR") else []  # else that of debootstrap
        on_this_machine("debootstrap", "--variant=minbase", f"--include={PACKAGES}", _suite(), directory, *mirror)
        (directory / "etc/machine-id").write_text("uninitialized\n")
    return directory


def _suite() -> str:
    """That of this machine, for which packages are made here."""
    lines = Path("/etc/os-release").read_text().splitlines()
    return next((line.split("=")[1] for line in lines if line.startswith("VERSION_CODENAME=")), "bookworm")


class Machine:
    """One of them: ``name`` and ``address`` are those that the others see."""

    def __init__(self, name: str, number: int, base: Path, directory: Path) -> None:
        self.name = name
        self.address = f"10.77.7.{number}"
        self.root = directory
        self._netns = f"{BRIDGE}-{name}"
        self._process: subprocess.Popen[bytes] | None = None
        directory.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(directory, ignore_errors=True)
        on_this_machine("cp", "-a", "--reflink=auto", base, directory)
        (directory / "etc/hostname").write_text(f"{name}\n")

    # --- Power and cables ------------------------------------------------------------------------------------

    def plug_in(self) -> None:
        """A network card with an address, at the bridge."""
        inside = ("ip", "-netns", self._netns)
        on_this_machine("ip", "netns", "add", self._netns)
        on_this_machine(
            "ip", "-netns", BRIDGE, "link", "add", self.name, "type", "veth", "peer", "host0", "netns", self._netns
        )
        on_this_machine("ip", "-netns", BRIDGE, "link", "set", self.name, "master", "bridge", "up")
        on_this_machine(*inside, "address", "add", f"{self.address}/24", "dev", "host0")
        on_this_machine(*inside, "link", "set", "host0", "up")
        on_this_machine(*inside, "link", "set", "lo", "up")

    def switch_on(self) -> None:
        """Boot it; returns when commands can be given. What is started at boot may still wait for other machines."""
        with open(f"{self.root}.console", "wb") as console:
            self._process = subprocess.Popen(
                [
                    *self._in_a_place_of_its_own(),
                    "systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", "--resolv-conf=off",
                    "--timezone=off", "--link-journal=no", f"--directory={self.root}", f"--hostname={self.name}",
                    f"--machine={self._netns}", f"--network-namespace-path=/run/netns/{self._netns}",
                ],
                stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + BOOT_S
        while self._try("systemctl is-active basic.target dbus.service")[0] != 0:
            if self._ends_within(0.1) or time.monotonic() > deadline:
                raise Broken(f"{self.name} did not boot: {self._console()}")

    def reboot(self) -> None:
        """By its own command; returns when it is up again."""
        self._try("systemctl reboot")
        if self._process is None or self._process.wait(POWER_OFF_S) != REBOOT:
            raise Broken(f"{self.name} did not shut down for a reboot: {self._console()}")
        self.switch_on()

    def crash(self) -> None:
        """Every process is gone at once, as when the power fails. What was written is on the disk, though."""
        first = self._first_process()
        if self._process is None or first is None:
            raise Broken(f"{self.name} is off")
        os.kill(first, signal.SIGKILL)
        self._process.wait(POWER_OFF_S)
        self.switch_off()

    def switch_off(self) -> None:
        """Power off in good order, and by force if that takes too long."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(POWER_OFF_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None
        for place in self._places():
            for directory in sorted(place.rglob("*/"), reverse=True):
                directory.rmdir()
            if place.exists():
                place.rmdir()

    def _places(self) -> list[Path]:
        """Its control groups, where nobody else gives some: in those hierarchies that a systemd makes its own in."""
        if Path("/run/systemd/system").exists():
            return []
        places = [place for name in ("systemd", "unified") if (place := CGROUPS / name).exists()]
        return [place / self._netns for place in places or [CGROUPS]]

    def _in_a_place_of_its_own(self) -> list[str]:
        """Put before a command that starts a systemd: two of them in one control group end each other's services."""
        if not self._places():
            return ["systemd-run", "--quiet", "--scope", "--collect", "--property=Delegate=yes"]
        for place in self._places():
            place.mkdir(exist_ok=True)
        script = 'while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs"; shift; done; shift; exec "$@"'
        return ["sh", "-c", script, "sh", *map(str, self._places()), "--"]

    # --- Commands --------------------------------------------------------------------------------------------

    def run(self, command: str, *, expected: int = 0, seconds: float = COMMAND_S) -> str:
        """A line of shell, as root; what it prints, both of it. ``Broken`` if it ends otherwise."""
        code, said = self._try(command, seconds)
        if code != expected:
            raise Broken(f"{self.name}: `{command}` ended with {code} and not with {expected}:\n{said.strip()[-3000:]}")
        return said

    def until(self, command: str, seconds: float = 60) -> str:
        """Again and again until it succeeds."""
        quoted = shlex.quote(command)
        return self.run(f"timeout {seconds} sh -c 'until sh -c \"$1\" >/tmp/said 2>&1; do sleep 0.1; done' sh {quoted};"
                        " code=$?; cat /tmp/said; exit $code")  # fmt: skip

    def write(self, path: str, text: str) -> None:
        """A file of root's on its disk."""
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def shown(self, name: str) -> str:
        """What ``systemctl show`` says of the daemon."""
        return self.run(f"systemctl show --property={name} --value groupsvcd").strip()

    def shown_log(self) -> str:
        """The end of what the daemon has said, for who looks for a reason; also of a machine that is off."""
        return self._try("journalctl --unit=groupsvcd --no-pager --lines=25; systemctl status --no-pager groupsvcd")[1]

    def _try(self, command: str, seconds: float = COMMAND_S) -> tuple[int, str]:
        first = self._first_process()
        if first is None:
            return 255, f"{self.name} is off"
        words = ["nsenter", f"--target={first}", *NAMESPACES]
        words += ["env", "-i", f"PATH={PATH}", "LANG=C.UTF-8", "HOME=/root", "TERM=dumb", "sh", "-c", command]
        try:
            done = subprocess.run(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds
            )
        except subprocess.TimeoutExpired as late:
            return 124, f"not done after {seconds} s: {(late.stdout or b'').decode()}"
        return done.returncode, done.stdout.decode(errors="replace")

    def _first_process(self) -> int | None:
        """The number, here, of its process 1."""
        if self._process is None:
            return None
        try:
            children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
            for child in map(int, children):
                numbers = Path(f"/proc/{child}/status").read_text().split("NSpid:")[1].splitlines()[0].split()
                if len(numbers) > 1 and numbers[-1] == "1":
                    return child
        except (OSError, IndexError):
            pass
        return None

    def _ends_within(self, seconds: float) -> bool:
        try:
            return self._process is None or self._process.wait(seconds) is not None
        except subprocess.TimeoutExpired:
            return False

    def _console(self) -> str:
        return Path(f"{self.root}.console").read_text(errors="replace")[-2000:]


def unplug_all(names: list[str]) -> None:
    """No network of ours is left, also not of a run that was killed."""
    for netns in [BRIDGE, *(f"{BRIDGE}-{name}" for name in names)]:
        if Path(f"/run/netns/{netns}").exists():
            on_this_machine("ip", "netns", "delete", netns)


def three(base: Path, directory: Path) -> list[Machine]:
    """n1, n2 and n3, at one bridge, switched off."""
    names = ["n1", "n2", "n3"]
    unplug_all(names)
    on_this_machine("ip", "netns", "add", BRIDGE)
    on_this_machine("ip", "-netns", BRIDGE, "link", "add", "bridge", "type", "bridge")
    on_this_machine("ip", "-netns", BRIDGE, "link", "set", "bridge", "up")
    machines = [Machine(name, number, base, directory / name) for number, name in enumerate(names, start=1)]
    for machine in machines:
        machine.plug_in()
    return machines


def say(text: str) -> None:
    """For who watches."""
    print(text, flush=True)
    sys.stdout.flush()
