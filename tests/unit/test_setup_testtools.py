"""What the set-up installs for the tests alone: Slurm, a distributed file system, small tools."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from test_setup import ROOT, SETUP, bash, program

SLURM = {"munge", "slurmctld", "slurmd", "slurm-client"}
MOOSEFS = {"moosefs-master", "moosefs-chunkserver", "moosefs-client", "moosefs-cli"}
DAEMONS = {"munge", "slurmctld", "slurmd", "moosefs-master", "moosefs-chunkserver"}


class Machine:
    """A Debian with none of it, where what the package system is told to do is written down."""

    def __init__(self, path):
        self.path, self.tools, self._done = path, path / "tools", path / "done"
        self.tools.mkdir()
        (path / ".build").mkdir()
        for name in ("bash", "cut", "env", "find", "grep", "mkdir", "sed", "sha256sum", "sleep",
                     "sort", "tail", "touch"):  # fmt: skip
            (self.tools / name).symlink_to(shutil.which(name))
        last = "for last; do :; done"
        self.answers("id", "echo 0")
        self.answers("unshare", "exit 0")
        self.answers("systemctl", "")
        self.answers("apt-cache", "exit 0")
        self.answers("dpkg-query", f'{last}; [[ -e $0-$last ]] && echo "install ok installed"')
        self.answers(
            "apt-get",
            f"""
            [[ "$*" == *" install "* ]] || exit 0
            for name; do [[ $name == [-D]* ]] || touch {self.tools}/dpkg-query-"$name"; done""",
        )

    def answers(self, name, body):
        note = f'printf "%s " "${{0##*/}}" "$@" >>{self._done}; echo >>{self._done}'
        (self.tools / name).unlink(missing_ok=True)
        program(self.tools, name, f"{note}\n{body}")

    def set_up(self, **variables):
        """Run the step; the real machine's programs and devices are out of sight."""
        self._done.unlink(missing_ok=True)
        # Debian's path is what `lacking` adds, and only this machine's apt-get and sudo are there.
        script = """
            type() { [[ $2 == apt-get || $2 == sudo && -e ${PATH%%:*}/sudo ]]; }
            hold_back() { echo "hold back $*"; }
            leave_stopped() { echo "leave stopped $*"; }
            install_test_tools
        """
        return bash(script, self.path, path=str(self.tools), **variables)

    @property
    def installations(self):
        """The packages of every installation that was asked for, and the options."""
        lines = self._done.read_text().splitlines() if self._done.exists() else []
        return [set(line.split()) for line in lines if " install " in line]

    @property
    def refreshes(self):
        return self._done.read_text().count(" update ") if self._done.exists() else 0


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_slurm_is_installed_as_any_other_package_and_nothing_is_removed_for_it(machine):
    done = machine.set_up()
    assert done.returncode == 0, done.stderr
    wanted = set().union(*machine.installations)
    assert wanted >= SLURM | {"iproute2", "mount", "util-linux", "hdf5-tools", "shellcheck"}
    assert (wanted >= MOOSEFS) == Path("/dev/fuse").is_char_device()
    for options in machine.installations:
        assert options >= {"--no-remove", "--no-install-recommends"}
    assert "WARNING" not in done.stderr


def test_no_daemon_of_these_packages_is_left_running(machine):
    done = machine.set_up()
    held = [set(line.split()[2:]) for line in done.stdout.splitlines() if "hold back" in line]
    assert set().union(*held) == DAEMONS & set().union(*machine.installations)
    assert done.stdout.count("leave stopped munge slurmctld slurmd") == 1


def test_a_daemon_that_was_there_before_is_left_alone(machine):
    (machine.tools / "dpkg-query-munge").touch()
    done = machine.set_up()
    assert "hold back slurmctld slurmd\n" in done.stdout
    assert "leave stopped slurmctld slurmd\n" in done.stdout


def test_only_what_is_missing_is_installed(tmp_path):
    program(tmp_path / "there", "slurmctld", "")
    path = f"{tmp_path / 'there'}:{os.environ['PATH']}"
    script = "lacking slurmctld slurmctld no-such-program a another-one a bash b"
    assert bash(script, tmp_path, path=path).stdout.split() == ["a"]
    assert bash("lacking bash b", tmp_path).stdout == ""


