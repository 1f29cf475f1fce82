"""Fixtures for tests that need the cluster; a conftest.py imports them."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.commands import Cluster
from cluster.requirements import missing_programs
from cluster.settings import Settings


@pytest.fixture(scope="session")
def slurm_cluster() -> Iterator[Cluster]:
    """One cluster of four nodes for all tests, which ends when this process ends, however."""
    yield from _cluster()


@pytest.fixture(scope="module")
def moosefs_cluster() -> Iterator[Cluster]:
    """Another cluster, with MooseFS on all machines at its ``settings.moosefs_mount``."""
    if os.geteuid() != 0:
        pytest.skip("MooseFS needs root, because only root may use /dev/fuse")
    if missing := missing_programs(with_moosefs=True):
        pytest.skip(missing)
    yield from _cluster(moosefs=True)


def _cluster(*, moosefs: bool = False) -> Iterator[Cluster]:
    directory = tempfile.mkdtemp(prefix="slurm-")
    try:
        # Of the nodes that lose their power in tests one has a disk, and one has none.
        cluster = Cluster.start(Settings(directory, moosefs=moosefs, disks=("node3",)))
        yield cluster
        cluster.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


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
