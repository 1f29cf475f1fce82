"""`run.json`: the record of a run, its layout and its atomic replacement.

A record can come from anyone, or from a run that was killed while its disk failed. A wrong layout
is rejected once, when it is read.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from pffbench.backends.inspection import StoredAs
from pffbench.case import PLAIN_NAME, ExperimentName, Stage
from pffbench.errors import INTERRUPTED, NOT_VALID, VALID, UserError
from pffbench.experiment.plan import Cost
from pffbench.mpi.agreement import Failure
from pffbench.record.lock import killed
from pffbench.record.plausible import Natural, Positive
from pffbench.regular_files import (
    LARGEST_RECORD,
    read_regular,
    similar_path,
    write_replacing,
)
from pffbench.storage.durability import DiskUsage
from pffbench.text import escaped, json_needs_escaping, one_line, without_digests

#: Version of the layout of a results directory; readers reject others.
SCHEMA_VERSION = 2
#: Beginning of the limit of a run that was resumed on other hosts.
RESUMED = "the run was resumed"
#: An object of JSON as plain data.
JsonObject = dict[str, Any]
#: Errors of accesses to what a record does not have: facts of the machine, keys of an experiment.
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


#: Maximum seconds, or bytes a second; larger values are no measurement.
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e18)]
#: Part of the name of the scratch directory.
PlainName = Annotated[str, msgspec.Meta(pattern=PLAIN_NAME, max_length=200)]


class FailureEntry(Failure, frozen=True, kw_only=True):
    """The failure of a case, with its repetition, warm-ups included."""

    repetition: Natural


class CaseEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A case in `run.json`."""

    #: Parameters of the workload, by their keys in the experiment.
    parameters: JsonObject
    #: Cases of a group move the same bytes in the same boxes.
    group: str
    #: The planned cost.
    cost: Cost
    #: Options of the backend.
    options: JsonObject = {}
    #: Whether it moves raw bytes, without a format.
    raw: bool = False
    #: Whether the program added it, to show the cost of the raw bytes.
    roofline: bool = False
    #: Whether the data read are compared with the written ones.
    verified: bool = True
    #: Differences from the other formats that could not be avoided.
    notes: list[str] = []
    #: Whether the kernel counts bytes read, and bytes fetched from the device.
    counts_reads: bool = False
    counts_device: bool = False
    #: Name of the case in all environments of a run of several.
    same_case: str = ""
    #: Storage layout of its arrays, as read from the file.
    stored_as: StoredAs | None = None
    #: Size on disk of its first repetition.
    disk: DiskUsage | None = None
    #: The transfer that the library really did, and why not a collective one.
    transfer_facts: dict[str, str] = {}
    #: With ``unsafe: true``: why other runs refuse it, usually empty. It may lose rows, or fail.
    unsafe: str = ""
    #: Why it ended.
    failure: FailureEntry | None = None
    #: Reason why its measurements do not count, usually empty.
    invalid: str = ""
    #: Number of repetitions, if the run decided it.
    stopped_after: Natural | None = None

    @property
    def backend(self) -> str:
        """Name of the backend."""
        return str(self.parameters["backend"])

    @property
    def excluded(self) -> str:
        """Why it takes part in no comparison; usually empty."""
        return f"failed: {self.failure.error}" if self.failure else self.invalid


class TopologyEntry(msgspec.Struct, frozen=True):
    """Placement of the ranks."""

    #: Host name and number of the node of each rank.
    hosts: list[str]
    nodes: list[Natural]
    #: Number of ranks of each node.
    ranks_per_node: list[Positive]
    #: With cache ``shifted``: the rank whose part each rank reads.
    shifted_reads_from: list[Natural] = []


class FloorEntry(msgspec.Struct, frozen=True):
    """Overhead of the harness."""

    #: Seconds of an empty phase on a rank, and until all ranks have ended it; medians.
    own: Amount
    synced: Amount
    #: Seconds of a tick of the clock.
    tick: Amount = 0.0
    #: Smallest and largest `synced`.
    synced_range: tuple[Amount, Amount] = (0.0, 0.0)
    #: Number of measurements.
    measured: Natural = 1
    #: Rates at which all ranks together copy memory, and get memory from the kernel (0 if not
    #: measured).
    memory_copy_bytes_per_second: Amount = 0.0
    memory_new_bytes_per_second: Amount = 0.0


class LeftOut(msgspec.Struct, frozen=True):
    """A case that did not run."""

    #: Its name, and why.
    case: str
    reason: str
    #: ``time`` if the time budget was too short for it.
    limit: str = ""
    #: Its difference from the other cases, in words, empty if it was never planned.
    label: str = ""


class Startup(msgspec.Struct):
    """Seconds until the program began; in no phase."""

    #: Of the first start.
    seconds_to_main: float | None = None
    #: Of each later one.
    resumed: list[float | None] = []


class Reading(msgspec.Struct):
    """The job that read last, in a run in two stages."""

    started: str
    floor: FloorEntry
    startup: Startup
    topology: TopologyEntry
    provenance: JsonObject


