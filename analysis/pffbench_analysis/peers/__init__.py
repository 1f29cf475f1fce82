"""What other benchmarks measured, as results directories of pffbench: IOR and h5bench."""

from pffbench_analysis.peers.importing import PROGRAMS, import_results

__all__ = ["PROGRAMS", "import_results"]
