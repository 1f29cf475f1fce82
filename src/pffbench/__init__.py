"""MPI-parallel benchmark of HDF5, netCDF4 and Zarr for large arrays."""

#: Of the last release. What names a commit too is `pffbench.version`.
__version__ = "0.1.0"


def version_of_build() -> str:
    """Return the version of a package that is built of this code (pyproject.toml)."""
    from pffbench.version import origin

    return origin().for_builds
