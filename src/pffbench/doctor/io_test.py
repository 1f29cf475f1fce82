"""A test of parallel I/O: all ranks write one file together and read it back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from pffbench.backends.array_spec import ArraySpec, Capabilities
from pffbench.backends.base import (
    Backend,
    Store,
    define_arrays,
    open_arrays,
    what_was_read,
)
from pffbench.doctor.finding import Finding, ok, problem, warning
from pffbench.doctor.scratch import limited
from pffbench.parallel.agreement import AgreedStep, PhaseFailedError
from pffbench.parallel.decomposition import Box
from pffbench.parallel.topology import Team
from pffbench.parallel.watchdog import Watchdog
from pffbench.storage.scratch import Scratch

TOPIC = "Parallel I/O"
_ROWS, _COLUMNS = 64, 32
#: Far more than a few KiB take anywhere, also where ranks compete for cores.
SECONDS = 120.0


@dataclass(frozen=True)
class Way:
    """A transfer mode for a shared file."""

    name: str
    transfer: Literal["independent", "collective"]
    codec: Literal["none", "gzip"] = "none"


_WAYS = (
    Way("independent", "independent"),
    Way("collective", "collective"),
    Way("collective with gzip", "collective", "gzip"),
)


@dataclass(frozen=True)
class Trial:
    """The result of testing a backend: findings, and the transfers that work without a codec."""

    findings: Sequence[Finding]
    worked: frozenset[str]


def ways_of(can: Capabilities) -> list[Way]:
    """List the transfer modes for a shared file that a backend declares."""
    if "shared" not in can.layouts or can.discards:
        return []
    return [way for way in _WAYS if way.transfer in can.transfers and way.codec in can.codecs]


def try_backend(
    team: Team,
    kind: type[Backend],
    scratch: Scratch,
    watchdog: Watchdog,
    text_with: Callable[[Finding], str],
) -> Trial:
    """Test all transfer modes of a backend for a shared file; collective, equal on all ranks.

    Parameters
    ----------
    team : Team
        The ranks.
    kind : type of Backend
        A backend whose libraries can be imported.
    scratch : Scratch
        Directory for the files; its creator removes it.
    watchdog : Watchdog
        Ends the job when a call never returns.
    text_with : callable
        Formats the findings of rank 0 so far, followed by a last one.
    """
    worked: list[Way] = []
    found: list[Finding] = []
    for number, way in enumerate(ways_of(kind.capabilities)):
        path = scratch.path(f"{kind.name}-{number}{kind.suffix}")
        stuck = _never_returned(kind.summary, way, team.size)
        with limited(watchdog, scratch, SECONDS, text_with(stuck) if team.is_root else None):
            try:
                with AgreedStep(team.comm, "import"):
                    backend = kind(kind.options_type(), "matched")
                round_trip(team, backend, path, way)
            except PhaseFailedError as error:
                found.append(judge_failure(kind, way, str(error)))
            else:
                worked.append(way)
    if worked:
        found.append(judge_success(kind.summary, [way.name for way in worked], team.size))
    return Trial(found, frozenset(way.transfer for way in worked if way.codec == "none"))


def judge_success(summary: str, worked: list[str], ranks: int) -> Finding:
    """Report the transfer modes that work."""
    who = "1 rank" if ranks == 1 else f"{ranks} ranks"
    text = f"{summary}: parallel writes and reads work ({', '.join(worked)}), {who}, all verified"
    return ok(text)


def judge_failure(kind: type[Backend], way: Way, error: str) -> Finding:
    """Report a transfer mode that fails; compression in a shared file is optional."""
    text = f"{kind.summary}: {way.name} transfer does not work: {error}"
    if way.codec != "none":
        remedy = "leave compression out of shared files"
        return warning(text, remedy)
    remedy = "try another --scratch"
    if kind.mpi_io != "none":
        remedy += (
            ", or another MPI-IO (Open MPI: OMPI_MCA_io=ompio, or romio321, which is romio341 in "
            "Open MPI 5)"
        )
    return problem(text, remedy)


def round_trip(team: Team, backend: Backend, path: str, way: Way) -> None:
    """Write one array with all ranks and read another rank's part of it; collective.

    Raises
    ------
    PhaseFailedError
        On every rank, when a step failed on any rank or the data read differ from those written.
    """
    step = partial(AgreedStep, team.comm)
    held: list[Store] = []
    spec, collective = _spec(team.size, way), way.transfer == "collective"
    try:
        with step("creating the file"):
            held.append(backend.create(path, team.comm))
        with step("defining an array"):
            array = define_arrays(held[0], [spec])[spec.name]
        with step("writing"):
            box = _box(team.rank)
            array.writer(box, _values(box), collective)()
        _close(team, held)
        with step("opening the file"):
            held.append(backend.open(path, team.comm))
        with step("finding the array"):
            array = open_arrays(held[0], [spec])[spec.name]
        # Another rank's part: its own could come from a buffer that was never written to the file.
        box = _box((team.rank + 1) % team.size)
        with step("reading"):
            out = np.full(box.shape, -1, np.int32)
            got = what_was_read(array.reader(box, out, collective)(), out)
        with step("verification"):
            wrong = int(np.count_nonzero(np.ma.getdata(got).reshape(box.shape) != _values(box)))
            if wrong:
                raise ValueError(f"{wrong} of {box.size} numbers read are not those written")
        _close(team, held)
    except PhaseFailedError:
        # Closing is collective; a file is closed where all ranks have it open.
        if min(team.comm.allgather(len(held))):
            with suppress(PhaseFailedError):  # the failure that led here is reported already
                _close(team, held)
        raise


def _close(team: Team, held: list[Store]) -> None:
    with AgreedStep(team.comm, "closing the file"):
        held.pop().close()


def _spec(ranks: int, way: Way) -> ArraySpec:
    shape = (ranks * _ROWS, _COLUMNS)
    return ArraySpec(
        name="trial",
        shape=shape,
        dtype="int32",
        number=0,
        origin=(0, 0),
        logical_shape=shape,
        offset=0,
        owner=None,
        chunks=(_ROWS, _COLUMNS),
        codec=way.codec,
        level=1,
        fill="none",
    )


def _box(rank: int) -> Box:
    return Box((rank * _ROWS, 0), (_ROWS, _COLUMNS))


def _values(box: Box) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Return numbers that are all different, so that misplaced data are detected."""
    first = box.start[0] * _COLUMNS
    return np.arange(first, first + box.size, dtype=np.int32).reshape(box.shape)


def _never_returned(summary: str, way: Way, ranks: int) -> Finding:
    text = (
        f"{summary}: {way.name} transfer by {ranks} ranks did not end within {SECONDS:g} s: some "
        "rank waits in a collective call for others"
    )
    remedy = "try another --scratch (one that all nodes share), fewer ranks, or another MPI-IO"
    return problem(text, remedy)
