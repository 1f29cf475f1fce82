"""The record of a run: samples, rank times, counters, `run.json`, progress."""
