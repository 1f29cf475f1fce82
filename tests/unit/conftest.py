"""What several files of unit tests use: a drawn run, and an environment outside of batch jobs."""

from __future__ import annotations

import pytest

from drawn_runs import USUAL, a_run


@pytest.fixture
def run(tmp_path):
    """A run whose times are drawn; a test may change its files."""
    return a_run(tmp_path / "run", USUAL)


@pytest.fixture
def outside_of_jobs(monkeypatch):
    """No batch job is known to this process."""
    for name in ("SLURM_JOB_ID", "SLURM_RESTART_COUNT"):
        monkeypatch.delenv(name, raising=False)
