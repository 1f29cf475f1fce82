"""Fixtures for tests that need the cluster; a conftest.py imports them."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.commands import Cluster
from cluster.requirements import missing_programs, no_namespaces
from cluster.settings import Settings


@pytest.fixture(scope="session")
def slurm_cluster() -> Iterator[Cluster]:
    """One cluster of four nodes for all tests, which ends when this process ends, however."""
    if impossible := no_namespaces():
        pytest.skip(f"NO SLURM TEST RUNS: virtual nodes are impossible here: {impossible}")
    if missing := missing_programs():
        pytest.fail(f"{missing}; `make test` installs them", pytrace=False)
    cluster = Cluster.start(Settings(tempfile.mkdtemp(prefix="slurm-")))
    yield cluster
    cluster.stop()


@pytest.fixture
def slurm(slurm_cluster: Cluster) -> Iterator[Cluster]:
    """The cluster, idle; afterwards all jobs are cancelled and lost nodes booted."""
    yield slurm_cluster
    slurm_cluster.settle()


@pytest.fixture
def shared(slurm_cluster: Cluster, request: pytest.FixtureRequest) -> Path:
    """A new directory that all nodes see."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", request.node.name)[:60]
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=slurm_cluster.path / "shared"))
