"""Corruptions that public reports name: each is tried in a second (`pffbench doctor --stack`).

A trial writes some data as the report does, reads them back, and returns what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pffbench.doctor.finding import Finding, Findings, ok, problem, unknown
from pffbench.mpi.agreement import AgreedStep
from pffbench.mpi.topology import Team
from pffbench.text import counted

if TYPE_CHECKING:
    from pffbench.doctor.subject import Subject

#: Elements of a trial's array.
_ELEMENTS = 2**16


class UntriedError(Exception):
    """Raised by a trial that is not possible here, with the reason."""


class Trial(NamedTuple):
    """A corruption of a public report."""

    #: Repository and number of the report on GitHub.
    report: str
    #: The data that it corrupts.
    subject: str
    #: What to do where it does.
    remedy: str
    #: Gets a directory and the communicator of all ranks. Returns what is wrong, or an empty text.
    attempt: Callable[[Path, Any], str]
    #: Number of ranks that it needs. Rank 0 alone makes a trial of one rank.
    ranks: int = 1


class Attempt(NamedTuple):
    """The outcome of a trial."""

    #: The trial.
    trial: Trial
    #: What was wrong; empty if nothing was.
    fault: str = ""
    #: Why it was not possible; empty if it was.
    untried: str = ""


def try_all(team: Team, directory: str) -> list[Attempt]:
    """Make all trials in a directory; collective, and only rank 0 has the outcomes."""
    return [_try_one(team, directory, trial) for trial in TRIALS]


def _try_one(team: Team, directory: str, trial: Trial) -> Attempt:
    if team.size < trial.ranks:
        return Attempt(trial, untried=f"needs {counted(trial.ranks, 'rank')} or more")
    fault, untried = "", ""
    with AgreedStep(team.comm, trial.report):
        if team.is_root or trial.ranks > 1:
            try:
                fault = trial.attempt(Path(directory), team.comm)
            except (UntriedError, ImportError) as error:
                untried = str(error)
            except Exception as error:  # noqa: BLE001 -- an error is what the report is about
                fault = f"{type(error).__name__}: {error}"
    reports = team.comm.gather((fault, untried)) or [("", "")]
    fault, untried = (next(filter(None, texts), "") for texts in zip(*reports, strict=True))
    return Attempt(trial, fault, untried)


def try_none(reason: str) -> list[Attempt]:
    """Return the outcomes where no trial is possible."""
    return [Attempt(trial, untried=reason) for trial in TRIALS]


def check_stack(subject: Subject) -> Findings:
    """Corruptions that public reports name, with --stack."""
    for attempt in subject.attempts:
        yield _judge(attempt)


def _judge(attempt: Attempt) -> Finding:
    trial = attempt.trial
    if attempt.fault:
        return problem(f"{trial.report}: {trial.subject}: {attempt.fault}", trial.remedy)
    if attempt.untried:
        return unknown(f"{trial.report}: {trial.subject}: not tried: {attempt.untried}")
    return ok(f"{trial.report}: {trial.subject}: as written")


def _wrong(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> str:
    """Return how many elements differ in any bit."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return f"{found.dtype} {found.shape} in place of {expected.dtype} {expected.shape}"
    bits = f"u{expected.dtype.itemsize}"
    wrong = int(np.count_nonzero(found.view(bits) != expected.view(bits)))
    return f"{wrong} of {expected.size} values are wrong" if wrong else ""


def _collective_reads(directory: Path, comm: Any) -> str:
    """Let rank 0 read a file as a whole while the others read every eighth part of it."""
    from mpi4py import MPI

    path = directory / "known-parts"
    values = np.arange(1.0, 1 + _ELEMENTS)
    if comm.rank == 0:
        values.tofile(path)
    comm.Barrier()
    length = 3 if comm.rank else 8
    kind = MPI.DOUBLE.Create_vector(_ELEMENTS // 8, length, 8).Commit()
    file = MPI.File.Open(comm, str(path), MPI.MODE_RDONLY)
    file.Set_view(0, MPI.DOUBLE, kind)
    found = np.zeros(_ELEMENTS // 8 * length)
    file.Read_all(found)
    file.Close()
    kind.Free()
    return _wrong(found, values.reshape(-1, 8)[:, :length].ravel())


def _scale_offset(directory: Path, comm: Any) -> str:  # noqa: ARG001 -- as all trials have it
    """Store integers that need all of their bits, by HDF5's scale-offset filter."""
    import h5py

    values = np.array([np.iinfo("i4").min + 1, -1, 0, np.iinfo("i4").max] * 256, "i4")
    with h5py.File(directory / "known-scale-offset.h5", "w") as file:
        file.create_dataset("values", data=values, chunks=(256,), scaleoffset=0)
    with h5py.File(directory / "known-scale-offset.h5", "r") as file:
        return _wrong(file["values"][...], values)


def _zarr() -> Any:
    import zarr

    if not hasattr(zarr, "create_array"):
        raise UntriedError(f"zarr {zarr.__version__} has no create_array")
    return zarr


def _negative_zero(directory: Path, comm: Any) -> str:  # noqa: ARG001
    """Store a chunk of -0.0 where chunks of nothing but 0.0 are left out."""
    zarr = _zarr()
    values = np.full(64, -0.0)
    array = zarr.create_array(
        directory / "known-zero.zarr", shape=values.shape, chunks=(16,), dtype=values.dtype,
        fill_value=0.0, config={"write_empty_chunks": False},
    )  # fmt: skip
    array[...] = values
    read = zarr.open_array(directory / "known-zero.zarr", mode="r")
    return _wrong(np.asarray(read[...]), values)


def _shards_from_data(directory: Path, comm: Any) -> str:  # noqa: ARG001
    """Create an array of several shards of several chunks from data."""
    zarr = _zarr()
    values = np.random.default_rng(1).random((1000, 200), dtype="f4")
    path = directory / "known-shards.zarr"
    zarr.create_array(path, data=values, chunks=(100, 10), shards=(500, 50))
    return _wrong(np.asarray(zarr.open_array(path, mode="r")[...]), values)


TRIALS = (
    Trial(
        "open-mpi/ompi#10546", "parts of a file that ranks read together",
        "use ROMIO (Open MPI: OMPI_MCA_io=^ompio), or a newer MPI library",
        _collective_reads, ranks=3,
    ),
    Trial(
        "HDFGroup/hdf5#5861", "integers of all bits by the scale-offset filter",
        "do not use the filter with HDF5 1.14.5 and 1.14.6", _scale_offset,
    ),
    Trial(
        "zarr-developers/zarr-python#3144", "chunks of -0.0", "use a newer zarr",
        _negative_zero,
    ),
    Trial(
        "zarr-developers/zarr-python#3169", "shards created from data", "use a newer zarr",
        _shards_from_data,
    ),
)  # fmt: skip
