"""The cluster that every test here runs on."""

from __future__ import annotations

from cluster.fixtures import shared, slurm, slurm_cluster

__all__ = ["shared", "slurm", "slurm_cluster"]
