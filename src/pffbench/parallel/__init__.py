"""Collective parts of a job: clock, agreement on errors, topology, watchdog."""
