"""Runs pffbench with an `h5repack` that ends with an error."""

import sys

from pffbench.backends import hdf5
from pffbench.cli import main


def failing(_, source, *more):
    """Name the program when a run is planned, and another one when there is a store."""
    return ["sh", "-c", "echo no room >&2; exit 3"] if source else ["h5repack"]


hdf5.Hdf5.repack_command = classmethod(failing)
sys.exit(main())
