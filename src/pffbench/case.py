"""A case: one point of the sweep, with a backend, a workload and all their parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar, get_args

import msgspec

from pffbench.data.base import DType
from pffbench.geometry.box import Shape
from pffbench.geometry.groups import FileGroups
from pffbench.text import DIGITS, value_text, without_digests

if TYPE_CHECKING:
    import hashlib
    from typing import Self

Rearranger = Literal["none", "gather", "box", "chunk_owner"]
#: How ranks hold arrays in a file that they share.
Arrays = Literal["shared", "per_rank"]
Transfer = Literal["independent", "collective"]
Settings = Literal["matched", "defaults"]
Durability = Literal["close", "flush", "sync"]
CacheState = Literal["warm", "shifted", "dropped", "separate"]
#: Part of a run in a job: all of it, or writing in one job and reading in a later one.
Stage = Literal["all", "write", "read"]
Codec = Literal["auto", "none", "gzip", "szip", "zstd", "lz4", "lzf", "blosc"]
#: Lowest and highest level of the codecs that have levels.
LEVELS = {"gzip": (0, 9), "zstd": (1, 22), "blosc": (0, 9)}
Compressor = Literal["blosclz", "lz4", "lz4hc", "zlib", "zstd"]
Shuffle = Literal["none", "byte", "bit"]
#: Extents fit into the libraries' integers; a count of millions would fill memory while planning.
Extent = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
#: An index, a seed, or a number that may be 0.
Natural = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
ArrayShape = Annotated[tuple[Extent, ...], msgspec.Meta(min_length=1, max_length=4)]
ChunkShape = Annotated[tuple[Extent, ...], msgspec.Meta(min_length=1, max_length=5)]
#: Names used in paths. Python lets $ match before a line's end too, hence the first part.
PLAIN_NAME = r"^(?![\s\S]*\n)[A-Za-z0-9][A-Za-z0-9._-]*$"
ExperimentName = Annotated[str, msgspec.Meta(pattern=PLAIN_NAME, max_length=64)]


class Key(msgspec.Struct, frozen=True):
    """What a key of an experiment is, in the annotation that declares it.

    ``transfer: Way[Transfer]`` declares a way, ``datasets: DataSize[Count]`` a size.
    """

    #: Whether it is a way of doing the same work: cases that differ in nothing else are compared
    #: with each other, and with the raw bytes, to which chunks and codecs mean nothing.
    way: bool = False
    #: Whether it says how large the data are, or how many.
    size: bool = False
    #: Whether it says which data are written, or the state of files. The arrays are the same
    #: whatever its value is.
    data: bool = False
    #: Whether it is the shape of an array, or of a rank's part.
    shape: bool = False


T = TypeVar("T")
Way = Annotated[T, Key(way=True)]
DataSize = Annotated[T, Key(size=True)]
OfData = Annotated[T, Key(data=True)]
#: Shape of an array, or of a rank's part; with ``source: file`` that of the variable if not given.
GivenShape = Annotated[T, Key(size=True, shape=True)]


@cache
def keys_that_are(
    kind: type[msgspec.Struct], what: Literal["way", "size", "data", "shape"]
) -> tuple[str, ...]:
    """Return the keys of a record that are ways, sizes, of data, or shapes, as declared."""
    declared = ((f.name, get_args(f.type)[1:]) for f in msgspec.structs.fields(kind))
    return tuple(
        name
        for name, facts in declared
        if any(getattr(fact, what) for fact in facts if isinstance(fact, Key))
    )


class PerNodeOrCount(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A number on each node, or in all."""

    #: Number on each node.
    per_node: Count | None = None
    #: Number in all.
    count: Count | None = None

    #: The key whose value it is.
    key: ClassVar[str]

    def unclear(self) -> str | None:
        """Return that it is not one of the two, or None."""
        if (self.per_node is None) == (self.count is None):
            return f"{self.key}: give per_node or count, one of the two"
        return None

    def beyond(self, ranks: int) -> str | None:
        """Return why there cannot be so many among `ranks`, or None."""
        for name, wanted in (("count", self.count), ("per_node", self.per_node)):
            if wanted is not None and wanted > ranks:
                return f"{self.key}.{name} is {wanted}, but there are {ranks} ranks"
        return None


