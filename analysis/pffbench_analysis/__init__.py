"""Analysis of pffbench results directories: frames, figures and reports, without MPI."""

from pffbench_analysis.frames import load_counts, load_ranks, load_samples

__all__ = ["load_counts", "load_ranks", "load_samples"]
