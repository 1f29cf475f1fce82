"""A bare Debian of another release: how it is made and entered, and what is said without one.

debootstrap and the namespaces are stand-ins here; `make platform` uses the real ones.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SETUP = Path(__file__).resolve().parents[2] / "setup"
STAND_INS = {
    "id": "echo 0",
    # DIRECTORY is the last argument but one.
    "debootstrap": """
        echo "$*" >>"$LOG"
        if [[ -e $BROKEN ]]; then echo "E: Failed getting release file"; exit 1; fi
        shift $(($# - 2)); mkdir -p "$1"/{etc,root,usr/local/share/ca-certificates}""",
    "chroot": "true",
    "apt-get": "exit 1",
    # It asks whether anything can be mounted, makes the system, or enters it.
    "unshare": """
        if [[ $* == *"mount --bind / /" ]]; then exit; fi
        if [[ $4 == debootstrap ]]; then shift 3; exec "$@"; fi
        while [[ $1 != enter ]]; do shift; done
        tree=$2; shift 2; exec env -i -C "$tree/root/pffbench" "$@" """,
}


@pytest.fixture
def machine(tmp_path):
    """Return a function that runs setup/chroot of a checkout, and the directory of its tools."""
    checkout, tools = tmp_path / "checkout", tmp_path / "tools"
    shutil.copytree(SETUP, checkout / "setup", ignore=shutil.ignore_patterns("__pycache__"))
    (checkout / ".gitignore").write_text("/.build/\n")
    commit(checkout, "first")
    tools.mkdir()
    for name, body in STAND_INS.items():
        write_tool(tools, name, body)

    def run(*arguments):
        return subprocess.run(
            [checkout / "setup" / "chroot", *arguments],
            capture_output=True, text=True, timeout=300,
            env={"PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(tmp_path),
                 "LOG": str(tmp_path / "log"), "BROKEN": str(tmp_path / "broken"), "SECRET": "1"},
        )  # fmt: skip

    return run, tmp_path


def write_tool(directory, name, body):
    (directory / name).write_text(f"#!/bin/bash\n{body}\n")
    (directory / name).chmod(0o755)


def commit(checkout, text):
    (checkout / "file").write_text(text)
    git = ["git", "-C", checkout, "-c", "safe.directory=*"]
    git += ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    if not (checkout / ".git").exists():
        subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "--quiet", "-m", text], check=True)


@pytest.mark.parametrize(
    ("tool", "body", "reason"),
    [
        ("id", "echo 1000", "takes root"),
        ("unshare", "echo unshare: Operation not permitted >&2; exit 1", "Operation not permitted"),
        ("debootstrap", "echo E: No such script; exit 1", "E: No such script"),
    ],
)
def test_a_machine_that_allows_none_says_so_with_a_status_of_its_own(machine, tool, body, reason):
    run, directory = machine
    write_tool(directory / "tools", tool, body)
    done = run("trixie", "true")
    assert done.returncode == 77
    (said,) = [line for line in done.stderr.splitlines() if "NOT PROVED HERE" in line]
    assert reason in said


def test_the_system_is_made_once_and_after_an_interruption(machine):
    run, directory = machine
    (directory / "broken").touch()
    assert run("trixie", "true").returncode == 77
    (directory / "broken").unlink()
    for _ in range(2):
        assert run("trixie", "true").returncode == 0
    calls = (directory / "log").read_text().splitlines()
    assert len(calls) == 2
    assert " trixie " in calls[-1]


def test_a_command_sees_what_is_committed_and_what_the_last_one_left(machine):
    run, directory = machine
    if os.geteuid() == 0:  # as in a container of CI, where another user made the checkout
        os.chown(directory / "checkout" / ".git", 12345, 12345)
        os.chown(directory / "checkout", 12345, 12345)
    first = run("trixie", "bash", "-c", "mkdir .build; touch .build/made; echo new >file")
    assert first.returncode == 0, first.stderr
    commit(directory / "checkout", "second")
    (directory / "checkout" / "file").write_text("not committed")
    done = run("trixie", "cat", "file", ".build/made")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("does not take part\nsecond")


def test_bare_begins_anew(machine):
    run, _ = machine
    assert run("trixie", "touch", ".build").returncode == 0
    assert run("--bare", "trixie", "test", "-e", ".build").returncode == 1


def test_the_status_and_the_variables_are_those_of_the_command(machine):
    run, _ = machine
    assert run("trixie", "sh", "-c", "exit 3").returncode == 3
    done = run("trixie", "NAME=value", "env")
    assert "NAME=value" in done.stdout
    assert "HOME=/root" in done.stdout
    assert "SECRET" not in done.stdout


def test_a_release_is_asked_for(machine):
    run, _ = machine
    done = run()
    assert done.returncode == 1
    assert "needs the name of a Debian release" in done.stderr
