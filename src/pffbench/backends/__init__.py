"""Backends: one module per library behind one interface, independent of the workloads."""
