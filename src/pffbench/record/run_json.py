"""`run.json`: the record of a run, its schema, and how it is replaced as a whole.

A record can come from anybody, or from a run that was killed while its disk failed. What is not
laid out as here is refused once, when it is read, and not wherever it is used. Keys may be missing,
since records of other programs know less; `readable` is for whoever needs one that is not there.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from pffbench.case import PLAIN_NAME, ExperimentName
from pffbench.errors import UserError
from pffbench.regular_files import read_regular, write_replacing
from pffbench.text import escaped, json_needs_escaping, one_line

#: Version of the layout of a results directory; a reader refuses what it does not know.
SCHEMA_VERSION = 2
#: Versions that can be read.
_READABLE = (1, 2)
#: Bytes: a record of 100 000 cases, which is the most, has a tenth of them.
LARGEST = 2**29
_NOT_THERE = (
    KeyError, TypeError, ValueError, AttributeError, IndexError, ZeroDivisionError, OverflowError,
    RecursionError,
)  # fmt: skip


def digest_of(experiment: dict[str, Any]) -> str:
    """Return the digest of an experiment as plain data."""
    text = json.dumps(experiment, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def readable(*directories: str | Path) -> Iterator[None]:
    """Say of results directories that they hold too little, or something else than they should.

    The code may be at fault and not the directory: with PFFBENCH_TRACEBACK in the environment the
    error itself is raised, which tells where.

    Raises
    ------
    UserError
        Instead of what looking for something that is not there raises.
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


@dataclass
class RunRecord:
    """All that `run.json` holds.

    Parameters
    ----------
    run_id : str
        Identifies the run; the marker of its scratch directory carries it too.
    name, question : str
        From the experiment.
    status : {"running", "written", "finished", "interrupted"}
        How the run stands; ``written`` when its data wait for another job to read them.
    valid : bool or None
        The verdict, None while running.
    reasons : list of str
        Why the run is not valid.
    experiment : dict
        The experiment with all defaults filled in.
    cases : dict
        For each case: parameters, options, cost, how it was stored and transferred, failure.
    floor, startup, topology, provenance : dict
        Measured and collected at the start.
    stage : {"all", "write", "read"}
        Which part the last job did, or is doing.
    wrote_on : list of str
        Of a run in two stages: the hosts of all jobs that wrote.
    reading : dict, optional
        Of a run in two stages: ``started``, ``floor``, ``startup``, ``topology`` and
        ``provenance`` of the job that read last.
    imported : str, optional
        The program, with its version, that measured, where it was not pffbench.
    experiment_digest : str, optional
        SHA-256 of the experiment, by which a change of it is noticed when the run goes on.
    clock : {"own", "synced"}
        Which time of a phase is the job's.
    stops : list of str
        Why cases stopped before all repetitions; ``stopped_after`` of a case says after how many.
    """

    run_id: str
    name: str
    question: str
    command: list[str]
    ranks: int
    started: str
    experiment: dict[str, Any]
    experiment_file: str
    cases: dict[str, dict[str, Any]]
    left_out: list[dict[str, str]]
    scratch: str
    topology: dict[str, Any]
    floor: dict[str, float]
    startup: dict[str, Any]
    provenance: dict[str, Any]
    schema_version: int = SCHEMA_VERSION
    status: str = "running"
    valid: bool | None = None
    reasons: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    finished: str | None = None
    resumed: list[str] = field(default_factory=list)
    stage: str = "all"
    wrote_on: list[str] = field(default_factory=list)
    reading: dict[str, Any] | None = None
    imported: str | None = None
    experiment_digest: str | None = None
    clock: str = "own"
    stops: list[str] = field(default_factory=list)

    @property
    def last_written(self) -> dict[str, str]:
        """Of a run in two stages, for each case the phase with which its data are written."""
        if self.stage == "all":
            return {}
        return {name: _last_written(entry["parameters"]) for name, entry in self.cases.items()}

    def save(self, directory: str | Path) -> None:
        """Replace `run.json` in a way that leaves either the old or the new one whole."""
        text = _json_of(vars(self))
        if "\\ud" in text:  # bytes that are no UTF-8, which no reader would take
            text = _json_of(escaped(vars(self)))
        write_replacing(Path(directory) / "run.json", text + "\n", durable=True)

    @classmethod
    def load(cls, directory: str | Path) -> RunRecord:
        """Read the record of a run.

        Raises
        ------
        ValueError
            There is none, or this version of pffbench does not know its layout.
        """
        path = Path(directory) / "run.json"
        try:
            data = _decoded(read_regular(path, LARGEST))
        except FileNotFoundError:
            why = "it holds no run.json" if path.parent.is_dir() else "there is no such directory"
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
        if version not in _READABLE:
            age = "an older" if version < SCHEMA_VERSION else "a newer"
            raise ValueError(
                f"{path} has layout version {version}, of {age} pffbench; this one reads versions "
                f"{_READABLE[0]} to {SCHEMA_VERSION}: use the pffbench that made it "
                "(provenance.software.pffbench)"
            )
        if version == 1:
            _from_version_1(data)
        try:
            check_layout(data)
            return cls(**data)
        except (TypeError, ValueError) as error:
            told = one_line(str(error), 300)
            raise ValueError(f"{path} is not a record of a run: {told}") from None


