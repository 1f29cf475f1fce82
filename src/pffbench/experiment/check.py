"""Checks of every case before any file is created: capabilities, codecs, limits, arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from pffbench.backends.array_spec import Capabilities
from pffbench.backends.base import NotInstalled, Unsafe, opens_by_mpi_io
from pffbench.backends.hints import idle_hints
from pffbench.backends.registry import backend_class, missing_library
from pffbench.backends.shared_files import built_for_mpi, serial_library
from pffbench.case import LEVELS, Case, FileCount, GroupedFiles, Parameters, keys_that_are
from pffbench.data import file_source
from pffbench.errors import ImpossibleCaseError, UnsupportedCaseError, UserError
from pffbench.experiment.load import LoadedExperiment
from pffbench.experiment.plan import Cost, Plan, arrays_of, as_in, cost_of
from pffbench.experiment.schema import Experiment
from pffbench.geometry.groups import FileGroups
from pffbench.mpi.topology import Topology
from pffbench.text import without_digests
from pffbench.workloads.base import Impossible
from pffbench.workloads.registry import workload
from pffbench.workloads.writers import refuse_writers

if TYPE_CHECKING:
    from pffbench.data.files import FileSource


def beyond_codecs(p: Parameters, can: Capabilities) -> str | None:
    """Return why a case cannot be compressed as requested, or None."""
    if p.codec not in ("auto", *can.codecs):
        return f"backend {p.backend} cannot do codec {p.codec} (it can: {_list(can.codecs)})"
    if p.level is not None and (reason := _beyond_levels(p)):
        return reason
    if p.compressor is not None and p.codec != "blosc":
        return f"compressor {p.compressor} is one of Blosc's; it needs codec: blosc"
    if p.compressor is not None and p.compressor not in can.compressors:
        return (
            f"backend {p.backend} cannot do compressor {p.compressor} "
            f"(it can: {_list(can.compressors)})"
        )
    if p.shuffle not in (None, "none") and p.codec in ("auto", "none"):
        return f"shuffle {p.shuffle} comes before a codec, and codec {p.codec} compresses nothing"
    shuffles = can.shuffles.get(p.codec, frozenset({"none"}))
    if p.shuffle is not None and p.shuffle not in shuffles:
        return (
            f"backend {p.backend} cannot do shuffle {p.shuffle} with codec {p.codec} "
            f"(it can: {_list(shuffles)})"
        )
    library = can.codec_libraries.get(p.codec)
    if library is not None and find_spec(library) is None:
        return (
            f"codec {p.codec} in backend {p.backend} needs the Python package {library}, which is "
            "not installed (see pffbench doctor)"
        )
    return None


def _beyond_levels(p: Parameters) -> str | None:
    if p.codec not in LEVELS:
        return f"codec {p.codec} has no level (those that have: {_list(LEVELS)})"
    lowest, highest = LEVELS[p.codec]
    if p.level is not None and not lowest <= p.level <= highest:
        return f"codec {p.codec} has the levels {lowest} to {highest}, not {p.level}"
    return None


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


#: Beginning of the limit of a plan without extra cold reads.
NO_COLD_READS = "reads from the device left out: "
#: Maximum number of arrays of a case: each rank keeps a description of every one.
MOST_ARRAYS = 10_000_000
#: Maximum number of calls of all ranks to write a case in which each rank makes one for the arrays
#: of every rank: more would take hours.
MOST_CALLS = 100_000_000
#: Repetitions of cases that another job reads, where the experiment leaves their number open: the
#: writing job cannot know how many the reading job will need.
_STAGED_REPETITIONS = 10


def make_plan(
    loaded: LoadedExperiment,
    ranks: int,
    no_mpi: str | None = None,
    no_cold_reads: str | None = None,
    topology: Topology | None = None,
    *,
    as_installed: bool = True,
) -> Plan:
    """Check all cases for a number of ranks.

    Parameters
    ----------
    loaded : LoadedExperiment
        The experiment with all its cases.
    ranks : int
        Number of ranks.
    no_mpi : str, optional
        Why the run has no MPI; without a reason it has.
    no_cold_reads : str, optional
        Why the page cache cannot be dropped; without a reason it can.
    topology : Topology, optional
        The nodes of the ranks; one node when not given.
    as_installed : bool
        Whether cases that the installed libraries cannot do are impossible.

    Raises
    ------
    UserError
        A case is invalid, or is impossible and the experiment does not skip such cases.
    """
    cases: list[Case] = []
    left_out: list[tuple[str, str]] = []
    unsupported: Counter[tuple[str, str]] = Counter()
    costs: dict[str, Cost] = {}
    allowed: dict[str, str] = {}
    with ExitStack() as stack:
        files = _Files(stack)
        unsafe = loaded.experiment.unsafe
        checker = _Checker(ranks, no_mpi, as_installed=as_installed, unsafe=unsafe)
        topology = topology or Topology.even(ranks, 1)
        for where, raw in loaded.cases:
            if no_cold_reads is not None and is_extra(loaded, raw):
                continue
            try:
                case = _with_source(_with_groups(raw, where, topology), where, files)
                reason = checker.check(case, where)
                costs[case.id] = _cost_of_possible(case, where, ranks, loaded.experiment)
                cases.append(case)
                if reason:
                    allowed[case.id] = reason
            except ImpossibleCaseError as error:
                if loaded.experiment.unsupported == "refuse" and not raw.roofline:
                    raise
                reason = str(error).removeprefix(f"{where}: ")
                left_out.append((raw.id, reason))
                if isinstance(error, UnsupportedCaseError):
                    unsupported[raw.parameters.backend, reason] += 1
    if not cases:
        raise UserError(
            f"{loaded.path}: all {len(left_out)} cases are impossible, the first one "
            f"because: {left_out[0][1]}"
        )
    experiment = _with_repetitions(loaded.experiment, cases)
    limits = [
        f"{count} case{'s' * (count > 1)} of {backend} left out: {reason}"
        for (backend, reason), count in unsupported.items()
    ]
    if no_cold_reads is not None and extra_cold_reads(loaded):
        limits.append(f"{NO_COLD_READS}{no_cold_reads}")
    texts = (*loaded.compare_ranks(ranks), *loaded.idle, *_idle_hints(cases, ranks))
    return Plan(
        experiment,
        ranks,
        tuple(_together(cases)),
        tuple(left_out),
        costs,
        tuple(limits),
        remarks=tuple(dict.fromkeys(texts)),
        unsafe=allowed,
    )


def _cost_of_possible(case: Case, where: str, ranks: int, experiment: Experiment) -> Cost:
    """Return the cost of a case; refuse one that no node holds, or that makes too many calls."""
    if experiment.node_local and (why := _beyond_a_node(case.parameters, ranks)):
        raise ImpossibleCaseError(f"{where}: {why}")
    cost = cost_of(case, ranks, int(experiment.memory))
    if cost.calls > MOST_CALLS:
        raise ImpossibleCaseError(f"{where}: {_too_many_calls(cost)}")
    return cost


def _idle_hints(cases: Iterable[Case], ranks: int) -> Iterator[str]:
    """Yield the hints of cases that cannot have an effect."""
    for case in cases:
        for hint in idle_hints(case.options, case.parameters, ranks):
            yield f"{without_digests(case.id)}: the hint {hint} has no effect ({hint.why})"


def _too_many_calls(cost: Cost) -> str:
    return (
        f"arrays: per_rank with transfer: collective makes {cost.calls} calls to write, a call of "
        f"each rank for the arrays of every rank (at most {MOST_CALLS}); use "
        "transfer: independent, or fewer ranks"
    )


def extra_cold_reads(loaded: LoadedExperiment) -> list[Case]:
    """Return the cases whose cold reads the experiment adds to others."""
    return [case for _, case in loaded.cases if is_extra(loaded, case)]


def is_extra(loaded: LoadedExperiment, case: Case) -> bool:
    """Whether a case is a cold read that the experiment adds to others."""
    extra = loaded.experiment.cold_reads == "extra" and case.parameters.cache == "dropped"
    return extra and any(c.parameters.cache != "dropped" for _, c in loaded.cases)


def _with_repetitions(experiment: Experiment, cases: Iterable[Case]) -> Experiment:
    """Set the number of repetitions of cases that another job reads."""
    staged = any(case.parameters.cache == "separate" for case in cases)
    if experiment.repetitions != "auto" or not staged:
        return experiment
    most = min(_STAGED_REPETITIONS, experiment.max_repetitions)
    return replace(experiment, repetitions=most)


def _together(cases: Iterable[Case]) -> list[Case]:
    """Place the cases of a comparison next to each other, so that drift affects them alike."""
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.group, []).append(case)
    return [case for group in groups.values() for case in group]


def check_case(case: Case, ranks: int, where: str) -> None:
    """Refuse a case that cannot be run.

    Raises
    ------
    ImpossibleCaseError
        The backend cannot do it.
    UserError
        Its parameters are inconsistent.
    """
    _Checker(ranks).check(case, where)


class _Checker:
    """Checks cases for a number of ranks and the installed libraries."""

    def __init__(
        self,
        ranks: int,
        no_mpi: str | None = None,
        *,
        as_installed: bool = True,
        unsafe: bool = False,
    ) -> None:
        self._ranks = ranks
        self._unsafe = unsafe
        self._as_installed = as_installed
        self._no_mpi = no_mpi
        self._lacking = cache(_lacking)

    def check(self, case: Case, where: str) -> str:
        """Refuse a case that cannot be run, as `check_case`; return why it is unsafe, or ""."""
        p, unsafe = case.parameters, ""
        try:
            self._look_at(p)
        except UserError as error:
            raise type(error)(f"{where}: {error}") from None
        for of in arrays_of(p, self._ranks).families:
            refuse = backend_class(p.backend).refuse
            if reason := refuse(as_in(p, of), case.options, of.kinds, of.writer_edges):
                if self._unsafe and isinstance(reason, Unsafe):
                    unsafe = unsafe or f"{of.label}{reason}"
                elif not isinstance(reason, NotInstalled):
                    raise ImpossibleCaseError(f"{where}: {of.label}{reason}")
                elif self._as_installed:
                    raise UnsupportedCaseError(f"{where}: {of.label}{reason}")
        return unsafe

    def _look_at(self, p: Parameters) -> None:
        """Refuse a case by its parameters, its arrays and the libraries."""
        backend = backend_class(p.backend)
        refused = workload(p.workload).refuse(p, self._ranks, backend) or refuse_writers(
            p, arrays_of(p, self._ranks), backend
        )
        if refused and not isinstance(refused, Impossible):
            raise UserError(refused)
        # What a format cannot do in any workload says more than what it cannot do in this one.
        if reason := _beyond(p):
            raise ImpossibleCaseError(reason)
        if self._as_installed:
            self._look_at_libraries(p)
        if refused:
            raise ImpossibleCaseError(refused)
        if (number := arrays_of(p, self._ranks).volume.arrays) > MOST_ARRAYS:
            raise UserError(f"{number} arrays are too many (at most {MOST_ARRAYS})")

    def _look_at_libraries(self, p: Parameters) -> None:
        """Refuse a case that the installed libraries cannot do."""
        if reason := self._lacking(p.backend):
            raise UnsupportedCaseError(f"backend {p.backend} {reason}")
        if reason := self._unshared(p):
            raise UnsupportedCaseError(reason)

    def _unshared(self, p: Parameters) -> str | None:
        """Return why the libraries here cannot open the files of a case, or None."""
        kind = backend_class(p.backend)
        by_mpi_io = opens_by_mpi_io(kind, p)
        if by_mpi_io and (reason := serial_library(kind)):
            return reason
        if self._no_mpi is not None and (by_mpi_io or any(map(built_for_mpi, kind.libraries))):
            return f"backend {p.backend} needs MPI, and this process has none ({self._no_mpi})"
        if self._no_mpi is not None and p.exchanges:
            return f"rearranger needs MPI, and this process has none ({self._no_mpi})"
        return None


def _lacking(backend: str) -> str | None:
    """Return the library that a backend needs and that is missing, or None."""
    return missing_library(backend_class(backend))


def _beyond(p: Parameters) -> str | None:
    """Return the ability that the backend lacks, or None."""
    can = backend_class(p.backend).capabilities
    if not p.alone and p.arrays not in can.arrays:
        possible = ("files: per_rank", *(f"arrays: {one}" for one in sorted(can.arrays)))
        return (
            f"backend {p.backend} cannot do arrays: {p.arrays} in files that ranks share (it can: "
            f"{', '.join(possible)})"
        )
    if p.alone and p.transfer == "collective":
        return "files: per_rank shares no file, so transfer must be independent"
    for way in (p.transfer, p.transfer_of_reads):
        if not p.alone and way not in can.transfers:
            return f"backend {p.backend} cannot do transfer {way} (it can: {_list(can.transfers)})"
    return beyond_codecs(p, can)


def _beyond_a_node(p: Parameters, ranks: int) -> str | None:
    """Return why files of a case cannot lie in a directory of each node, or None."""
    if not p.alone and not (isinstance(p.files, FileCount) and p.files.per_node):
        return (
            "with node_local no file is shared between nodes (possible: files: per_rank, and "
            "files: {per_node: n})"
        )
    arrays = arrays_of(p, ranks)
    if p.cache in ("shifted", "separate") or arrays.reads_elsewhere:
        return "with node_local no rank can read what another node wrote"
    if arrays.second_store:
        return "with node_local no store is made from another one"
    return None


def _with_groups(case: Case, where: str, topology: Topology) -> Case:
    """Find which ranks share a file, where they are groups of ranks.

    Raises
    ------
    UserError
        The groups are not clear; or, as an `ImpossibleCaseError`, these ranks cannot form them.
    """
    p, ranks = case.parameters, topology.size
    if not isinstance(p.files, FileCount):
        return case
    if unclear := p.files.unclear():
        raise UserError(f"{where}: {unclear}")
    if reason := p.files.beyond(ranks) or _beyond_nodes(p.files, topology):
        raise ImpossibleCaseError(f"{where}: {reason}")
    number = p.files.count or (p.files.per_node or 1) * topology.node_count
    independent = {p.transfer, p.transfer_of_reads} == {"independent"}
    groups = FileGroups(number, ranks, alone=number == ranks and independent)
    found = GroupedFiles(per_node=p.files.per_node, count=p.files.count, groups=groups)
    return replace(case, parameters=replace(p, files=found))


def _beyond_nodes(files: FileCount, topology: Topology) -> str | None:
    """Return why the ranks of nodes cannot form so many equal groups, or None."""
    if files.per_node is None:
        return None
    fewest, most = min(topology.ranks_per_node), max(topology.ranks_per_node)
    if files.per_node > fewest:
        return f"files.per_node is {files.per_node}, but a node has {fewest} ranks"
    if fewest != most:
        return (
            f"files.per_node needs equally many ranks on each node, and they are {fewest} to "
            f"{most}; use files: {{count: n}}"
        )
    if list(topology.nodes) != sorted(topology.nodes):
        return (
            "files.per_node needs consecutive ranks on each node (srun --distribution=block, "
            "mpiexec --map-by slot); use files: {count: n}"
        )
    return None


class _Files:
    """The user's own files, each opened once while a plan is made."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._known: dict[tuple[str | None, ...], FileSource] = {}

    def open(self, p: Parameters) -> FileSource:
        """Open the file and variable of a case.

        Raises
        ------
        UserError
            The file or variable does not exist, or cannot serve as data.
        """
        key = (p.dtype, p.file, p.variable)
        if key not in self._known:
            assert p.file is not None
            source = file_source(p.file, p.variable, p.dtype)
            self._stack.callback(source.close)
            self._known[key] = source
        return self._known[key]


def _with_source(case: Case, where: str, files: _Files) -> Case:
    """Fill in the type, and the shape where none is given, of the user's own file."""
    p = case.parameters
    if p.source != "file":
        if p.file is not None or p.variable is not None:
            raise UserError(f"{where}.file: file and variable go with source: file only")
        return case
    if p.file is None:
        raise UserError(f"{where}.file: missing; source: file takes its data from this file")
    try:
        source = files.open(p)
    except UserError as error:
        raise UserError(f"{where}.file: {error}") from None
    filled: dict[str, Any] = {"dtype": str(source.dtype)}
    wanted = p.given_shape
    if wanted is None:
        filled |= {"shape": source.shape} if keys_that_are(type(p), "shape") else {}
    elif len(source.shape) != (axes := len(wanted) + p.has_steps):
        with_steps = ", steps included" if axes > len(wanted) else ""
        raise UserError(
            f"{where}.shape: {list(wanted)} has {axes} axes{with_steps}, the variable in {p.file} "
            f"has {len(source.shape)}: {list(source.shape)}"
        )
    return replace(case, parameters=replace(p, **filled))