class FileCount(PerNodeOrCount, frozen=True):
    """Number of files, each of a group of consecutive ranks: on each node, or in all.

    With a number on each node all nodes must have equally many ranks. With a number in all the
    sizes of groups differ by at most one rank.
    """

    key = "files"


class GroupedFiles(FileCount, frozen=True, kw_only=True):
    """A number of files, and which ranks share each of them, as a plan has found."""

    #: The ranks of each file.
    groups: FileGroups


class Writers(PerNodeOrCount, frozen=True):
    """Number of writer ranks of a file: on each node, or in all, spread evenly over the ranks."""

    key = "writers"


P = TypeVar("P", bound="Parameters")


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of a backend's own options; each field's default is the library's default."""

    @property
    def files_at_once(self) -> int | None:
        """Files that a call may have open at a time, if an option says so."""
        return None


class Parameters(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="workload"
):
    """Parameters common to all workloads; the parameters of each workload derive from it.

    All fields can be hashed (tuples, no lists), since planning caches results for all cases that
    share parameters.
    """

    #: Name of the backend: the format and the library that writes it.
    backend: Way[str]
    #: Number of files: one for all ranks, one for each rank, or so many on each node, or in all.
    #: Consecutive ranks share a file.
    files: Literal["one", "per_rank"] | FileCount = "one"
    #: Arrays in a file that ranks share. ``shared``: each array is cut over these ranks.
    #: ``per_rank``: each rank has its own arrays. With a file for each rank both are the same.
    arrays: Arrays = "shared"
    #: Calls of the ranks in a file that they share: each rank separately, or all together.
    transfer: Way[Transfer] = "independent"
    #: Whether the libraries are configured to do equal work. ``matched``: equal work for all (same
    #: chunks, no fill, no compression unless a codec is named). ``defaults``: the defaults of each
    #: library.
    settings: Way[Settings] = "matched"
    #: Element type. Default: ``float32``, or with ``source: file`` the type in the file.
    dtype: DType | None = None
    #: Data to write: ``uniform`` (incompressible), ``integers``, ``constant``, ``smooth``, or
    #: ``file`` for your own data. The studies add ``cris`` (spectra of a sounder) and the volumes
    #: ``image``, ``dense`` and ``sparse``, which are ``uint16`` unless a type is given.
    source: OfData[str] = "uniform"
    #: With ``source: file``: your HDF5, netCDF, Zarr or .npy file. ``package:NAME/PATH`` is a file
    #: of an installed Python package.
    file: OfData[str | None] = None
    #: With ``source: file``: the variable in the file.
    variable: OfData[str | None] = None
    #: Chunk shape. ``rank_part``: one chunk is one rank's part. ``contiguous``: no chunks.
    #: ``auto``: ``rank_part`` in ``matched``, the library's choice in ``defaults``.
    chunks: Way[Literal["auto", "rank_part", "contiguous"] | ChunkShape] = "auto"
    #: Compression of the chunks. ``auto``: none in ``matched``, the library's choice in
    #: ``defaults``. `level`, `compressor` and `shuffle` are for the codecs of a list that have
    #: them. ``none`` has none of them.
    codec: Way[Codec] = "auto"
    #: Level of the codec. Default: 4 for gzip, 3 for zstd, 5 for blosc.
    level: Way[Annotated[int, msgspec.Meta(ge=0, le=22)] | None] = None
    #: Compressor inside Blosc (default: lz4).
    compressor: Way[Compressor | None] = None
    #: Shuffle before compression. Default: by bytes in Blosc, none in the other codecs.
    shuffle: Way[Shuffle | None] = None
    #: End of writing. ``close``: the library has closed the file. ``flush``: with a flush by the
    #: library before. ``sync``: bytes and directories are on the device.
    durability: OfData[Durability] = "close"
    #: State of the page cache before reading. ``warm``: the written data are still in memory.
    #: ``shifted``: a rank reads data that a rank on another node wrote. ``dropped``: the pages were
    #: evicted. ``separate``: one job writes and another one, on other nodes, reads (``--stage``).
    cache: OfData[CacheState] = "warm"
    #: With `rearranger`: the ranks that open, write and read a file: their number on each node, or
    #: in all.
    writers: Way[Literal["all"] | Writers] = "all"
    #: Destination of each rank's data before they are written, and origin after they are read
    #: (arrays that ranks share only). ``none``: each rank writes and reads its own. ``gather``: the
    #: writer of its group of ranks, which makes each rank's calls. ``box``: writers that have equal
    #: slabs of the data. ``chunk_owner``: writers that have whole chunks or shards.
    rearranger: Way[Rearranger] = "none"

    #: What is impossible without each library that only some cases need, by its import name.
    optional_libraries: ClassVar[Mapping[str, str]] = {}
    #: Whether arrays are changed or extended after they were written.
    changes_arrays: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.files == "per_rank":  # the same case, whatever `arrays` is
            msgspec.structs.force_setattr(self, "arrays", "per_rank")

    @property
    def workload(self) -> str:
        """Name of the workload."""
        return _tag_of(type(self))

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return itemsize(self.dtype or "float32")

    @property
    def alone(self) -> bool:
        """Whether each rank has a file to itself, and opens it without a communicator."""
        if isinstance(self.files, GroupedFiles):
            return self.files.groups.alone
        return self.files == "per_rank"

    @property
    def shares_arrays(self) -> bool:
        """Whether ranks share each array, once a plan has found which ranks share a file."""
        return self.arrays == "shared" and not self.alone

    @property
    def files_word(self) -> str:
        """The files and arrays of ranks in a word, such as ``one-shared`` or ``per_rank``."""
        return files_word(msgspec.to_builtins(self.as_asked.files), self.arrays)

    @property
    def as_asked(self) -> Self:
        """The parameters of the experiment, without what a plan has found for a number of ranks."""
        if not isinstance(self.files, GroupedFiles):
            return self
        asked = FileCount(per_node=self.files.per_node, count=self.files.count)
        return msgspec.structs.replace(self, files=asked)

    @property
    def given_shape(self) -> Shape | None:
        """Shape of an array, or of a rank's part of it, without time steps; None if not given."""
        return next((getattr(self, key) for key in self.shape_keys), None)

    @property
    def shape_keys(self) -> tuple[str, ...]:
        """The keys of shapes that are given."""
        return tuple(key for key in keys_that_are(type(self), "shape") if getattr(self, key))

    @property
    def has_steps(self) -> bool:
        """Whether arrays have a leading axis of time steps."""
        return False

    @property
    def exchanges(self) -> bool:
        """Whether ranks send array data to each other, which needs MPI."""
        return self.rearranger != "none"

    @property
    def owns_chunks(self) -> bool:
        """Whether each chunk is written by one rank, whatever the parts of ranks."""
        return self.rearranger == "chunk_owner"

    @property
    def input_files(self) -> tuple[str, ...]:
        """Names of the files that data or decomposition come from."""
        return () if self.file is None else (self.file,)

    @property
    def libraries(self) -> tuple[str, ...]:
        """Import names of libraries used in addition to those of the backend."""
        return ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on work timed in addition to the library's calls, for `run.json`."""
        return ()

    @property
    def shares_files(self) -> bool:
        """Whether ranks have a file open together; else each opens its files alone."""
        return not self.alone

    def groups(self, ranks: int) -> FileGroups:
        """Return which of so many ranks share a file."""
        if isinstance(self.files, GroupedFiles):
            return self.files.groups
        return FileGroups(ranks if self.alone else 1, ranks, self.alone)

    def file_stem(self, index: int) -> str:
        """Return the name, without its suffix, of the file of a group of ranks."""
        if isinstance(self.files, FileCount):
            return f"group-{index:06d}"
        return f"rank-{index:06d}" if self.alone else "shared"

    @property
    def transfer_of_reads(self) -> Transfer:
        """How ranks read in a file that they share; a workload may let it differ from writing."""
        return self.transfer