def test_without_the_right_a_warning_says_what_does_not_run_and_what_to_install(machine):
    done = machine.set_up(PFFBENCH_NO_SYSTEM="1")
    assert done.returncode == 0
    assert not machine.installations
    assert "WARNING: the tests marked slurm do not run, for lack of:" in done.stderr
    assert "PFFBENCH_NO_SYSTEM is set" in done.stderr
    assert "apt-get install --no-install-recommends iproute2 mount munge" in done.stderr


def test_a_password_is_not_asked_for(machine):
    machine.answers("id", "echo 1000")
    machine.answers("sudo", "exit 1")
    done = machine.set_up()
    assert not machine.installations
    assert "this user may not install them" in done.stderr


def test_beside_an_active_environment_nothing_is_installed(machine):
    (machine.path / ".build" / "over-active").touch()
    done = machine.set_up()
    assert not machine.installations
    assert "an environment is active" in done.stderr


def test_slurm_is_not_installed_where_it_could_not_run(machine):
    machine.answers("unshare", 'echo "unshare failed: Operation not permitted"; exit 1')
    done = machine.set_up()
    assert not [names for names in machine.installations if names & (SLURM | MOOSEFS)]
    assert "WARNING: the tests marked slurm do not run" in done.stderr
    assert "Operation not permitted" in done.stderr


def test_an_archive_without_a_package_installs_the_others_and_is_asked_once_a_day(machine):
    machine.answers("apt-cache", '[[ "$*" != *slurmd ]]')
    done = machine.set_up()
    slurm = next(names for names in machine.installations if "slurmctld" in names)
    assert "slurmd" not in slurm
    assert "WARNING: the tests marked slurm do not run" in done.stderr
    again = machine.set_up()
    assert "tried again tomorrow" in again.stderr
    slurm = [names for names in machine.installations if names & SLURM]
    assert not slurm


@pytest.mark.parametrize("target", ["env", "bench"])
def test_who_only_measures_gets_none_of_it(target):
    makefile = (ROOT / "Makefile").read_text()
    recipe = makefile.split(f"\n{target}:")[1].split("\n\n")[0]
    assert "--tests" not in recipe
    assert "--tests" in makefile.split("\ntest:")[1].split("\n\n")[0]


def test_the_set_up_refuses_an_argument_it_does_not_know():
    command = [SETUP / "bootstrap", "--test"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=os.environ)
    assert done.returncode == 1
    allowed = "--login, --tests, --zarr2, --study NAME, --download DIR and --from DIR"
    assert f"no argument but {allowed}, and was given: --test" in done.stderr


# --- what systemd is told, and an init without it


def systemctl_calls(tmp_path, script):
    """Run a piece of script with /run/systemd/system in place; return what systemctl was told."""
    body = f'printf "%s " "$@" >>{tmp_path}/calls; echo >>{tmp_path}/calls'
    program(tmp_path / "tools", "systemctl", body)
    path = f"{tmp_path / 'tools'}:{os.environ['PATH']}"
    told = bash(f"SUDO=; systemd_runs() {{ true; }}; {script}", tmp_path, path=path)
    assert told.returncode == 0, told.stderr
    calls = tmp_path / "calls"
    return [line.strip() for line in calls.read_text().splitlines()] if calls.exists() else []


def test_systemd_neither_starts_nor_enables_them_also_after_an_upgrade(tmp_path):
    assert systemctl_calls(tmp_path, "hold_back munge slurmd; installed() { true; }") == [
        "mask --quiet munge.service slurmd.service"
    ]
    (tmp_path / "calls").unlink()
    script = "installed() { [[ $1 == munge ]]; }; leave_stopped munge slurmd"
    # What could not be installed leaves nothing behind.
    assert systemctl_calls(tmp_path, script) == ["unmask --quiet slurmd.service"]


def test_without_a_new_daemon_systemd_is_told_nothing(tmp_path):
    assert systemctl_calls(tmp_path, "hold_back; leave_stopped") == []
