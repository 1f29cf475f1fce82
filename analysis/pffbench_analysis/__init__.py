"""Reads results directories of pffbench: frames for notebooks, figures for reports; never MPI."""

from pffbench_analysis.frames import load_counts, load_ranks, load_samples

__all__ = ["load_counts", "load_ranks", "load_samples"]
