"""Where the tests on Slurm cannot run they say so loudly, and in CI missing Slurm is a failure."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from launch import REPOSITORY

# Loaded before conftest.py asks what this machine has.
HIDE = """
import sys
sys.path.insert(0, {tests!r})
from cluster import requirements
requirements.no_namespaces = lambda: {namespaces!r}
requirements.missing_programs = lambda **_: {programs!r}
"""
MISSING = "not installed: slurmctld; on Debian and Ubuntu: apt-get install slurmctld"


@pytest.fixture
def run_without(tmp_path):
    def run(programs=None, namespaces=None, **variables):
        facts = {"programs": programs, "namespaces": namespaces}
        (tmp_path / "hide_slurm.py").write_text(
            HIDE.format(tests=str(REPOSITORY / "tests"), **facts)
        )
        kept = {k: v for k, v in os.environ.items() if k not in ("CI", "PYTEST_ADDOPTS")}
        command = [sys.executable, "-m", "pytest", "-p", "hide_slurm", "-p", "no:cacheprovider",
                   "-q", "tests/slurm/test_jobs.py"]  # fmt: skip
        return subprocess.run(
            command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300,
            env={**kept, "PYTHONPATH": str(tmp_path), **variables},
        )  # fmt: skip

    return run


@pytest.mark.parametrize(
    ("lacking", "reason"),
    [
        ({"programs": MISSING}, "not installed: slurmctld"),
        ({"namespaces": "Operation not permitted"}, "no virtual nodes on this machine: Operation"),
    ],
)
def test_tests_that_cannot_run_are_told_loudly_with_the_reason(run_without, lacking, reason):
    done = run_without(**lacking)
    assert done.returncode == 0, done.stdout
    assert "=== SLURM TESTS DID NOT RUN ===" in done.stdout
    block = done.stdout.split("SLURM TESTS DID NOT RUN")[1]
    assert f"tests on a real Slurm did not run: {reason}" in block
    count = int(block.split(" tests on a real Slurm")[0].splitlines()[-1])
    assert f"{count} skipped" in done.stdout.splitlines()[-1]
    assert count > 1


def test_in_ci_missing_slurm_is_a_failure(run_without):
    done = run_without(programs=MISSING, CI="true")
    assert done.returncode == 1
    assert "in CI these tests must run: not installed: slurmctld" in done.stdout
    assert "skipped" not in done.stdout.splitlines()[-1]
