"""Collective parts of a job: clock, agreement on errors, topology, decomposition, watchdog."""
