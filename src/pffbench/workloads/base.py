"""Base class of the workloads: the arrays of a case, and the boxes that each rank moves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec
from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Backend, Cuts
from pffbench.case import Parameters
from pffbench.errors import UserError
from pffbench.parallel.decomposition import Shape
from pffbench.workloads.transfers import Access

if TYPE_CHECKING:
    from pffbench.parallel.topology import Topology
    from pffbench.workloads.repetition import Repetition

#: The level of a codec when an experiment names none: each library's own default, except that
#: gzip has the level 4 that netCDF and HDF5 use, in Zarr too.
DEFAULT_LEVELS = {"gzip": 4, "zstd": 3, "blosc": 5}


class CaseTotals(msgspec.Struct, frozen=True):
    """Totals of a case, over all ranks.

    Parameters
    ----------
    arrays : int
        Number of arrays that are defined.
    nbytes : int
        Bytes of array data that all ranks move, before compression.
    extent : int, optional
        Bytes that the data take in files, where these are other ones: with holes, which files may
        have or not.
    """

    arrays: int
    nbytes: int
    extent: int | None = None


class PhaseColumn(msgspec.Struct, frozen=True):
    """A column that a workload adds to the tables of a summary: the time of a phase.

    Parameters
    ----------
    heading : str
        Heading; the unit of the column is added to it.
    part : {"write", "update", "read"}
        The part of a repetition that it belongs to.
    phase : str
        The phase.
    per : {"case", "array", "call"}
        What the time is divided by: nothing, the arrays or the library calls of all ranks.
    legend : str
        Explanation below the tables; empty where the heading says it.
    """

    heading: str
    part: Literal["write", "update", "read"]
    phase: str
    per: Literal["case", "array", "call"] = "case"
    legend: str = ""

    def unit(self, of_totals: str) -> str:
        """Return the unit of the times: that of the totals, or µs for parts of a case."""
        return of_totals if self.per == "case" else "µs"


class CountColumn(msgspec.Struct, frozen=True):
    """A column that a workload adds to the tables of a summary: a counter of a phase.

    Parameters
    ----------
    heading : str
        Heading, with the unit.
    part : {"write", "update", "read"}
        The part of a repetition that it belongs to.
    phase, counter : str
        Where it is counted, and its name.
    unit : float
        What the number is divided by.
    legend : str
        Explanation below the tables; empty where the heading says it.
    """

    heading: str
    part: Literal["write", "update", "read"]
    phase: str
    counter: str
    unit: float = 1
    legend: str = ""


class Impossible(str):
    """Reason of `Workload.check`: a combination that an experiment may leave out of its sweep."""

    __slots__ = ()


class Workload(ABC):
    """An access pattern.

    Its methods are pure functions of the parameters, the number of ranks and a rank, so that a run
    can be planned, checked and costed without MPI. Only `check` may depend on the data (``source``,
    ``file``, ``variable``) and on ``durability`` and ``cache``: the arrays and their transfers are
    planned once for all of these.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    parameters_type: ClassVar[type[Parameters]]
    #: Whether no rank reads an element twice: the kernel then delivers at least what is read.
    reads_once: ClassVar[bool] = False
    #: Whether arrays are cut over the ranks, as the layout says.
    cuts_arrays: ClassVar[bool] = True
    #: Whether groups of ranks can have a file each: layout `file_per_group`.
    groups_ranks: ClassVar[bool] = False
    #: Columns of its tables beside those that every workload has.
    columns: ClassVar[tuple[PhaseColumn | CountColumn, ...]] = ()
    #: Parameters that say which data are read, or in which order: where comparisons differ in
    #: them, their titles name them.
    places: ClassVar[tuple[str, ...]] = ()
    #: Libraries that only some of its cases need, by their import names: what is lacking without.
    optional_libraries: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def arrays(self, parameters: Any, ranks: int, rank: int) -> list[ArraySpec]:
        """Return the arrays of the store that a rank opens, in the order of their definition.

        In a shared file these are the arrays of all ranks; in a file per process its own.
        """

    @abstractmethod
    def writes(self, parameters: Any, ranks: int, rank: int) -> list[Access]:
        """Return a rank's writing accesses, one a call."""

    @abstractmethod
    def cuts(self, parameters: Any, ranks: int) -> Cuts:
        """Return where parts of ranks meet in arrays that all write together, for each axis.

        Chunks that reach over such a place have several writers.
        """

    @abstractmethod
    def volume(self, parameters: Any, ranks: int) -> CaseTotals:
        """Return the totals of the case, without listing its arrays."""

    def reads(self, parameters: Any, ranks: int, rank: int) -> list[Access]:
        """Return a rank's reading accesses, one a call; by default those of its writes."""
        return self.writes(parameters, ranks, rank)

    def reads_elsewhere(self, parameters: Any) -> bool:
        """Whether ranks read other boxes than they wrote, by another decomposition."""
        return False

    def told(self, parameters: Any, ranks: int) -> str | None:
        """Return the line of a plan on the parts of ranks where they are no boxes, or None."""
        return None

    def exchanges(self, parameters: Any) -> bool:
        """Whether ranks send array data to each other, which needs MPI."""
        return False

    def beyond_nodes(self, parameters: Any, topology: Topology, memory: int) -> str | None:
        """Return why the nodes of a job are too few or too small for a case, or None.

        Parameters
        ----------
        parameters
            Those of a case that `exchanges`.
        topology : Topology
            The nodes.
        memory : int
            Bytes that each rank may take.
        """
        return None

    def defines_first(self, parameters: Any) -> bool:
        """Whether all arrays are defined before the first is written."""
        return True

    def makes_another(self, parameters: Any) -> bool:
        """Whether a second store is made from the written one, so that both take space."""
        return False

    def libraries(self, parameters: Any) -> tuple[str, ...]:
        """Return the import names of libraries used in addition to those of the backend."""
        return ()

    def input_files(self, parameters: Any) -> tuple[str, ...]:
        """Return the names of files that data or decomposition come from."""
        return () if parameters.file is None else (parameters.file,)

    def kinds(self, parameters: Any, ranks: int) -> list[ArraySpec]:
        """Return an array of each kind: those of one kind differ in name, place and owner only.

        A plan is checked and costed by these; that of rank 0 is the first. Workloads override it
        and `largest_write`, so that planning does not list possibly millions of arrays.
        """
        found = {
            replace(s, name="", number=0, origin=(), offset=0, owner=s.owner and 0): s
            for s in self.arrays(parameters, ranks, 0)
        }
        return list(found.values())

    def largest_write(self, parameters: Any, ranks: int) -> int:
        """Return the bytes of the longest call of any rank."""
        return max((access.nbytes for access in self.writes(parameters, ranks, 0)), default=0)

    def held(self, parameters: Any, ranks: int) -> int:
        """Return the bytes that a rank holds at a time at least, however little memory it has."""
        return self.largest_write(parameters, ranks)

    def held_by_writer(self, parameters: Any, ranks: int) -> tuple[int, int]:
        """Return the bytes that a writer rank holds, and more bytes for each rank of its node."""
        return 0, 0

    def check(self, parameters: Any, ranks: int) -> str | None:
        """Return why the parameters contradict each other, or None.

        That ends a run, also with ``impossible: skip``, unless the reason is an `Impossible`.
        What a backend cannot do belongs into `refuse`.
        """
        return None

    def notes(self, parameters: Any) -> tuple[str, ...]:
        """Return notes on work timed in addition to the library's calls, for `run.json`."""
        return ()

    def refuse(self, parameters: Any, backend: type[Backend]) -> str | None:
        """Return why the backend cannot run the case, or None.

        With ``impossible: skip`` the case is left out of the run, which goes on.
        """
        return None

    @abstractmethod
    def run(self, repetition: Repetition) -> None:
        """Run one repetition of a case; collective. Most call `write_read_cycle`."""


