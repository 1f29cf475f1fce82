"""`results.json`: the results of a run as one document for programs, with its JSON Schema.

A document has what `summary.csv`, the headline and the verdict have. Keys may be added within a
version; one that is removed or gets another meaning raises `Version`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import msgspec

from pffbench.docstrings import field_descriptions, first_line
from pffbench.record.run_json import Entry, JsonObject
from pffbench.regular_files import write_replacing
from pffbench.summary.answer import AnswerTable, answer_of
from pffbench.summary.cautions import cautions
from pffbench.summary.conclusions import verdict_lines
from pffbench.summary.headline import Answer
from pffbench.summary.phases import PhaseSummary
from pffbench.summary.quantities import PHASE_QUANTITIES
from pffbench.summary.rank_test import Ratio
from pffbench.summary.statistics import LoadSummary
from pffbench.summary.summary import CaseSummary, Summary
from pffbench.summary.sweep_table import SettingsTable
from pffbench.text import escape_controls

#: Version of the document.
Version = Literal[2]
FILE = "results.json"
_IDENTIFIER = "https://pffbench.invalid/schemas/results-2.json"
Total = Literal["write_total", "update_total", "read_total"]


R = TypeVar("R", bound=msgspec.Struct)


def _taken(kind: type[R], source: object, **others: Any) -> R:
    """Make a record of the attributes of the same names that a source has, and of others."""
    taken = {
        name: getattr(source, name)
        for name in kind.__struct_fields__
        if name not in others and hasattr(source, name)
    }
    return kind(**taken, **others)


class RatioResult(msgspec.Struct, frozen=True, kw_only=True):
    """A ratio of times with its interval.

    Parameters
    ----------
    value : float or None
        Ratio of the medians.
    low, high : float or None
        Interval of the ratio; null where there are too few repetitions for one.
    """

    value: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, ratio: Ratio) -> RatioResult:
        """Convert a ratio; one without an interval has infinite bounds."""
        low, high = (ratio.low, ratio.high) if ratio.is_bounded else (None, None)
        return cls(value=_finite(ratio.value), low=low, high=high)


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
    """One case of the run.

    Parameters
    ----------
    case : str
        Its name, the same in every run of the same case.
    group : str
        Cases of a group move the same bytes in the same boxes and are compared.
    raw : bool
        Whether it moves raw bytes, without a format.
    roofline : bool
        Whether the program added it, to show the cost of the raw bytes.
    parameters : dict
        Parameters of the workload.
    options : dict
        Options of the backend.
    bytes : int
        Bytes of array data that it writes.
    stored_as : str
        How its arrays were stored; empty where it is not known.
    disk_bytes, disk_files : int or None
        Size on disk.
    peak_memory_bytes : int
        Largest peak memory of a rank.
    invalid : str
        Why it takes part in no comparison; empty where it does.
    phases : list of PhaseResult
        The phases in their order, then the totals; empty where no repetition counts.
    """

    case: str
    group: str
    raw: bool
    roofline: bool
    parameters: JsonObject
    options: JsonObject
    bytes: int
    stored_as: str
    disk_bytes: int | None
    disk_files: int | None
    peak_memory_bytes: int
    invalid: str
    phases: tuple[PhaseResult, ...]  # type: ignore[valid-type]

    @classmethod
    def of(cls, case: CaseSummary, entry: Entry) -> CaseResult:
        """Convert the summary of a case.

        Parameters
        ----------
        case : CaseSummary
            The case.
        entry : dict
            Its entry in `run.json`.
        """
        return _taken(
            cls,
            case,
            case=case.sample.case,
            group=case.sample.group,
            roofline=bool(entry.get("roofline", False)),
            parameters=entry["parameters"],
            options=entry.get("options", {}),
            bytes=case.nbytes,
            peak_memory_bytes=case.peak_memory,
            phases=tuple(map(_phase_result, case.phases.values())),
        )


class ContenderResult(msgspec.Struct, frozen=True, kw_only=True):
    """A format, or a case where only one format is compared, beside the fastest one.

    Parameters
    ----------
    name : str
        Name of the format, or of the case.
    case : str
        Its fastest case.
    standing : {"slower", "equal", "undecided"}
        Result of the comparison with the fastest one.
    ratio : RatioResult
        Its time over that of the fastest one.
    more_repetitions : int
        Where undecided: repetitions that would probably decide it; else 0.
    """

    name: str
    case: str
    standing: Literal["slower", "equal", "undecided"]
    ratio: RatioResult
    more_repetitions: int


class ComparisonResult(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison of the headline in one total.

    Parameters
    ----------
    total : {"write_total", "update_total", "read_total"}
        The compared total of phases.
    group : str
        The compared group.
    settings : str
        ``matched``: every library does the same work; ``defaults``: each with its own defaults.
    compressed : bool
        Whether the stored data are compressed.
    fastest : list of str
        The fastest contender, and those that are equally fast.
    case : str
        The fastest case.
    decided : bool
        Whether each contender is shown to be slower or equally fast.
    too_short : bool
        Whether the times are too short to be measured; nothing is concluded from them then.
    others : list of ContenderResult
        The other contenders, fastest first.
    """

    total: Total
    group: str
    settings: str
    compressed: bool
    fastest: tuple[str, ...]
    case: str
    decided: bool
    too_short: bool
    others: tuple[ContenderResult, ...]

    @classmethod
    def of(cls, answer: Answer) -> ComparisonResult:
        """Convert an answer of the headline."""
        others = (
            _taken(
                ContenderResult,
                other,
                ratio=RatioResult.of(other.ratio),
                more_repetitions=other.needed,
            )
            for other in answer.others
        )
        key = answer.key
        return _taken(
            cls,
            answer,
            group=key.group,
            settings=key.settings,
            compressed=key.compressed,
            others=tuple(others),
        )


class FormatChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The contenders that are shown to be fastest in all their comparisons of a total.

    Parameters
    ----------
    total : {"write_total", "update_total", "read_total"}
        The total.
    take : list of str
        Their names, several where they are equally fast; empty where that is not decided or
        where each contender is slower in some comparison.
    """

    total: Total
    take: tuple[str, ...]


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a run of pffbench.

    Parameters
    ----------
    format : {"pffbench results"}
        Kind of the document.
    version : int
        Version of the document.
    run_id : str
        Name of the run.
    experiment : str
        Name of the experiment.
    question : str
        The question that the experiment answers.
    experiment_digest : str or None
        Equal for equal experiments; null in results of other programs.
    started : str
        Begin of the run, in ISO 8601.
    finished : str or None
        End of the run; null where it has not ended.
    status : str
        ``finished``, ``interrupted``, ``written`` (reads are missing) or ``running``.
    valid : bool or None
        Whether every byte read was verified and every cache state proved; null where nothing was
        verified yet.
    reasons : list of str
        Why the run is not valid.
    remarks : list of str
        Notes on the run that do not make it invalid.
    ranks, nodes : int
        Number of ranks and of nodes.
    answer : AnswerTable or None
        The sentence and the small table that answer the run, or why it has no answer; null where
        it compares nothing.
    sentences : list of str
        The lines of the verdict, as on the terminal.
    warnings : list of str
        Caveats of the verdict, with remedies.
    load : LoadSummary
        The use of the machine by others.
    recommendation : list of FormatChoice
        What to take for writing, for updating and for reading.
    comparisons : list of ComparisonResult
        The headline: the fastest contender of each comparison.
    cases : list of CaseResult
        All cases with a repetition that counts.
    left_out : list of dict
        Cases that were planned and are impossible, or that the time budget did not hold
        (``limit``), each with ``case`` and ``reason``.
    """

    format: Literal["pffbench results"] = "pffbench results"
    version: Version = 2
    run_id: str
    experiment: str
    question: str
    experiment_digest: str | None
    started: str
    finished: str | None
    status: str
    valid: bool | None
    reasons: list[str]
    remarks: list[str]
    ranks: int
    nodes: int
    answer: AnswerTable | None
    sentences: tuple[str, ...]
    warnings: tuple[str, ...]
    load: LoadSummary
    recommendation: tuple[FormatChoice, ...]
    comparisons: tuple[ComparisonResult, ...]
    cases: tuple[CaseResult, ...]
    left_out: list[dict[str, str]]

    @classmethod
    def of(cls, summary: Summary) -> Results:
        """Convert the summary of a run."""
        record = summary.record
        return _taken(
            cls,
            record,
            experiment=record.name,
            nodes=len(set(record.topology["nodes"])),
            answer=answer_of(summary),
            sentences=tuple(verdict_lines(summary)),
            warnings=tuple(cautions(summary)),
            load=summary.load,
            recommendation=tuple(_recommendations(summary)),
            comparisons=tuple(map(ComparisonResult.of, summary.all_answers)),
            cases=tuple(
                CaseResult.of(case, record.cases[name])
                for case in summary.cases
                if (name := case.sample.case)
            ),
        )


def _recommendations(summary: Summary) -> Iterator[FormatChoice]:
    for total in get_args(Total):
        answers = [a for a in summary.answers if a.total == total and not a.too_short]
        named = {a.key: (a.name, *(o.name for o in a.others)) for a in answers}
        best = {a.key: a.fastest if a.decided else () for a in answers}
        names = dict.fromkeys(name for some in named.values() for name in some)
        take = [n for n in names if all(n in best[key] for key in named if n in named[key])]
        if answers:
            yield FormatChoice(total=total, take=tuple(take))


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
    """Return the JSON Schema of `results.json`, with the descriptions of the docstrings here."""
    schema: JsonObject = msgspec.json.schema(Results)
    for kind in (
        RatioResult, CaseResult, ContenderResult, ComparisonResult, FormatChoice,
        LoadSummary, AnswerTable, SettingsTable, Results,
    ):  # fmt: skip
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
