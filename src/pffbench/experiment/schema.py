"""The typed schema of an experiment, and its JSON Schema for editors."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Literal

import msgspec

from pffbench.backends.registry import backend_class, backend_names
from pffbench.case import Count, ExperimentName, Natural
from pffbench.data import source_names
from pffbench.descriptions import field_descriptions, first_line
from pffbench.plugins import plugins
from pffbench.units import Duration, Size
from pffbench.workloads.registry import workload, workload_names

#: With ``repetitions: auto``: repetitions of a run that compares nothing.
PLAIN_REPETITIONS = 10
#: Most repetitions with ``counters: calls``: too few to judge times (`results.judge.FEWEST`).
MOST_TRACED = 6
#: Largest `scale`.
MOST_SCALE = 1_000_000
#: Other packages name the studies whose published numbers they have by entry points of this group.
STUDIES_GROUP = "pffbench.studies"
#: Descriptions of the two keys of a case that are no field of a record.
WORKLOAD = "The access pattern: which arrays there are, and which part each rank writes and reads."
ZIP = "Keys whose lists advance together instead of in all combinations: `[datasets, shape]`."


class EnvironmentEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An environment of a run of several: a Python with its libraries, and its start command."""

    #: Its name, in all results.
    name: ExperimentName
    #: Its Python, such as ``.envs/new/bin/python``.
    python: str | None = None
    #: A script that Bash sources before it starts ``python``, such as one that loads modules.
    activate: str | None = None
    #: A command that starts its Python with the arguments that follow, such as ``apptainer exec
    #: new.sif python3``.
    command: str | None = None


def this_environment() -> EnvironmentEntry:
    """Return the environment in which this process runs, which a run with `starts` names."""
    return EnvironmentEntry(name="here", python=sys.executable)