def own_chunks(
    parameters: Parameters, shape: Shape, block: Shape
) -> Shape | Literal["contiguous", "library"]:
    """Return the chunks of an array.

    Parameters
    ----------
    parameters : Parameters
        The case.
    shape : tuple of int
        Shape of the stored array.
    block : tuple of int
        Largest part of any rank: one chunk with ``chunks: block``.
    """
    asked = parameters.chunks
    if asked == "auto" and parameters.settings == "defaults":
        return "library"
    if asked in ("auto", "block"):
        return tuple(min(b, n) for b, n in zip(block, shape, strict=True))
    if isinstance(asked, tuple):
        asked = (*(1,) * (len(shape) - len(asked)), *asked)
        return tuple(min(c, n) for c, n in zip(asked, shape, strict=True))
    return "contiguous"


def make_spec(
    parameters: Parameters,
    name: str,
    shape: Shape,
    *,
    number: int,
    offset: int,
    owner: int | None,
    block: Shape,
    origin: Shape | None = None,
    logical_shape: Shape | None = None,
    parts: tuple[int | Shape, ...] | None = None,
) -> ArraySpec:
    """Make an array's specification from the parameters that all workloads share.

    Parameters
    ----------
    parameters : Parameters
        The case.
    block : tuple of int
        Largest part that a rank moves by a call, of which `own_chunks` makes the chunks.
    name, shape, number, offset, owner, origin, logical_shape, parts
        As in `ArraySpec`; without an origin and a logical shape the array is the logical one.
    """
    codec = parameters.codec
    if codec == "auto":
        codec = "none" if parameters.settings == "matched" else "library"  # type: ignore[assignment]
    shuffle = parameters.shuffle or ("byte" if codec == "blosc" else "none")
    level = DEFAULT_LEVELS.get(codec, 0) if parameters.level is None else parameters.level
    chunks = own_chunks(parameters, shape, block)
    if isinstance(chunks, tuple) and 0 in chunks and 0 not in shape:
        raise UserError(
            f"array {name}: a chunk of shape {list(chunks)} has no elements; workload "
            f"{parameters.workload} must make it from the part of a rank that has one"
        )
    return ArraySpec(
        name=name,
        shape=shape,
        dtype=parameters.dtype or "float32",
        number=number,
        origin=origin or (0,) * len(shape),
        logical_shape=logical_shape or shape,
        offset=offset,
        owner=owner,
        chunks=chunks,
        codec=codec,  # type: ignore[arg-type]
        level=level,
        compressor=parameters.compressor or "lz4",
        shuffle=shuffle,
        fill="none" if parameters.settings == "matched" else "library",
        parts=parts,
    )


