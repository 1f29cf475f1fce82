"""Workload `codecs`: a volume cut at chunk edges, and its compressed size."""

from __future__ import annotations

from math import prod

from msgspec.structs import replace

from pffbench.backends.traits import SizesChunks
from pffbench.case import ArrayShape
from pffbench.parallel.decomposition import GlobalArray, Shape
from pffbench.workloads.hyperslab import Hyperslab, HyperslabParameters, global_shape
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.write_read import read_store, run_stages, write_store


class CodecsParameters(HyperslabParameters, frozen=True, kw_only=True, tag="codecs"):
    """Parameters of the workload `codecs`: those of `hyperslab`, and the unit of the cuts.

    Parameters
    ----------
    cut_unit : list of int, optional
        Ranks hold whole multiples of this, and the remainder at the end of an axis; the chunks when
        not given. With shards it must be the shard shape.
    """

    cut_unit: ArrayShape | None = None


class Codecs(Hyperslab):
    """As `hyperslab`, but ranks share no chunk, and the stored bytes are counted.

    Ranks hold whole chunks, so with few chunks along an axis some hold more than others, or
    nothing. The phase ``write`` of each repetition counts, for each rank, ``stored_bytes`` of its
    chunks in the files, ``stored_chunks``, and ``padded_bytes``, the size of these chunks before
    compression: those at the edges of an array are stored whole.
    """

    name = "codecs"
    summary = "global arrays cut at their chunks: rates and ratios of compression"
    parameters_type = CodecsParameters
    reads_once = True

    def _cut(self, p: HyperslabParameters, ranks: int) -> GlobalArray:
        return replace(super()._cut(p, ranks), unit=_unit(p, ranks))

    def _check_kind(self, p: HyperslabParameters, ranks: int) -> str | None:
        if self.exchanges(p):
            return "rearrange goes with workload hyperslab: here ranks hold whole chunks already"
        if p.irregular:
            return "a decomposition map goes with workload hyperslab: here ranks hold whole chunks"
        unit = getattr(p, "cut_unit", None)
        shape = p.shape or p.shape_per_rank
        if unit is not None and shape is not None and len(unit) != len(shape):
            return f"cut_unit {list(unit)} must have {len(shape)} axes, as the array has"
        return super()._check_kind(p, ranks)

    def run(self, repetition: Repetition) -> None:
        def write() -> set[str]:
            written = write_store(repetition)
            _count_stored(repetition)
            return written

        run_stages(repetition, write, lambda: read_store(repetition))


def _unit(p: HyperslabParameters, ranks: int) -> Shape | None:
    """Return the unit of the ranks' parts; None where the chunks are not given as a list."""
    axes = len(global_shape(p, ranks))
    unit: Shape | None = getattr(p, "cut_unit", None)
    if unit is None and isinstance(p.chunks, tuple):
        unit = p.chunks[-axes:]
    return unit if unit is not None and len(unit) == axes else None


def _count_stored(repetition: Repetition) -> None:
    """Count the stored bytes of this rank's part, off the timer."""
    p, team = repetition.case.parameters, repetition.team
    with repetition.step("stored chunks"):
        backend = repetition.backend
        if not isinstance(backend, SizesChunks):
            return
        for access in repetition.workload.writes(p, team.size, team.rank):
            if access.box.size == 0:
                continue
            spec, path = access.spec, repetition.path
            found = backend.stored_part(path, spec.name, access.box)
            if found is None:
                continue
            repetition.observed.count("write", "stored_bytes", found.nbytes)
            repetition.observed.count("write", "stored_chunks", found.count)
            if isinstance(spec.chunks, tuple):
                padded = found.count * prod(spec.chunks) * spec.itemsize
                repetition.observed.count("write", "padded_bytes", padded)
