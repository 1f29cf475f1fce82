"""The cluster that every test here runs on."""

from __future__ import annotations

from cluster.fixtures import moosefs_cluster, shared, slurm, slurm_cluster

__all__ = ["moosefs_cluster", "shared", "slurm", "slurm_cluster"]
