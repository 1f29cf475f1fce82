"""Files, system calls, bytes and shared stripes of a case on any number of ranks, without a run.

`pffbench` does not know this package: an entry point adds its command. It asks workloads for the
arrays and the calls of ranks, as a plan does, and has a law for each format.
"""
