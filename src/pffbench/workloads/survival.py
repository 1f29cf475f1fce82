"""Workload `survival`: time steps are appended, and a job that does so is killed.

    create → define → write → (define → write) for each further step, with a flush after each or not
    close → sync
    open → open_array → read → close_read
    remove

Off the timer, once for each case, separate jobs write the same steps and are killed by SIGKILL. A
separate process reads their files (`survivors.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from time import monotonic
from typing import Annotated, ClassVar, Literal, cast

import msgspec

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Backend, LazyArrays
from pffbench.backends.traits import Changes
from pffbench.case import ArrayShape, Count, DataSize, GivenShape, OfData, Parameters, Way
from pffbench.data import GENERATORS
from pffbench.geometry.box import Box, Shape
from pffbench.geometry.cut import Grid
from pffbench.workloads.arrays import CaseArrays, Family
from pffbench.workloads.base import Impossible, Workload
from pffbench.workloads.buffers import TransferMemory
from pffbench.workloads.refusals import unfit_chunks
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.route import Route, count_owned, route_of
from pffbench.workloads.transfer_phase import write_transfers
from pffbench.workloads.transfers import Round
from pffbench.workloads.updates import extend
from pffbench.workloads.write_read import (
    finish_writing,
    open_for_writing,
    read_store,
    run_stages,
)

#: Suffixes of the files that the separate process reads.
READABLE = (".h5", ".nc", ".zarr")


class SurvivalParameters(Parameters, frozen=True, kw_only=True, tag="survival"):
    """Parameters of the workload `survival`."""

    #: Shape of the part of a rank in one time step.
    shape_per_rank: GivenShape[ArrayShape | None] = None
    #: Number of time steps, which are appended one after the other.
    steps: DataSize[Annotated[int, msgspec.Meta(ge=2, le=10_000)]] = 24
    #: The policy: whether the library's flush is called after each step (HDF5 and netCDF, because
    #: Zarr holds nothing back).
    flush: Way[Literal["none", "step"]] = "none"
    #: Number of jobs that are killed between two steps: one after the first step, one before the
    #: last one, and the others at equal distances between.
    kills: OfData[Count] = 3
    #: Number of further jobs, which a timer kills at a random moment of a random step, usually
    #: inside a call of the library.
    kills_within: OfData[Annotated[int, msgspec.Meta(ge=0, le=1000)]] = 0

    changes_arrays: ClassVar[bool] = True

    @property
    def killed_after(self) -> tuple[int, ...]:
        """For each job that is killed the number of steps that it has finished."""
        last, gaps = self.steps - 1, max(1, self.kills - 1)
        return tuple(dict.fromkeys(1 + (last - 1) * n // gaps for n in range(self.kills)))


class Survival(Workload):
    """Ranks append time steps to an array; files of jobs killed meanwhile are read.

    With ``arrays: per_rank`` the ranks' parts are arrays of their own.
    """

    name = "survival"
    summary = "time steps appended, and the steps that can be read after the job was killed"
    parameters_type = SurvivalParameters

    def arrays(self, parameters: SurvivalParameters, ranks: int) -> CaseArrays:
        return CaseArrays((_family(parameters, ranks),))

    def run(self, repetition: Repetition) -> None:
        """Write all steps and read them; then kill the jobs, once; collective."""
        from pffbench.workloads.killed_job import kill_jobs  # few runs kill anything

        p = _parameters(repetition)
        whole = CaseArrays((_family(p, repetition.place.team.size, grown=True),))
        run_stages(
            repetition,
            lambda: write_steps(repetition),
            lambda: read_store(repetition.of(arrays=whole)),
        )
        if repetition.request.inspect:
            begin = monotonic()
            kill_jobs(repetition, p)
            repetition.observed.once += monotonic() - begin

    def refuse(
        self, parameters: SurvivalParameters, ranks: int, backend: type[Backend]
    ) -> str | None:
        from pffbench.workloads.killed_job import without_launch

        p = parameters
        if p.shape_per_rank is None:
            return "shape_per_rank is missing (the part of a rank in one step, such as [256, 256])"
        if p.source not in GENERATORS:
            return f"each step has other data, of source: {', '.join(GENERATORS)}"
        if p.cache == "separate" or not isinstance(p.files, str):
            return "one job writes and reads one file, or one file for each rank"
        if not issubclass(backend, Changes) or backend.suffix not in READABLE:
            return Impossible(
                "files are read by h5py, netCDF4 and zarr after a kill, and backend "
                f"{backend.name} appends to no such file"
            )
        axes = range(1, len(p.shape_per_rank) + 2)
        return unfit_chunks(_family(p, ranks), axes) or without_launch(ranks)


def _family(p: SurvivalParameters, ranks: int, *, grown: bool = False) -> Family:
    """Return the array with its first step, or with all; the second axis is cut over the ranks."""
    assert p.shape_per_rank is not None
    first, *inner = p.shape_per_rank
    return Family(
        parameters=p,
        ranks=ranks,
        cut=Grid((p.steps if grown else 1, first * ranks, *inner), (1, ranks, *(1 for _ in inner))),
        name=_name,
        growth=0 if grown else p.steps - 1,
        block=_one_step,
        write=partial(_each_step, p.steps),
        read=partial(_all_steps, p.steps),
    )


def _name(index: int, owner: int | None) -> str:
    return "steps" if owner is None else f"steps_{owner:06d}"


def _one_step(part: Shape) -> Shape:
    """Return the chunk of ``chunks: rank_part``."""
    return (1, *part[1:])


def _each_step(steps: int, spec: ArraySpec, part: Box, rank: int) -> Iterator[Box]:
    for number in range(steps):
        yield Box((number, *part.start[1:]), (1, *part.shape[1:]))


def _all_steps(steps: int, spec: ArraySpec, part: Box, rank: int) -> Iterable[Box]:
    yield Box(part.start, (steps, *part.shape[1:]))


def nothing_happens(number: int) -> None:
    """Let the writing go on."""


def write_steps(repetition: Repetition, begun: Callable[[int], None] = nothing_happens) -> set[str]:
    """Write all steps; return the files that this rank wrote to; collective.

    Parameters
    ----------
    repetition : Repetition
        The repetition.
    begun : callable
        Gets the number of each step when the arrays are long enough for it and nothing of it is
        written.
    """
    with route_of(repetition) as route:
        return _written(repetition, route, begun)


def _written(repetition: Repetition, route: Route, begun: Callable[[int], None]) -> set[str]:
    p, clock, owner = _parameters(repetition), repetition.place.clock, repetition.owner
    create = repetition.subject.backend.create
    store, specs, accesses = open_for_writing(repetition, route, create, "create")
    with repetition.step("preparation"):
        define = store.definer(specs)
    with clock.phase("define", operations=count_owned(specs, owner)):
        returned = define()
    arrays = LazyArrays(store, specs, returned)
    growing = [s for s in specs if store.collective_growth or s.owner in (None, owner)]
    steps = (Round(specs, accesses[number :: p.steps]) for number in range(p.steps))
    number, memory = 0, TransferMemory(repetition, route)
    for batches in memory.batches_that_fit(steps):
        for batch, placed in zip(batches, memory.for_writing(batches), strict=True):
            if batch.first:
                if number:
                    extend(repetition, arrays, growing, number, "define", opens=route.opens)
                begun(number)
            route.send(placed)
            write_transfers(repetition, arrays, placed.calls)
            number += batch.last
            if batch.last and p.flush == "step":
                with clock.phase("flush"):
                    store.flush()
    return finish_writing(repetition, store)


def _parameters(repetition: Repetition) -> SurvivalParameters:
    return cast("SurvivalParameters", repetition.subject.parameters)
