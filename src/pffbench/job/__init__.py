"""The job around a run: launcher, batch system, signals, watchdog."""
