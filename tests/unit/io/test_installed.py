"""``make install``: what is put where, and that it runs from there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from groupsvcd import man

ROOT = Path(__file__).parents[3]
SCRIPTS = ROOT / "daemon/packaging"


@pytest.fixture
def stage(tmp_path: Path) -> Path:
    """A system into which everything was installed, but what comes from the package index."""
    installed(tmp_path / "stage", "/usr")
    return tmp_path / "stage"


def installed(stage: Path, prefix: str) -> str:
    """Install; what was said."""
    variables = {**os.environ, "DESTDIR": str(stage), "PREFIX": prefix, "PYTHON": sys.executable, "PIP": "none"}
    variables.pop("PYTHONPATH", None)
    done = subprocess.run(
        ["sh", str(SCRIPTS / "install.sh")], env=variables, capture_output=True, text=True, timeout=60
    )
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout


def test_everything_has_its_place(stage: Path) -> None:
    for path in (
        "usr/bin/groupsvc",
        "usr/bin/groupsvcd",
        "usr/lib/systemd/system/groupsvcd.service",
        "usr/lib/sysusers.d/groupsvc.conf",
        "usr/lib/tmpfiles.d/groupsvc.conf",
        "usr/share/doc/groupsvc/groupsvcd.example.toml",
        "etc/groupsvc/groupsvcd.toml",
    ):
        assert (stage / path).is_file(), path
    assert "DESTDIR" not in (stage / "usr/bin/groupsvcd").read_text()
    assert str(stage) not in (stage / "usr/bin/groupsvcd").read_text()


def test_the_unit_names_the_program_where_it_was_put(stage: Path, tmp_path: Path) -> None:
    assert (
        "ExecStart=/usr/bin/groupsvcd --config /etc/groupsvc/groupsvcd.toml"
        in (stage / "usr/lib/systemd/system/groupsvcd.service").read_text()
    )
    installed(tmp_path / "other", "/opt/gs")
    unit = (tmp_path / "other/opt/gs/lib/systemd/system/groupsvcd.service").read_text()
    assert "ExecStart=/opt/gs/bin/groupsvcd --config /etc/groupsvc/groupsvcd.toml" in unit


def test_the_daemon_runs_from_there_and_finds_its_configuration_good(stage: Path) -> None:
    launcher = stage / "usr/bin/groupsvcd"
    launcher.write_text(launcher.read_text().replace('"/usr/lib', f'"{stage}/usr/lib'))
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("GROUPSVC_", "PYTHONPATH"))}
    done = subprocess.run(
        [str(launcher), "--config", str(stage / "etc/groupsvc/groupsvcd.toml"), "--check-config"],
        env={**variables, "RUNTIME_DIRECTORY": "/run/groupsvc"}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (0, "") == (done.returncode, done.stderr)
    assert "configuration is good" in done.stdout


def test_the_installed_configuration_uses_the_directories_of_the_unit(stage: Path) -> None:
    lines = (stage / "etc/groupsvc/groupsvcd.toml").read_text().splitlines()
    assert 'state_directory = "/var/lib/groupsvc"' in lines
    assert 'journal_directory = "/var/log/groupsvc"' in lines


def test_a_configuration_that_is_there_stays_as_it_is(stage: Path) -> None:
    mine = stage / "etc/groupsvc/groupsvcd.toml"
    mine.write_text('node = "mine"\n')
    installed(stage, "/usr")
    assert 'node = "mine"\n' == mine.read_text()


def test_a_package_is_made_of_it(tmp_path: Path) -> None:
    if shutil.which("dpkg-deb") is None or not Path("/usr/bin/python3").exists():
        pytest.skip("there is no dpkg-deb, or no Python of the system: a package for Debian is made on Debian")
    shutil.copytree(SCRIPTS, tmp_path / "real/daemon/packaging")
    for name in ("groupsvc", "pyproject.toml", "LICENSE", "CHANGELOG.md"):
        (tmp_path / "real" / name).symlink_to(ROOT / name)
    for name in ("groupsvcd", "systemd", "config"):
        (tmp_path / "real/daemon" / name).symlink_to(ROOT / "daemon" / name)
    man.write(tmp_path / "real/build/man")
    variables = {**os.environ, "PYTHON": sys.executable, "PIP": "none", "VERSION": "1.2.3.dev4"}
    script = tmp_path / "real/daemon/packaging/deb.sh"
    done = subprocess.run(["sh", str(script)], env=variables, capture_output=True, text=True, timeout=120)
    assert 0 == done.returncode, done.stderr
    package = done.stdout.split()[-1]
    listed = subprocess.run(["dpkg-deb", "--contents", package], capture_output=True, text=True, check=True).stdout
    assert "./usr/lib/systemd/system/groupsvcd.service" in listed
    assert {"root/root"} == {line.split()[1] for line in listed.splitlines()}
    for path in ("man/man8/groupsvcd.8.gz", "doc/groupsvc/copyright", "doc/groupsvc/changelog.gz"):
        assert f"./usr/share/{path}" in listed
    assert "__pycache__" not in listed
    told = subprocess.run(["dpkg-deb", "--field", package, "Package", "Version"], capture_output=True, text=True).stdout
    assert "Package: groupsvc\nVersion: 1.2.3~dev4\n" == told
    assert "groupsvc_1.2.3~dev4_" in Path(package).name
    subprocess.run(["dpkg-deb", "--extract", package, str(tmp_path / "out")], check=True)
    for program in ("groupsvc", "groupsvcd"):  # whatever runs the tests: the package depends on the Python of Debian
        assert "#!/usr/bin/python3" == (tmp_path / "out/usr/bin" / program).read_text().splitlines()[0]


def test_a_daemon_that_could_not_see_its_python_is_not_installed(tmp_path: Path) -> None:
    """A Python below a home directory, as some tools put it there: the unit hides those (`ProtectHome`)."""
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\necho /home/alice/.pyenv/versions/3.11/bin/python3\n")
    python.chmod(0o755)
    variables = {**os.environ, "DESTDIR": "", "PREFIX": str(tmp_path / "usr"), "PYTHON": str(python), "PIP": "none"}
    done = subprocess.run(
        ["sh", str(SCRIPTS / "install.sh")], env=variables, capture_output=True, text=True, timeout=60
    )
    assert 1 == done.returncode
    assert "make install PYTHON=/usr/bin/python3" in done.stderr
    assert not (tmp_path / "usr").exists()


@pytest.mark.parametrize(
    "script", [*sorted(SCRIPTS.rglob("*.sh")), *sorted(SCRIPTS.glob("debian/p*"))], ids=lambda one: one.name
)
def test_the_scripts_are_of_the_plain_shell(script: Path) -> None:
    done = subprocess.run(["sh", "-n", str(script)], capture_output=True, text=True)
    assert (0, "") == (done.returncode, done.stderr)


def test_pages_for_man_are_put_where_man_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `make man` has written them."""
    man.write(tmp_path / "pages")
    monkeypatch.setenv("MAN", str(tmp_path / "pages"))
    installed(tmp_path / "stage", "/usr")
    for page in ("man1/groupsvc.1", "man1/groupsvc-doctor.1", "man5/groupsvcd.toml.5", "man8/groupsvcd.8"):
        assert (tmp_path / "stage/usr/share/man" / page).is_file(), page
