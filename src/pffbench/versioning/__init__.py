"""Histories of versions of small tables, and the ways of keeping all of them or the last one."""
