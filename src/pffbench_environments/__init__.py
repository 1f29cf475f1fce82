"""Runs of several environments in turns, and searches among versions of a package.

One process without MPI starts the ranks of each environment. `pffbench` knows nothing of this
package: entry points connect it.
"""
