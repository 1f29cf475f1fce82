"""Import of results of other benchmarks: IOR and h5bench."""

from pffbench_analysis.peers.importing import PROGRAMS, import_results

__all__ = ["PROGRAMS", "import_results"]