def _json_of(data: dict[str, Any]) -> str:
    return json.dumps(data, indent=1, allow_nan=False, default=str)


def _decoded(data: bytes) -> Any:
    """Return what a record holds, with nothing in its text that would act on a terminal."""
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Early versions recorded bytes that are no UTF-8 as halves of surrogate pairs.
        text = data.decode("utf-8", "surrogateescape")
        return escaped(json.loads(text, parse_constant=_refuse_constant))
    return escaped(found) if json_needs_escaping(data) else found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _from_version_1(data: dict[str, Any]) -> None:
    """Bring a record of the first layout, whose runs stopped all cases at once, to this one."""
    stopped = data.pop("stopped_after", None)
    cases = data.get("cases")
    for entry in cases.values() if stopped is not None and isinstance(cases, dict) else ():
        if isinstance(entry, dict):
            entry.setdefault("stopped_after", stopped)
    floor = data.get("floor")
    if isinstance(floor, dict) and "barrier" in floor:
        floor["own"] = floor["synced"] = floor.pop("barrier")


def _last_written(parameters: dict[str, Any]) -> str:
    phase = "sync" if parameters["durability"] == "sync" else "close"
    return phase + "_update" if parameters.get("workload") == "updates" else phase


Natural = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
#: Seconds, or bytes a second; larger ones are no measurement.
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e18)]
#: Becomes a part of the name of the scratch directory.
PlainName = Annotated[str, msgspec.Meta(pattern=PLAIN_NAME, max_length=200)]


class Stored(msgspec.Struct):
    """How arrays are really stored."""

    codec: str = ""
    fill: str = ""
    more: dict[str, str | int | float | bool | None] = {}
    chunks: list[Positive] | None = None


class ParametersEntry(msgspec.Struct):
    """The parameters that all workloads share."""

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


class CostEntry(msgspec.Struct):
    """What a case was planned to take."""

    nbytes: Natural = 0


class FailureEntry(msgspec.Struct):
    """How a case failed."""

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
    options: dict[str, Any] = {}
    group: str = ""
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
    """Who ran where."""

    hosts: list[str] = []
    nodes: list[Natural] = []
    ranks_per_node: list[Positive] = []


class FloorEntry(msgspec.Struct):
    """What the harness costs."""

    own: Amount = 0.0
    synced: Amount = 0.0
    tick: Amount = 0.0
    memory_copy_bytes_per_second: Amount = 0.0


class Startup(msgspec.Struct):
    """Seconds until the program began."""

    seconds_to_main: float | None = None
    resumed: list[float] = []


class Software(msgspec.Struct):
    """Versions."""

    python: dict[str, Any] = {}
    pffbench: dict[str, Any] = {}
    libraries: dict[str, dict[str, Any]] = {}


class Host(msgspec.Struct):
    """What a node is."""

    memory_bytes: Natural | None = None
    cpu_model: str | None = None
    os: str | None = None


class FileSystemEntry(msgspec.Struct):
    """The file system under test."""

    type: str | None = None


class Provenance(msgspec.Struct):
    """With what it ran."""

    software: Software = msgspec.field(default_factory=Software)
    hosts: list[Host] = []
    ranks: list[dict[str, Any]] = []
    filesystem: FileSystemEntry = msgspec.field(default_factory=FileSystemEntry)
    environment: dict[str, Any] | None = None
    mpi_io: dict[str, Any] | None = None
    slurm: dict[str, Any] | None = None
    spack: dict[str, Any] | None = None


class ExperimentEntry(msgspec.Struct):
    """How repetitions were planned, by which a run is judged."""

    repetitions: Literal["auto"] | Positive | None = None
    max_repetitions: Positive = 40
    margin: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None


class LeftOut(msgspec.Struct):
    """A case that was impossible."""

    case: str
    reason: str


class Reading(msgspec.Struct):
    """The job that read, of a run in two stages."""

    started: str | None = None
    floor: FloorEntry = msgspec.field(default_factory=FloorEntry)
    startup: Startup = msgspec.field(default_factory=Startup)
    topology: TopologyEntry | None = None
    provenance: Provenance = msgspec.field(default_factory=Provenance)


class RunEntry(msgspec.Struct):
    """The whole of `run.json`."""

    run_id: PlainName
    name: ExperimentName
    question: str
    command: list[str]
    ranks: Positive
    started: str
    experiment: ExperimentEntry
    experiment_file: str
    cases: dict[str, CaseEntry]
    left_out: list[LeftOut]
    scratch: str
    topology: TopologyEntry
    floor: FloorEntry
    startup: Startup
    provenance: Provenance
    status: Literal["running", "written", "finished", "interrupted"] = "running"
    valid: bool | None = None
    reasons: list[str] = []
    remarks: list[str] = []
    finished: str | None = None
    resumed: list[str] = []
    stage: Literal["all", "write", "read"] = "all"
    wrote_on: list[str] = []
    reading: Reading | None = None
    imported: str | None = None
    experiment_digest: str | None = None
    clock: Literal["own", "synced"] = "own"
    stops: list[str] = []


def check_layout(data: object) -> None:
    """Refuse what is not laid out as a record.

    Raises
    ------
    ValueError
        With the place and what is expected there.
    """
    try:
        msgspec.convert(data, RunEntry)
    except msgspec.ValidationError as error:
        raise ValueError(str(error).replace("`", "")) from None
