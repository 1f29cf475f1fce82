"""What readers may rely on in `run.json`: its keys and their types.

A record can come from anybody, or from a run that was killed while its disk failed. What is not
laid out as here is refused once, when it is read, and not wherever it is used. Keys may be missing,
since records of other programs know less; `readable` is for whoever needs one that is not there.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from pffbench.case import PLAIN_NAME, ExperimentName

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


class Parameters(msgspec.Struct):
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


class Cost(msgspec.Struct):
    """What a case was planned to take."""

    nbytes: Natural = 0


class Failure(msgspec.Struct):
    """How a case failed."""

    phase: str = ""
    rank: Natural = 0
    error: str = ""
    repetition: Natural = 0
    host: str = ""
    traceback: str = ""
    ranks_failed: Natural = 1


class Case(msgspec.Struct):
    """One case."""

    parameters: Parameters = msgspec.field(default_factory=Parameters)
    options: dict[str, Any] = {}
    group: str = ""
    raw: bool = False
    roofline: bool = False
    verified: bool = False
    caller_buffer: bool = True
    notes: list[str] = []
    cost: Cost | None = None
    stored_as: Stored | None = None
    disk: dict[str, Natural] | None = None
    transfer_facts: dict[str, str] = {}
    failure: Failure | None = None
    invalid: str | None = None
    stopped_after: Natural | None = None


class Topology(msgspec.Struct):
    """Who ran where."""

    hosts: list[str] = []
    nodes: list[Natural] = []
    ranks_per_node: list[Positive] = []


class Floor(msgspec.Struct):
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


class FileSystem(msgspec.Struct):
    """The file system under test."""

    type: str | None = None


class Provenance(msgspec.Struct):
    """With what it ran."""

    software: Software = msgspec.field(default_factory=Software)
    hosts: list[Host] = []
    ranks: list[dict[str, Any]] = []
    filesystem: FileSystem = msgspec.field(default_factory=FileSystem)
    environment: dict[str, Any] | None = None
    mpi_io: dict[str, Any] | None = None
    slurm: dict[str, Any] | None = None
    spack: dict[str, Any] | None = None


class Experiment(msgspec.Struct):
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
    floor: Floor = msgspec.field(default_factory=Floor)
    startup: Startup = msgspec.field(default_factory=Startup)
    topology: Topology | None = None
    provenance: Provenance = msgspec.field(default_factory=Provenance)


class Run(msgspec.Struct):
    """The whole of `run.json`."""

    run_id: PlainName
    name: ExperimentName
    question: str
    command: list[str]
    ranks: Positive
    started: str
    experiment: Experiment
    experiment_file: str
    cases: dict[str, Case]
    left_out: list[LeftOut]
    scratch: str
    topology: Topology
    floor: Floor
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
        msgspec.convert(data, Run)
    except msgspec.ValidationError as error:
        raise ValueError(str(error).replace("`", "")) from None
