"""The cluster that every test here runs on, and what is said where it cannot run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from cluster.fixtures import moosefs_cluster, shared, slurm, slurm_cluster
from cluster.requirements import missing_programs, no_namespaces
from launch import cannot_run

__all__ = ["moosefs_cluster", "shared", "slurm", "slurm_cluster"]


def pytest_runtest_setup(item):
    """Skip before anything is started where there can be no cluster; lacking packages fail CI."""
    if item.get_closest_marker("slurm") is None:
        return
    # Asked first: where this is so, the set-up does not install Slurm either.
    if why := no_namespaces():
        pytest.skip(f"no virtual nodes on this machine: {why}")
    if missing := missing_programs():
        cannot_run(missing)
    if "moosefs_cluster" in item.fixturenames and not Path("/dev/fuse").exists():
        pytest.skip("MooseFS needs /dev/fuse, which this machine does not have")


def pytest_terminal_summary(terminalreporter):
    """Say loudly which tests on Slurm did not run, and why: the line `N skipped` hides it."""
    skipped = [
        report for report in terminalreporter.stats.get("skipped", ())
        if "slurm" in report.keywords
    ]  # fmt: skip
    if not skipped:
        return
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in skipped)
    write = terminalreporter.write_line
    terminalreporter.write_sep("=", "SLURM TESTS DID NOT RUN", yellow=True, bold=True)
    for reason, count in reasons.items():
        write(f"{count} tests on a real Slurm did not run: {reason}", yellow=True)
    write("So nothing is known of srun, sbatch and jobs/. See tests/cluster/README.md.")