def files_word(files: str | Mapping[str, int], arrays: str) -> str:
    """Return the values of `files` and `arrays`, as a record has them, in a word."""
    if files == "per_rank":
        return "per_rank"
    if not isinstance(files, str):
        files = "_".join(f"{key}_{number}" for key, number in files.items())
    return f"{files}-{arrays}"


@cache
def _tag_of(kind: type[Parameters]) -> str:
    return str(kind.__struct_config__.tag)


class Case(msgspec.Struct, frozen=True, dict=True):
    """One point of the sweep, with a name that stays the same from run to run."""

    #: Parameters of the workload.
    parameters: Parameters
    #: Options of the backend.
    options: Options
    #: Whether pffbench added the case, to show the cost of the raw bytes.
    roofline: bool = False
    #: Name of its environment, in a run of several; else empty.
    environment: str = ""

    def __reduce__(self) -> tuple[Any, ...]:
        # With the names that rank 0 has made: making one loads OpenSSL.
        return _unpickle, (*msgspec.structs.astuple(self), dict(self.__dict__))

    @cached_property
    def id(self) -> str:
        """Readable name with a digest of all parameters; equal cases have equal names."""
        p = self.parameters
        digest = _digest([p.as_asked, self.options])
        where = f"@{self.environment}" if self.environment else ""
        return f"{p.backend}.{p.workload}.{p.files_word}.{p.transfer}.{p.settings}.{digest}{where}"

    @cached_property
    def group(self) -> str:
        """Name of the comparison that the case belongs to: same bytes in the same boxes."""
        return _group(work_of(self.parameters))


