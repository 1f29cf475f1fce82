"""Backends that only studies need."""
