"""Geometry of arrays, without MPI: boxes, cuts over ranks, stretches, groups of ranks."""