def _unpickle(
    parameters: Parameters,
    options: Options,
    roofline: bool,
    environment: str,
    names: dict[str, str],
) -> Case:
    case = Case(parameters, options, roofline, environment)
    case.__dict__.update(names)
    return case


def case_names(cases: Sequence[Case]) -> dict[str, str]:
    """Return names of cases for people, by identifier.

    Cases whose names differ in the digest alone get the parameters and options that set them apart.
    """
    alike: dict[str, list[Case]] = {}
    for case in cases:
        alike.setdefault(without_digests(case.id), []).append(case)
    return {
        case.id: f"{name}{more}"
        for name, some in alike.items()
        for case, more in zip(some, _apart(some), strict=True)
    }


def _apart(cases: Sequence[Case]) -> list[str]:
    """Return the parameters and options in which cases differ, as text to be appended."""
    told = [
        msgspec.to_builtins(case.parameters.as_asked, enc_hook=int)
        | msgspec.to_builtins(case.options, enc_hook=int)
        for case in cases
    ]
    telling = [key for key in told[0] if any(one.get(key) != told[0][key] for one in told)]
    return [
        "".join(f" {key}={value_text(one[key])}" for key in telling if one.get(key) is not None)
        for one in told
    ]


def work_of(parameters: P, *but: str) -> P:
    """Return parameters without the ways of doing the work, but for those that are named.

    Cases of one comparison have equal ones, so that results for one hold for all.
    """
    usual = dict(_usual_ways(type(parameters), but))
    if isinstance(parameters.files, FileCount) and "files" not in but:
        usual |= _GROUPED
    return msgspec.structs.replace(parameters, **usual)


#: Work in files of groups of ranks, however many: these are compared with each other.
_GROUPED = {"files": FileCount(), "arrays": "shared"}


@cache
def _usual_ways(kind: type[Parameters], but: tuple[str, ...]) -> dict[str, Any]:
    ways = keys_that_are(kind, "way")
    usual = {f.name: f.default for f in msgspec.structs.fields(kind) if f.name in ways}
    usual["backend"] = ""  # which has no default
    return {name: value for name, value in usual.items() if name not in but}


@lru_cache(maxsize=2**14)
def _group(work: Parameters) -> str:
    files = work.files if isinstance(work.files, str) else "groups"
    return f"{work.workload}.{files}.{_digest(work)}"


#: Sizes become integers; keys are sorted, so that equal records are equal text.
_ENCODER = msgspec.json.Encoder(enc_hook=int, order="sorted")


def _digest(value: Any) -> str:
    return _sha256()(_ENCODER.encode(value)).hexdigest()[:DIGITS]


@cache
def _sha256() -> Callable[[bytes], hashlib._Hash]:
    """Load OpenSSL, which takes milliseconds, where cases are named: on rank 0."""
    import hashlib

    return hashlib.sha256


@cache
def itemsize(dtype: str) -> int:
    """Bytes of one element of a type that an experiment may name."""
    return int("".join(c for c in dtype if c.isdigit())) // 8


__all__ = ["ArrayShape", "Case", "Options", "Parameters", "Shape", "itemsize"]
