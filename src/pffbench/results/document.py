"""`results.json`: the results of a run as one document for programs, with its JSON Schema.

Keys may be added within a version. One that is removed or gets another meaning raises `Version`.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Literal

import msgspec

from pffbench.descriptions import field_descriptions, first_line
from pffbench.experiment.standard import Standard, standard_of
from pffbench.record.run_json import JsonObject, LeftOut
from pffbench.regular_files import write_replacing
from pffbench.results.answer import Answer
from pffbench.results.compare import Comparison
from pffbench.results.load import LoadSummary
from pffbench.results.phases import PhaseSummary
from pffbench.results.quantities import PHASE_QUANTITIES
from pffbench.results.summary import CaseSummary, Summary
from pffbench.text import escape_controls

#: Version of the document.
Version = Literal[1]
FILE = "results.json"
_IDENTIFIER = "https://pffbench.invalid/schemas/results-1.json"


#: One phase, or total of phases, of a case: the columns of `summary.csv` that are about a phase.
PhaseResult = msgspec.defstruct(
    "PhaseResult",
    [(quantity.name, quantity.kind) for quantity in PHASE_QUANTITIES],
    frozen=True,
    kw_only=True,
)


def _phase_result(phase: PhaseSummary) -> Any:
    """Convert the summary of a phase; JSON has no NaN."""
    values: dict[str, Any] = {q.name: q.of(phase) for q in PHASE_QUANTITIES}
    plain = {name: _finite(v) if isinstance(v, float) else v for name, v in values.items()}
    plain["warnings"] = tuple(map(escape_controls, values["warnings"]))
    return PhaseResult(**plain)


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """One case of the run."""

    #: Its name, the same in every run of the same case.
    case: str
    #: What sets it apart from the other cases of its group, in words.
    label: str
    #: Cases of a group move the same bytes in the same boxes.
    group: str
    #: Whether it moves raw bytes, without a format.
    raw: bool
    #: Whether the program added it, to show the cost of the raw bytes.
    roofline: bool
    #: Parameters of the workload.
    parameters: JsonObject
    #: Options of the backend.
    options: JsonObject
    #: Bytes of array data that it writes.
    bytes: int
    #: How its arrays were stored; empty if it is not known.
    stored_as: str
    #: Size on disk.
    disk_bytes: int | None
    disk_files: int | None
    #: Largest peak memory of a rank.
    peak_memory_bytes: int
    #: Why it takes part in no comparison; usually empty.
    invalid: str
    #: The phases in their order, then the totals.
    phases: tuple[PhaseResult, ...]  # type: ignore[valid-type]

    @classmethod
    def of(cls, case: CaseSummary) -> CaseResult:
        """Convert the summary of a case."""
        entry, disk = case.entry, case.disk
        return cls(
            case=case.name,
            label=case.label,
            group=entry.group,
            raw=entry.raw,
            roofline=entry.roofline,
            parameters=entry.parameters,
            options=entry.options,
            bytes=case.nbytes,
            stored_as=str(entry.stored_as or ""),
            disk_bytes=None if disk is None else disk.stored,
            disk_files=None if disk is None else disk.files,
            peak_memory_bytes=case.peak_memory,
            invalid=case.invalid,
            phases=tuple(map(_phase_result, case.phases.values())),
        )


class ComparisonResult(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison of the answer: a value of a key with the one to use."""

    #: The part of the work, as in the headings of the answer.
    purpose: str
    #: The key, such as ``backend``.
    by: str
    #: Its values.
    value: str
    base: str
    #: What is shown.
    word: Literal["slower", "faster", "same", "open"]
    #: Time of the value over the one of the base.
    ratio: float | None
    #: Interval of the ratio, for all comparisons of the answer together.
    low: float | None
    high: float | None
    #: Number of rounds that it rests on.
    rounds: int
    #: For each comparison that is averaged, the case with the value and the one with the base.
    cases: list[tuple[str, str]]

    @classmethod
    def of(cls, found: Comparison) -> ComparisonResult:
        """Convert a comparison of the answer."""
        ratio = found.verdict.ratio
        return cls(
            purpose=found.cells[0][0].keys["column"],
            by=found.by,
            value=found.value,
            base=found.base,
            word=found.verdict.word,
            ratio=_finite(ratio.value),
            low=_finite(ratio.low),
            high=_finite(ratio.high),
            rounds=found.verdict.rounds,
            cases=[(one.case, other.case) for one, other in found.cells],
        )


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a run of pffbench."""

    #: Kind of the document.
    format: Literal["pffbench results"] = "pffbench results"
    #: Version of the document.
    version: Version = 1
    #: Name of the run.
    run_id: str
    #: Name of the experiment.
    experiment: str
    #: The question that the experiment answers.
    question: str
    #: Equal for equal experiments.
    experiment_digest: str
    #: The standard experiment that it is, such as `standard:1`.
    standard: Standard | None
    #: Begin of the run, in ISO 8601.
    started: str
    #: End of the run; null where it has not ended.
    finished: str | None
    #: ``finished``, ``interrupted``, ``written`` (reads are missing) or ``running``.
    status: str
    #: Whether every byte read was verified and every cache state proved; null where nothing was
    #: verified yet.
    valid: bool | None
    #: Why the run is not valid.
    reasons: list[str]
    #: Notes on the run that do not make it invalid.
    remarks: list[str]
    #: Number of ranks and of nodes.
    ranks: int
    nodes: int
    #: The answer; null where no repetition counts.
    answer: Answer | None
    #: The use of the machine by others.
    load: LoadSummary
    #: The comparisons of the answer.
    comparisons: list[ComparisonResult]
    #: All cases with a repetition that counts.
    cases: list[CaseResult]
    #: Cases that were planned and did not run.
    left_out: list[LeftOut]

    @classmethod
    def of(cls, summary: Summary) -> Results:
        """Convert the summary of a run."""
        record, found = summary.record, summary.compared
        comparisons = (*found.formats, *found.changes) if found else ()
        return cls(
            run_id=record.run_id,
            experiment=record.name,
            question=record.question,
            experiment_digest=record.experiment_digest,
            standard=standard_of(record.experiment),
            started=record.started,
            finished=record.finished,
            status=record.status,
            valid=record.valid,
            reasons=record.reasons,
            remarks=record.remarks,
            ranks=record.ranks,
            nodes=summary.run.nodes,
            answer=summary.answer,
            load=summary.load,
            comparisons=list(map(ComparisonResult.of, comparisons)),
            cases=list(map(CaseResult.of, summary.cases)),
            left_out=record.left_out,
        )


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def as_data(summary: Summary) -> JsonObject:
    """Return the results of a run as plain data."""
    data: JsonObject = msgspec.to_builtins(Results.of(summary))
    return data


def write_results(summary: Summary, directory: str | Path) -> Path:
    """Write `results.json` into a results directory and return its path."""
    path = Path(directory) / FILE
    write_replacing(path, json.dumps(as_data(summary), allow_nan=False) + "\n")
    return path


def results_schema() -> JsonObject:
    """Return the JSON Schema of `results.json`, with the descriptions of the fields here."""
    schema: JsonObject = msgspec.json.schema(Results)
    for kind in (CaseResult, ComparisonResult, LoadSummary, Answer, LeftOut, Standard, Results):
        definition = schema["$defs"][kind.__name__]
        definition["description"] = first_line(kind)
        for name, text in field_descriptions(kind).items():
            definition["properties"][name]["description"] = text
    phase = schema["$defs"][PhaseResult.__name__]
    phase["description"] = "One phase, or total of phases, over the repetitions that count."
    for quantity in PHASE_QUANTITIES:
        phase["properties"][quantity.name]["description"] = quantity.meaning
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": _IDENTIFIER,
        "title": "Results of a run of pffbench",
        **schema,
    }
