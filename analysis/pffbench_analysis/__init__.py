"""Analysis of pffbench results directories: frames, figures and reports, without MPI."""

from pffbench_analysis.runs import Run

__all__ = ["Run"]