class RunRecord(msgspec.Struct, forbid_unknown_fields=True):
    """The contents of `run.json`, which the reference pages explain by the comments below."""

    #: Identifies the run; the marker of its scratch directory contains it too.
    run_id: PlainName
    #: From the experiment.
    name: ExperimentName
    question: str
    #: The command line.
    command: list[str]
    #: Number of ranks.
    ranks: Positive
    #: When the run began.
    started: str
    #: The experiment including all defaults.
    experiment: JsonObject
    #: Where it was read from.
    experiment_file: str
    #: SHA-256 of the experiment, which detects a change when the run is resumed.
    experiment_digest: str
    #: The cases, by their names.
    cases: dict[str, CaseEntry]
    #: Cases that are impossible or that the time budget did not hold (``limit``), with the reason.
    left_out: list[LeftOut]
    #: Where the files were; they are gone, unless the status is `written`.
    scratch: str
    #: `hosts` and `nodes` of each rank; `ranks_per_node`; `shifted_reads_from`: whose part each
    #: rank reads with cache `shifted`.
    topology: TopologyEntry
    #: Seconds of an empty phase (`own`, `synced`) and of the clock's tick, medians of `measured`
    #: measurements; `synced_range`; bytes per second of a memory copy on all ranks at once,
    #: measured after the first number if memory allows and a rank moves 1 MiB in some case.
    floor: FloorEntry
    #: Seconds until the program began; in no phase.
    startup: Startup
    #: `software`, `mpi_io` (`missing`: why a run of one process had no MPI), `filesystem`, `inputs`
    #: (size and SHA-256 of files with data or decompositions; above 64 MiB of both ends, for
    #: directories of names and sizes), `ranks` (binding, limits), `hosts` (CPU, memory, kernel),
    #: `environment` (secrets hidden), `import_seconds`, `slurm`, `pbs`, `flux`, `spack`. Without
    #: account, user and directories of the job.
    provenance: JsonObject
    #: Layout of the directory: 2. Readers refuse others.
    schema_version: int = SCHEMA_VERSION
    #: State of the run: `running` (also after a crash), `interrupted`, `written` (another job is to
    #: read) or `finished`.
    status: Literal["running", "written", "finished", "interrupted"] = "running"
    #: The verdict, `null` while running.
    valid: bool | None = None
    #: Reasons why the run is not valid.
    reasons: list[str] = []
    #: Facts to know that do not make the run INVALID, such as stopping early.
    remarks: list[str] = []
    #: When the run ended.
    finished: str | None = None
    #: When it was resumed.
    resumed: list[str] = []
    #: The part of the run that the last job did, or is doing.
    stage: Stage = "all"
    #: For a run in two stages: the hosts of all jobs that wrote.
    wrote_on: list[str] = []
    #: For a run in two stages: `started`, `floor`, `startup`, `topology` and `provenance` of the
    #: job that read last.
    reading: Reading | None = None
    #: Which time of a phase is the job's: `own` where each rank has a core, else `synced`.
    clock: Literal["own", "synced"] = "own"
    #: Reasons why cases stopped before `max_repetitions`; `stopped_after` of a case is its
    #: repetition count.
    stops: list[str] = []
    #: Seconds of the time budget that would hold the rounds which all cases need; 0 if it did.
    time_needed: Amount = 0.0
    #: Cases that the installed libraries cannot do (a serial h5py, no MPI), by backend and reason,
    #: with the remedies; that the run was resumed on other hosts.
    limits: list[str] = []
    #: For each environment of a run of several: `start` (the command that starts its Python) and
    #: `provenance`. That of the first one is the run's own too.
    environments: dict[str, JsonObject] = {}
    #: For the `settings` of its cases: how the C library treated freed memory in all ranks.
    allocator: dict[str, str] = {}
    #: Whether the answer may rest on times of a busy machine.
    accept_busy: bool = False
    #: Cases in which a rank died by itself, once for each time. The second time the case failed.
    died_in: list[str] = []

    @property
    def exit_status(self) -> int:
        """Exit status of the run by its verdict."""
        if self.status == "interrupted":
            return INTERRUPTED
        return NOT_VALID if self.reasons else VALID

    @property
    def traced(self) -> bool:
        """Whether system calls were counted, which slows them: its times show nothing."""
        return self.experiment.get("counters") == "calls"

    @property
    def unsafe(self) -> bool:
        """Whether cases ran that may lose data: it has losses, and no valid times."""
        return bool(self.experiment.get("unsafe"))

    @property
    def has_losses(self) -> bool:
        """Whether it ended in losses: only cases that may lose rows read anything wrong."""
        return self.unsafe and self.valid is False and not self.reasons

    @property
    def without_time(self) -> int:
        """The number of cases that the time budget did not hold."""
        return sum(1 for one in self.left_out if one.limit)

    @property
    def objection(self) -> str:
        """The reason why the run is not valid, for people; empty where none is known."""
        if self.valid is False or self.reasons:
            if self.reasons:
                return without_digests(self.reasons[0])
            return "unsafe: its times are of ways that lose data" if self.unsafe else "see run.json"
        return ""

    def save(self, directory: str | Path) -> None:
        """Replace `run.json` atomically: either the old or the new record remains."""
        data = msgspec.to_builtins(self)
        text = _json_of(data)
        if "\\ud" in text:  # bytes that are not UTF-8, which readers would reject
            text = _json_of(escaped(data))
        write_replacing(Path(directory) / "run.json", text + "\n", durable=True)

    @property
    def resumed_elsewhere(self) -> list[str]:
        """What `limits` contains of other hosts, or other placements, of a resumed run."""
        return [text for text in self.limits if text.startswith(RESUMED)]

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
            why = "it contains no run.json"
            if not path.parent.is_dir():
                hint = one_line(similar_path(directory, directory=True))
                why = f"there is no such directory{hint}"
            elif inner := next(path.parent.glob("*/run.json"), None):
                why += f"; did you mean {one_line(str(inner.parent))!r}?"
            raise _not_results(directory, why) from None
        except OSError as error:
            raise _not_results(directory, f"{error.strerror}: {path}") from None
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            why = f"run.json is not valid JSON: {one_line(str(error), 300)}"
            raise _not_results(directory, why) from None
        version = data.get("schema_version") if isinstance(data, dict) else None
        if not isinstance(version, int):
            raise _not_results(directory, "run.json has no schema_version")
        if version != SCHEMA_VERSION:
            age = "an older" if version < SCHEMA_VERSION else "a newer"
            raise ValueError(
                f"{path} has layout version {version}, of {age} pffbench; this one reads version "
                f"{SCHEMA_VERSION}: use the pffbench that made it "
                "(provenance.software.pffbench)"
            )
        try:
            record = cls.of(data)
        except msgspec.ValidationError as error:
            told = one_line(str(error).replace("`", ""), 300)
            why = f"run.json is not a record of a run: {told}"
            raise _not_results(directory, why) from None
        if record.status == "running" and killed(directory):
            record.status = "interrupted"
        return record

    @classmethod
    def of(cls, data: object) -> RunRecord:
        """Return the record that plain data are.

        Raises
        ------
        msgspec.ValidationError
            They are not the record of a run.
        """
        record = msgspec.convert(data, cls)
        _check(record)
        return record