def taking_part(
    specs: Iterable[ArraySpec], parameters: Parameters, rank: int
) -> Iterator[ArraySpec]:
    """Yield the arrays on which a rank makes a call.

    Its own, and in collective transfers those of the others, on which it moves nothing.
    """
    collective = parameters.transfer == "collective"
    return (spec for spec in specs if collective or spec.owner in (rank, None))


def illegal_chunks(
    parameters: Parameters, shape: Shape, what: str = "the array", axes: Sequence[int] = ()
) -> str | None:
    """Return why the chunk shape of a case cannot be that of an array, or None.

    Parameters
    ----------
    parameters : Parameters
        The case.
    shape : tuple of int
        Shape of the array, or of what else a chunk is part of.
    what : str
        That, in words.
    axes : sequence of int
        Numbers of axes that a chunk may have; that of the shape when not given.
    """
    chunks = parameters.chunks
    if not isinstance(chunks, tuple):
        return None
    if len(chunks) not in (allowed := axes or [len(shape)]):
        wanted = " or ".join(map(str, allowed))
        return f"chunks {list(chunks)} must have {wanted} axes, as the array has"
    inner = shape[len(shape) - len(chunks) :]
    if any(c > n for c, n in zip(chunks, inner, strict=True)):
        return f"chunks {list(chunks)} are larger than {what} {list(inner)}; make them smaller"
    return None
