"""Workloads of the program with keys that only studies need."""