class Experiment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An experiment: cases to sweep, number of repetitions, and stopping rules."""

    #: Short name. The results directory is named after it.
    name: ExperimentName
    #: The question that the experiment answers, in a sentence.
    question: str = ""
    #: The study that the experiment repeats. The report compares with its published numbers.
    study: str | None = None
    #: Each entry is a mapping of a case's parameters. Any scalar may be a list: all combinations
    #: are run, or lists advance together if ``zip`` names them.
    cases: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1, max_length=1000)]
    #: Parameters of all entries. The entry's own parameters have priority.
    common: dict[str, Any] = {}
    #: Multiplies the first axis of each ``shape`` and ``shape_per_rank``, rounded up.
    scale: Annotated[float, msgspec.Meta(gt=0, le=MOST_SCALE)] = 1.0
    #: Repetitions that count. ``auto``: after 25 or more the run ends when the price of its answer
    #: is at most `price`, and a run that compares nothing ends after 10. A number: the repetitions
    #: of each case.
    repetitions: Literal["auto"] | Count = "auto"
    #: With ``repetitions: auto``: maximum number of repetitions of a case.
    max_repetitions: Count = 40
    #: With ``repetitions: auto``: the price at which the run may end: how much slower the
    #: recommended way can be, at most, than the fastest way measured, as a part.
    price: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.10
    #: In place of `repetitions`: number of repetitions, each with a new start of the ranks, so that
    #: the intervals include the variation between starts of a program. Start such a run without a
    #: launcher.
    starts: Count | None = None
    #: Repetitions before these, which are in the raw data and not in the statistics.
    warmup: Natural = 1
    #: Seed of the data.
    seed: Natural = 1
    #: Whether raw transfers of the same bytes are run in addition to the formats.
    roofline: bool = True
    #: Treatment of cases that a backend does not support.
    unsupported: Literal["refuse", "skip"] = "refuse"
    #: Maximum bytes of the buffers of a rank. A larger single call gets as much as it needs.
    memory: Size = msgspec.field(default_factory=lambda: Size(64 * 2**20))
    #: No round of repetitions begins that would end later than this many seconds. Cases are left
    #: out if their first repetitions do not fit, the least important first.
    time_budget: Duration | None = None
    #: Longest time of a step of a repetition, after which the job is ended with a report of the
    #: position of each rank. Default: 10 minutes, and more for large or slow cases.
    hang_timeout: Duration | None = None
    #: Whether CPU seconds, page faults, bytes and system calls of each phase are counted in
    #: `repetitions.jsonl`. ``calls``: strace(1) also counts the calls on the files by name, for
    #: ``pffbench compare --counts``. It slows each call, so the times mean nothing.
    counters: bool | Literal["calls"] = False
    #: Whether cases run in which ranks may lose data, because they share chunks or shards or write
    #: compressed chunks independently. The run then ends in a table of lost rows, and its times are
    #: not valid.
    unsafe: bool = False
    #: Treatment of cases with ``cache: dropped``. ``compared``: as all cases. ``extra``: a separate
    #: comparison of their reads only. These cases are left out if the page cache cannot be dropped.
    cold_reads: Literal["compared", "extra"] = "compared"
    #: Whether each node has a separate scratch directory, such as a burst buffer or an NVMe disk.
    #: Only for cases with a file for each rank in which each rank reads its own data.
    node_local: bool = False
    #: Environments to compare: every round runs all cases in each of them, alternating. Start such
    #: a run without a launcher.
    environments: Annotated[tuple[EnvironmentEntry, ...], msgspec.Meta(max_length=50)] = ()
    #: With environments: number of times that a job step runs each case after the warm-up. Their
    #: median counts as one repetition.
    step_repetitions: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 3
    #: With environments: the command that starts the ranks of each, such as ``srun -n 64``.
    #: Default: the command of the batch system, or ``mpiexec`` with all cores.
    launcher: str | None = None

    @property
    def rounds(self) -> int:
        """Most rounds of a run, warm-ups included."""
        auto = self.repetitions == "auto"
        return self.warmup + (self.max_repetitions if auto else int(self.repetitions))


def study_names() -> list[str]:
    """Return the studies that an experiment may name, in the order of names."""
    return sorted(plugins(STUDIES_GROUP))


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of an experiment file, with all backends' and workloads' keys.

    A scalar may always be a list of scalars, which is swept; the schema says so. Every key has the
    description that the comment above its field gives, which editors show.
    """
    schema: dict[str, Any] = msgspec.json.schema(Experiment, schema_hook=_schema_of)
    experiment = schema["$defs"]["Experiment"]
    experiment["description"] = first_line(Experiment)
    experiment["properties"] = _explained(Experiment, experiment["properties"])
    experiment["properties"]["study"]["anyOf"] = [{"enum": study_names()}, {"type": "null"}]
    environment = schema["$defs"]["EnvironmentEntry"]
    environment["description"] = first_line(EnvironmentEntry)
    texts = field_descriptions(EnvironmentEntry)
    for key, value in environment["properties"].items():
        value["description"] = texts[key]
    entries = [_entry_schema(name, schema["$defs"]) for name in workload_names()]
    experiment["properties"]["cases"]["items"] = {"anyOf": entries}
    common = {"type": "object", "properties": _merged([e["properties"] for e in entries])}
    experiment["properties"]["common"] |= common
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _merged(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the keys of all workloads; one that means several things may be any of them."""
    found: dict[str, list[dict[str, Any]]] = {}
    for properties in entries:
        for key, schema in properties.items():
            if schema not in (kinds := found.setdefault(key, [])):
                kinds.append(schema)
    return {
        key: kinds[0] if len(kinds) == 1 else
        {"anyOf": kinds, "description": kinds[0].get("description", "")}
        for key, kinds in found.items()
    }  # fmt: skip


def _entry_schema(name: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a case entry of one workload, sweeps and backend options included."""
    parameters = workload(name).parameters_type
    made = msgspec.json.schema(parameters, schema_hook=_schema_of)
    record, *inner = made["$defs"].values()
    definitions |= {one["title"]: one for one in inner}
    own = record["properties"]
    own["backend"] = {"enum": list(backend_names())}
    own["source"] = {"enum": list(source_names()), "default": "uniform"}
    properties = _explained(parameters, {key: _swept(value) for key, value in own.items()})
    for backend in backend_names():
        kind = backend_class(backend).options_type
        options = msgspec.json.schema(kind, schema_hook=_schema_of)
        fields, *inner = options["$defs"].values()
        definitions |= {one["title"]: _swept_inside(one) for one in inner}
        swept = {k: _swept(_swept_inside(v)) for k, v in fields["properties"].items()}
        definitions[f"{backend}-options"] = {**fields, "properties": _explained(kind, swept)}
        properties[backend] = {
            "$ref": f"#/$defs/{backend}-options",
            "description": f"Options of the backend `{backend}`: {backend_class(backend).summary}.",
        }
    names = {"type": "array", "items": {"type": "string"}}
    properties["zip"] = {"anyOf": [names, {"type": "array", "items": names}], "description": ZIP}
    return {
        "type": "object",
        "title": f"workload {name}",
        "description": workload(name).summary,
        "properties": properties,
        "additionalProperties": False,
    }


def _explained(kind: type, properties: dict[str, Any]) -> dict[str, Any]:
    """Return properties with the descriptions of a record's fields."""
    texts = field_descriptions(kind) | {"workload": WORKLOAD}
    return {
        key: {**schema, "description": " ".join([texts.get(key, ""), *_unit(schema)])}
        for key, schema in properties.items()
    }


def _unit(schema: dict[str, Any]) -> list[str]:
    """Return the sentence on the unit of a size or a duration."""
    kinds = [schema, *schema.get("anyOf", [])]
    return [kind["description"] for kind in kinds if "description" in kind][:1]


def _swept(schema: dict[str, Any]) -> dict[str, Any]:
    default = {"default": schema["default"]} if "default" in schema else {}
    one = {key: value for key, value in schema.items() if key != "default"}
    return {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}], **default}


def _swept_inside(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an option that is a mapping, such as hints, with its values swept."""
    found = dict(schema)
    if "properties" in schema:
        found["properties"] = {key: _swept(one) for key, one in schema["properties"].items()}
    if isinstance(schema.get("additionalProperties"), dict):
        found["additionalProperties"] = _swept(schema["additionalProperties"])
    return found


def _schema_of(kind: type) -> dict[str, Any]:
    """Return the JSON Schema of this project's own types."""
    if issubclass(kind, Size):
        return {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": kind.largest},
                {"type": "string"},
            ],
            "description": "Bytes, or text such as `64 MiB`.",
        }
    if kind is Duration:
        return {
            "anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}],
            "description": "Seconds, or text such as `90 s`.",
        }
    raise NotImplementedError(kind)
