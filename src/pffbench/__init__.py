"""MPI-parallel benchmark of HDF5, netCDF4 and Zarr for large arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pffbench.results.summary import Summary

#: Of the last release. What names a commit too is `pffbench.version`.
__version__ = "0.1.0"


def load(run: str | Path) -> Summary:
    """Read a results directory.

    Parameters
    ----------
    run : str or Path
        Its path.

    Returns
    -------
    Summary
        The run: its answer, the comparisons that it rests on, its cells and cases, and
        `to_pandas` for all times as a frame.

    Raises
    ------
    UserError
        It holds no run, or no repetition that counts.

    Examples
    --------
    >>> import pffbench
    >>> run = pffbench.load("results/first")  # doctest: +SKIP
    >>> run.answer.sentence  # doctest: +SKIP
    """
    from pffbench.results.summary import load  # which ranks need not import

    return load(run)


def version_of_build() -> str:
    """Return the version of a package that is built of this code (pyproject.toml)."""
    from pffbench.version import origin

    return origin().for_builds
