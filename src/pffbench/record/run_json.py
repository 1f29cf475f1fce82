"""`run.json`: the record of a run, its schema and its atomic replacement.

A record can come from anyone, or from a run that was killed while its disk failed. A wrong layout
is rejected once, when it is read. Keys may be missing, since records of other programs contain
less; code that requires one uses `readable`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from pffbench.case import PLAIN_NAME, ExperimentName
from pffbench.errors import UserError
from pffbench.record.lock import killed
from pffbench.record.plausible import Natural, Positive
from pffbench.regular_files import (
    LARGEST_RECORD,
    read_regular,
    similar_path,
    write_replacing,
)
from pffbench.text import escaped, json_needs_escaping, one_line, without_digests

#: Version of the layout of a results directory; readers reject others.
SCHEMA_VERSION = 2
#: An object of JSON as plain data, and the entry of a case, which readers leave as it is.
JsonObject = dict[str, Any]
Entry = Mapping[str, Any]
_NOT_THERE = (
    KeyError, TypeError, ValueError, AttributeError, IndexError, ZeroDivisionError, OverflowError,
    RecursionError,
)  # fmt: skip


def digest_of(experiment: JsonObject) -> str:
    """Return the digest of an experiment as plain data."""
    text = json.dumps(experiment, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def readable(*directories: str | Path) -> Iterator[None]:
    """Report results directories that hold too little, or something else than they should.

    The error may be in the code and not in the directory: with PFFBENCH_TRACEBACK in the
    environment the original error is raised, with its traceback.

    Raises
    ------
    UserError
        In place of the errors raised by accesses to missing data.
    """
    try:
        yield
    except _NOT_THERE as error:
        if os.environ.get("PFFBENCH_TRACEBACK"):
            raise
        names = ", ".join(map(str, directories))
        what = "a value is of another kind"
        if isinstance(error, KeyError):
            what = f"{one_line(str(error.args[0]), 60)!r} is missing"
        elif isinstance(error, ValueError):
            what = one_line(str(error), 200)
        raise UserError(
            f"{names}: holds what pffbench did not write, or less than it does ({what}; "
            "PFFBENCH_TRACEBACK=1 tells where it is looked for)"
        ) from error


class RunRecord(msgspec.Struct):
    """The contents of `run.json`, which the reference pages explain by this docstring.

    Attributes
    ----------
    schema_version : int
        Layout of the directory: 2. Readers refuse others.
    run_id : str
        Identifies the run; the marker of its scratch directory contains it too.
    name, question : str
        From the experiment.
    command : list of str
        The command line.
    ranks : int
        Number of ranks.
    started, finished : str
        When the run began and ended.
    resumed : list of str
        When it was resumed.
    status : {"running", "written", "finished", "interrupted"}
        State of the run: `running` (also after a crash), `interrupted`, `written` (another job is
        to read) or `finished`.
    stage : {"all", "write", "read"}
        The part of the run that the last job did, or is doing.
    wrote_on : list of str
        For a run in two stages: the hosts of all jobs that wrote.
    reading : dict, optional
        For a run in two stages: `started`, `floor`, `startup`, `topology` and `provenance` of the
        job that read last.
    valid : bool or None
        The verdict, `null` while running.
    reasons : list of str
        Reasons why the run is not valid.
    remarks : list of str
        Facts to know that do not make the run INVALID, such as stopping early.
    stops : list of str
        Reasons why cases stopped before `max_repetitions`; `stopped_after` of a case is its
        repetition count.
    clock : {"own", "synced"}
        Which time of a phase is the job's: `own` where each rank has a core, else `synced`.
    experiment : dict
        The experiment including all defaults.
    experiment_file : str
        Where it was read from.
    experiment_digest : str, optional
        SHA-256 of the experiment, which detects a change when the run is resumed.
    cases : dict
        For each case: `parameters`, `options`, `group`, `raw`, `roofline` (added by pffbench),
        `verified`, `caller_buffer` (reads into the caller's memory), `notes` (what could not be
        matched), `cost` (planned), `stored_as` (read from the file), `disk`, `transfer_facts` (the
        transfer that HDF5 really did, and why not a collective one), `counts_reads` and
        `counts_device` (whether the kernel counts bytes read, and fetched from the device),
        `stopped_after`, `failure`, `invalid` (the reason).
    left_out : list of dict
        Cases that are impossible or that the time budget did not hold (``limit``), with the reason.
    limits : list of str
        Cases that the installed libraries cannot do (a serial h5py, no MPI), by backend and reason,
        with the remedies; how many the time budget did not hold.
    floor : dict
        Seconds of an empty phase (`own`, `synced`) and of the clock's tick, medians of `measured`
        measurements; `synced_range`; bytes per second of a memory copy on all ranks at once,
        measured after the first block if memory allows.
    startup : dict
        Seconds until the program began; in no phase.
    topology : dict
        `hosts` and `nodes` of each rank; `ranks_per_node`; `shifted_reads_from`: whose part each
        rank reads with cache `shifted`.
    provenance : dict
        `software`, `mpi_io` (`missing`: why a run of one process had no MPI), `filesystem`,
        `inputs` (size and SHA-256 of files with data or decompositions; above 64 MiB of both ends,
        for directories of names and sizes), `ranks` (binding, limits), `hosts` (CPU, memory,
        kernel), `environment` (secrets hidden), `import_seconds`, `slurm`, `pbs`, `flux`, `spack`.
        Without account, user and directories of the job.
    scratch : str
        Where the files were; they are gone, unless the status is `written`.
    environments : dict
        For each environment of a run of several: `start` (the command that starts its Python) and
        `provenance`. That of the first one is the run's own too.
    allocator : dict
        For the `settings` of its cases: how the C library treated freed memory in all ranks.
    """

    run_id: str
    name: str
    question: str
    command: list[str]
    ranks: int
    started: str
    experiment: JsonObject
    experiment_file: str
    cases: dict[str, JsonObject]
    left_out: list[dict[str, str]]
    scratch: str
    topology: JsonObject
    floor: dict[str, float]
    startup: JsonObject
    provenance: JsonObject
    schema_version: int = SCHEMA_VERSION
    status: str = "running"
    valid: bool | None = None
    reasons: list[str] = []
    remarks: list[str] = []
    finished: str | None = None
    resumed: list[str] = []
    stage: str = "all"
    wrote_on: list[str] = []
    reading: JsonObject | None = None
    experiment_digest: str | None = None
    clock: str = "own"
    stops: list[str] = []
    limits: list[str] = []
    environments: dict[str, JsonObject] = {}
    allocator: dict[str, str] = {}

    @property
    def last_written(self) -> dict[str, str]:
        """For a run in two stages, the last write phase of each case."""
        if self.stage == "all":
            return {}
        return {name: _last_written(entry["parameters"]) for name, entry in self.cases.items()}

    @property
    def traced(self) -> bool:
        """Whether system calls were counted, which slows them: its times show nothing."""
        return self.experiment.get("counters") == "calls"

    @property
    def without_time(self) -> int:
        """The number of cases that the time budget did not hold."""
        return sum(1 for one in self.left_out if one.get("limit"))

    @property
    def objection(self) -> str:
        """The reason why the run is not valid, for people; empty where none is known."""
        if self.valid is False or self.reasons:
            return without_digests(self.reasons[0]) if self.reasons else "see run.json"
        return ""

    def save(self, directory: str | Path) -> None:
        """Replace `run.json` atomically: either the old or the new record remains."""
        text = _json_of(msgspec.structs.asdict(self))
        if "\\ud" in text:  # bytes that are not UTF-8, which readers would reject
            text = _json_of(escaped(msgspec.structs.asdict(self)))
        write_replacing(Path(directory) / "run.json", text + "\n", durable=True)

    @classmethod
    def load(cls, directory: str | Path) -> RunRecord:
        """Read the record of a run; one that was killed while it was running was interrupted.

        Raises
        ------
        ValueError
            There is no record, or its layout is unknown to this version of pffbench.
        """
        path = Path(directory) / "run.json"
        try:
            data = _decoded(read_regular(path, LARGEST_RECORD))
        except FileNotFoundError:
            why = "it holds no run.json"
            if not path.parent.is_dir():
                hint = one_line(similar_path(directory, directory=True))
                why = f"there is no such directory{hint}"
            elif inner := next(path.parent.glob("*/run.json"), None):
                why += f"; did you mean {one_line(str(inner.parent))!r}?"
            raise ValueError(f"{directory} is no results directory: {why}") from None
        except OSError as error:
            raise ValueError(
                f"{directory} is no results directory: {error.strerror}: {path}"
            ) from None
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise ValueError(f"{path} is not valid JSON: {one_line(str(error), 300)}") from None
        version = data.get("schema_version") if isinstance(data, dict) else None
        if not isinstance(version, int):
            raise ValueError(f"{path} names no schema_version: it is not the record of a run")
        if version != SCHEMA_VERSION:
            age = "an older" if version < SCHEMA_VERSION else "a newer"
            raise ValueError(
                f"{path} has layout version {version}, of {age} pffbench; this one reads version "
                f"{SCHEMA_VERSION}: use the pffbench that made it "
                "(provenance.software.pffbench)"
            )
        try:
            check_layout(data)
            record = cls(**data)
        except (TypeError, ValueError) as error:
            told = one_line(str(error), 300)
            raise ValueError(f"{path} is not a record of a run: {told}") from None
        if record.status == "running" and killed(directory):
            record.status = "interrupted"
        return record


def _json_of(data: JsonObject) -> str:
    return json.dumps(data, indent=1, allow_nan=False, default=str)


def _decoded(data: bytes) -> Any:
    """Return the contents of a record, without text that would act on a terminal."""
    found = msgspec.json.decode(data)
    return escaped(found) if json_needs_escaping(data) else found


def _last_written(parameters: JsonObject) -> str:
    phase = "sync" if parameters["durability"] == "sync" else "close"
    return phase + "_update" if parameters.get("workload") == "updates" else phase


#: Maximum seconds, or bytes a second; larger values are no measurement.
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e18)]
#: Part of the name of the scratch directory.
PlainName = Annotated[str, msgspec.Meta(pattern=PLAIN_NAME, max_length=200)]


class Stored(msgspec.Struct):
    """Storage layout of the arrays."""

    codec: str = ""
    fill: str = ""
    more: dict[str, str | int | float | bool | None] = {}
    chunks: list[Positive] | None = None


class ParametersEntry(msgspec.Struct):
    """Parameters common to all workloads."""

    backend: str = ""
    workload: str = ""
    layout: str = ""
    transfer: str = ""
    settings: str = ""
    durability: str = "close"
    cache: str = "warm"
    dtype: str | None = None
    source: str | None = None
    file: str | None = None
    variable: str | None = None
    chunks: str | list[Positive] | None = None
    codec: str | None = None
    level: int | None = None
    environment: str = ""


class CostEntry(msgspec.Struct):
    """Planned cost of a case."""

    nbytes: Natural = 0


class FailureEntry(msgspec.Struct):
    """Failure of a case."""

    phase: str = ""
    rank: Natural = 0
    error: str = ""
    repetition: Natural = 0
    host: str = ""
    traceback: str = ""
    ranks_failed: Natural = 1


class CaseEntry(msgspec.Struct):
    """One case."""

    parameters: ParametersEntry = msgspec.field(default_factory=ParametersEntry)
    options: JsonObject = {}
    group: str = ""
    same_case: str = ""
    raw: bool = False
    roofline: bool = False
    verified: bool = False
    caller_buffer: bool = True
    notes: list[str] = []
    cost: CostEntry | None = None
    stored_as: Stored | None = None
    disk: dict[str, Natural] | None = None
    transfer_facts: dict[str, str] = {}
    failure: FailureEntry | None = None
    invalid: str | None = None
    stopped_after: Natural | None = None


class TopologyEntry(msgspec.Struct):
    """Placement of the ranks."""

    hosts: list[str] = []
    nodes: list[Natural] = []
    ranks_per_node: list[Positive] = []


class FloorEntry(msgspec.Struct):
    """Overhead of the harness."""

    own: Amount = 0.0
    synced: Amount = 0.0
    tick: Amount = 0.0
    memory_copy_bytes_per_second: Amount = 0.0
    memory_new_bytes_per_second: Amount = 0.0


class Startup(msgspec.Struct):
    """Seconds until the program began."""

    seconds_to_main: float | None = None
    resumed: list[float] = []


class Software(msgspec.Struct):
    """Versions of the software."""

    python: JsonObject = {}
    pffbench: JsonObject = {}
    libraries: dict[str, JsonObject] = {}


class Host(msgspec.Struct):
    """Hardware and system of a node."""

    memory_bytes: Natural | None = None
    cpu_model: str | None = None
    os: str | None = None


class FileSystemEntry(msgspec.Struct):
    """The file system under test."""

    type: str | None = None


class Provenance(msgspec.Struct):
    """Provenance of the run."""

    software: Software = msgspec.field(default_factory=Software)
    hosts: list[Host] = []
    ranks: list[JsonObject] = []
    filesystem: FileSystemEntry = msgspec.field(default_factory=FileSystemEntry)
    environment: JsonObject | None = None
    mpi_io: JsonObject | None = None
    slurm: JsonObject | None = None
    pbs: JsonObject | None = None
    flux: JsonObject | None = None
    spack: JsonObject | None = None


class ExperimentEntry(msgspec.Struct):
    """Plan of the repetitions, by which a run is judged."""

    repetitions: Literal["auto"] | Positive | None = None
    max_repetitions: Positive = 40
    margin: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None


class LeftOut(msgspec.Struct):
    """A case that was impossible, or one with a limit that it did not fit: ``time``."""

    case: str
    reason: str
    limit: str = ""


class Reading(msgspec.Struct):
    """The reading job of a run in two stages."""

    started: str | None = None
    floor: FloorEntry = msgspec.field(default_factory=FloorEntry)
    startup: Startup = msgspec.field(default_factory=Startup)
    topology: TopologyEntry | None = None
    provenance: Provenance = msgspec.field(default_factory=Provenance)


class EnvironmentRecord(msgspec.Struct):
    """An environment of a run of several."""

    start: str = ""
    provenance: Provenance = msgspec.field(default_factory=Provenance)


#: How the fields of a record are checked whose contents readers rely on; others by their types.
_CHECKED: dict[str, Any] = {
    "run_id": PlainName,
    "name": ExperimentName,
    "ranks": Positive,
    "experiment": ExperimentEntry,
    "cases": dict[str, CaseEntry],
    "left_out": list[LeftOut],
    "topology": TopologyEntry,
    "floor": FloorEntry,
    "startup": Startup,
    "provenance": Provenance,
    "status": Literal["running", "written", "finished", "interrupted"],
    "stage": Literal["all", "write", "read"],
    "reading": Reading | None,
    "clock": Literal["own", "synced"],
    "environments": dict[str, EnvironmentRecord],
}
_Entry = msgspec.defstruct(
    "_Entry",
    [
        (field.name, _CHECKED.get(field.name, field.type), *(() if field.required else (None,)))
        for field in msgspec.structs.fields(RunRecord)
    ],
)


def check_layout(data: object) -> None:
    """Reject data that do not have the layout of a record.

    Raises
    ------
    ValueError
        Names the place and the expected value.
    """
    try:
        msgspec.convert(data, _Entry)
    except msgspec.ValidationError as error:
        raise ValueError(str(error).replace("`", "")) from None
