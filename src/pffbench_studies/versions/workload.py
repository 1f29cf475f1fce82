"""Workload `versions`: a small table that changes from version to version, as in study 5."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Backend
from pffbench.case import Count, Parameters, Way
from pffbench.geometry.box import Box
from pffbench.geometry.cut import Grid
from pffbench.workloads.arrays import CaseArrays, Family, Volume
from pffbench.workloads.base import CountColumn, Impossible, Workload
from pffbench.workloads.specs import DEFAULT_LEVELS
from pffbench_studies.versions.history import (
    COLUMNS,
    KINDS,
    Change,
    History,
    KindName,
    Probabilities,
)
from pffbench_studies.versions.interface import WAYS, ColumnStorage, Keep, expected_bytes

if TYPE_CHECKING:
    from pffbench.workloads.repetition import Repetition

#: Codecs that the libraries of a backend support without a plugin.
CODECS = {"hdf5": ("none", "gzip", "lzf"), "zarr": ("none", "gzip", "zstd")}


class VersionsParameters(Parameters, frozen=True, kw_only=True, tag="versions"):
    """Parameters of the workload `versions`."""

    #: Kind of history: ``large_fraction_changes_sparse``, ``small_fraction_changes_sparse``,
    #: ``large_fraction_constant_sparse``, ``mostly_appends_sparse`` or ``mostly_appends_dense``,
    #: which are the study's tests.
    kind: KindName
    #: Number of versions after the initial one.
    versions: Count
    #: Storage of the versions. ``last``: the last state only. ``copies``: each version whole.
    #: ``chunks``: each different chunk once, with an index for each version, by pffbench. The other
    #: two are libraries: versioned-hdf5 (backend hdf5) and Icechunk (backend zarr).
    keep: Way[Keep] = "last"
    #: The chances of changes, inserts and deletes that the study describes, or those with which its
    #: numbers were made: 1 % each, so that nearly all versions only append.
    probabilities: Probabilities = "as_described"
    #: Changed values are assigned as the range that contains them, or one by one as in the study.
    change: Way[Change] = "batch"

    changes_arrays: ClassVar[bool] = True
    optional_libraries: ClassVar[Mapping[str, str]] = {
        way.package: f"{backend}: no versions with keep: {keep}"
        for (backend, keep), way in WAYS.items()
        if way.package
    }

    def history(self, seed: int, rank: int) -> History:
        """Return the history of a rank's table."""
        return History(self.kind, self.versions, self.probabilities, self.change, seed, rank)

    @property
    def storage(self) -> ColumnStorage:
        """Storage of the columns."""
        codec = "none" if self.codec == "auto" else self.codec
        level = DEFAULT_LEVELS.get(codec, 0) if self.level is None else self.level
        assert isinstance(self.chunks, tuple)
        return ColumnStorage(self.chunks[0], codec, level)

    @property
    def libraries(self) -> tuple[str, ...]:
        library = WAYS[self.backend, self.keep].package
        return (library,) if library else ()

    @property
    def keeps_all(self) -> bool:
        """Whether versions before the last one can be read."""
        return self.keep != "last"


class Versions(Workload):
    """Every rank has a table of its own, changes it version by version, and reads versions back."""

    name = "versions"
    columns = (
        CountColumn("kept MiB", "write", "close", "file_bytes", 2**20),
        CountColumn("reused", "write", "close", "chunks_reused"),
    )
    summary = "versions of a table that changes, stored in different ways"
    parameters_type = VersionsParameters

    def arrays(self, parameters: VersionsParameters, ranks: int) -> CaseArrays:
        """Return the columns of the initial tables, as if they were arrays of a plain store."""
        p = parameters
        tables = p.versions + 1 if p.keep == "copies" else 1
        nbytes = expected_bytes(p.kind, p.versions, p.probabilities, p.keep, p.storage.chunk)
        start = KINDS[p.kind].start
        columns = {"key0": start[:1], "key1": start[-1:], "val": start}
        families = tuple(
            Family(
                parameters=p,
                ranks=ranks,
                cut=Grid(shape, (1,) * len(shape)),
                name=partial(_name, name),
                count=ranks,
                dealt_to=ranks,
                write=_no_calls,
                read=_no_calls,
            )
            for name, shape in columns.items()
        )
        totals = Volume(ranks * len(COLUMNS) * tables, ranks * nbytes, ranks * nbytes)
        return CaseArrays(families, totals)

    def refuse(
        self, parameters: VersionsParameters, ranks: int, backend: type[Backend]
    ) -> str | None:
        p = parameters
        if not p.alone:
            return "each rank keeps the versions of its table in its own file; use files: per_rank"
        if p.dtype != "float64":
            return f"dtype {p.dtype} is not possible: values are float64, keys int64"
        if p.source != "uniform":
            return f"source {p.source} is not possible: values are random (source: uniform)"
        if not (isinstance(p.chunks, tuple) and len(p.chunks) == 1):
            return "chunks must be one length, that of chunks along each axis, such as [4096]"
        beyond = _beyond(p)
        return None if beyond is None else Impossible(beyond)

    def run(self, repetition: Repetition) -> None:
        from pffbench_studies.versions.repetition import run_versions

        run_versions(repetition)


def _beyond(p: VersionsParameters) -> str | None:
    """Return why the libraries cannot keep versions as asked, or None."""
    way = WAYS.get((p.backend, p.keep))
    if way is None:
        able = ", ".join(keep for name, keep in WAYS if name == p.backend) or "none"
        return f"backend {p.backend} cannot keep {p.keep} (ways that it can: {able})"
    if p.codec not in ("auto", *CODECS[p.backend]):
        able = ", ".join(CODECS[p.backend])
        return f"versions in {p.backend} cannot have codec {p.codec} (they can: {able})"
    if way.package and find_spec(way.package) is None:
        return (
            f"keep {p.keep} needs the Python package {way.package}, which is not installed "
            f"({way.remedy})"
        )
    return None


def _name(column: str, index: int, owner: int | None) -> str:
    return column


def _no_calls(spec: ArraySpec, part: Box, rank: int) -> tuple[Box, ...]:
    """Return no calls: edits of a table are written, not boxes of an array."""
    return ()
