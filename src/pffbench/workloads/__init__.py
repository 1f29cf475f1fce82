"""Workloads: one module per access pattern, independent of the libraries."""