def _not_results(directory: str | Path, why: str) -> ValueError:
    return ValueError(f"{directory} is not a results directory: {why}")


def _json_of(data: JsonObject) -> str:
    """Return JSON text with a line for each value."""
    try:
        text = json.dumps(data, allow_nan=False, default=str)
        return msgspec.json.format(text, indent=1)
    except msgspec.DecodeError:  # a name that is not UTF-8; `json` needs ten times as long
        return json.dumps(data, indent=1, allow_nan=False, default=str)


def _decoded(data: bytes) -> Any:
    """Return the contents of a record, without text that would act on a terminal."""
    found = msgspec.json.decode(data)
    return escaped(found) if json_needs_escaping(data) else found


class _Parameters(msgspec.Struct):
    """Parameters of a case that readers rely on."""

    backend: str = ""
    workload: str = ""
    files: str | dict[str, Natural] = ""
    arrays: str = ""
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


class _Software(msgspec.Struct):
    """Versions of the software."""

    python: JsonObject = {}
    pffbench: JsonObject = {}
    libraries: dict[str, JsonObject] = {}


class _Host(msgspec.Struct):
    """Hardware and system of a node."""

    memory_bytes: Natural | None = None
    cpu_model: str | None = None
    os: str | None = None


class _FileSystem(msgspec.Struct):
    """The file system under test."""

    type: str | None = None


class _Provenance(msgspec.Struct):
    """Provenance of the run."""

    software: _Software = msgspec.field(default_factory=_Software)
    hosts: list[_Host] = []
    ranks: list[JsonObject] = []
    filesystem: _FileSystem = msgspec.field(default_factory=_FileSystem)
    environment: JsonObject | None = None
    mpi_io: JsonObject | None = None
    slurm: JsonObject | None = None
    pbs: JsonObject | None = None
    flux: JsonObject | None = None
    spack: JsonObject | None = None


class _Experiment(msgspec.Struct):
    """Plan of the repetitions, by which a run is judged."""

    repetitions: Literal["auto"] | Positive | None = None
    max_repetitions: Positive = 40


def _check(record: RunRecord) -> None:
    """Reject plain data of a record in which readers rely on another layout.

    Raises
    ------
    msgspec.ValidationError
        Names the expected value.
    """
    msgspec.convert(record.experiment, _Experiment)
    for entry in record.cases.values():
        msgspec.convert(entry.parameters, _Parameters)
    read = record.reading.provenance if record.reading else {}
    others = [one.get("provenance", {}) for one in record.environments.values()]
    for provenance in (record.provenance, read, *others):
        msgspec.convert(provenance, _Provenance)
