"""Reference pages, written from the declarations in the code when the site is built."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import redirect_stdout, suppress
from itertools import chain
from pydoc import locate
from unittest.mock import patch

import msgspec

from pffbench.backends.registry import backend_class, backend_names
from pffbench.backends.traits import Changes
from pffbench.case import Parameters
from pffbench.cli import make_parser
from pffbench.commands import commands_by_task
from pffbench.commands.describe import keys_of
from pffbench.descriptions import field_descriptions, first_line
from pffbench.doctor.examination import CHECKS, CHECKS_OF_SCRATCH
from pffbench.errors import EXIT_STATUSES
from pffbench.experiment.schema import WORKLOAD, ZIP, Experiment
from pffbench.phases import PHASES, TOTALS
from pffbench.record.repetitions import (
    Counted,
    MachineState,
    PhaseTimes,
    ReadState,
    Repetition,
)
from pffbench.record.run_json import CaseEntry, RunRecord
from pffbench.results.frames import SAMPLES
from pffbench.results.quantities import CASE_QUANTITIES, PHASE_QUANTITIES, Quantity
from pffbench.storage.durability import DiskUsage
from pffbench.workloads.base import CountColumn, PhaseColumn
from pffbench.workloads.registry import workload, workload_names

#: The records of `repetitions.jsonl`, each with the heading of its keys.
_RECORDS = {
    Repetition: "",
    PhaseTimes: "A phase: `phases`",
    MachineState: "The nodes: `machine`",
    ReadState: "The reads: `read`",
    DiskUsage: "Space on disk: `disk`",
    Counted: "A counter: `counts`",
}
_NOTE = "The build of the site writes this page from the code."


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path of each page in the site, and its Markdown."""
    writers: dict[str, Callable[[], Iterator[str]]] = {
        "keys": _keys,
        "columns": _columns,
        "commands": _commands,
        "api": _api,
    }
    for name, lines in writers.items():
        yield f"reference/{name}.md", "\n".join(lines()) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table, and an empty one."""
    yield _row(head)
    yield _row(["---"] * len(head))
    yield from map(_row, rows)
    yield ""


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _keys() -> Iterator[str]:
    yield from ("# Keys of an experiment", "", _NOTE)
    yield "`pffbench keys` prints the same, `pffbench keys --schema` the JSON Schema, which editors"
    yield "use. [Your own experiment](../experiments.md) explains how to write one."
    yield from ("", "## The experiment", "")
    yield from _key_table(Experiment)
    yield from ("## Every case", "", "Each of them may be a list: all combinations are run.", "")
    yield from _key_table(Parameters, more=[("workload", WORKLOAD), ("zip", ZIP)])
    for name in workload_names():
        kind = workload(name)
        about = f"{kind.summary[0].upper()}{kind.summary[1:]}."
        yield from (f"## Workload `{name}`", "", about, "")
        yield from _key_table(kind.parameters_type, but=Parameters.__struct_fields__)
    yield from _abilities()
    for name in backend_names():
        yield from _backend(name)


def _abilities() -> Iterator[str]:
    """Yield the table of what each format can, from what its class says."""
    yield from ("## What each format can", "")
    rows = []
    for kind in map(backend_class, backend_names()):
        can = kind.capabilities
        writers = ["gather", "chunk_owner"] if kind.file_per == "chunk" else ["all"]
        rows.append(
            (
                f"`{kind.name}`",
                ", ".join(sorted(can.arrays)) or "–",
                _listed(can.transfers),
                _listed(writers) if "shared" in can.arrays else "–",
                "yes" if can.stretches else "–",
                "yes" if can.attributes else "–",
                "yes" if issubclass(kind, Changes) else "–",
            )
        )
    head = (
        "backend",
        "arrays in shared files",
        "transfers",
        "rearranger",
        "maps",
        "attributes",
        "changed later",
    )
    yield from table(head, rows)
    yield "Maps: stretches of one shared array, without writer ranks. In other files every format"
    yield "has them, see [irregular decompositions](../irregular.md). All have lists of arrays."
    yield ""


def _backend(name: str) -> Iterator[str]:
    kind = backend_class(name)
    can = kind.capabilities
    yield from (f"## Backend `{name}`", "", f"{kind.summary[0].upper()}{kind.summary[1:]}.")
    arrays = _listed(can.arrays) if can.arrays else "none, since ranks cannot share a file"
    yield f"Arrays in files that ranks share: {arrays}. Transfers: {_listed(can.transfers)}."
    yield f"Codecs: {_listed(can.codecs)}."
    yield ""
    if kind.options_type.__struct_fields__:
        yield from _key_table(kind.options_type)
    else:
        yield from ("It has no options.", "")


def _listed(words: Collection[str]) -> str:
    return ", ".join(f"`{word}`" for word in sorted(words))


def _key_table(
    kind: type[msgspec.Struct],
    but: Collection[str] = (),
    more: Iterable[tuple[str, str]] = (),
) -> Iterator[str]:
    rows = [
        (f"`{key.name}`", key.meaning, key.allowed, key.default or "must be given")
        for key in keys_of(kind)
        if key.name not in but
    ]
    rows += [(f"`{name}`", meaning, "", "") for name, meaning in more]
    yield from table(("key", "meaning", "allowed", "default"), rows)


def _columns() -> Iterator[str]:
    yield from ("# Columns and phases", "", _NOTE)
    yield "[Files of a run](../files.md) describes the files of a results directory."
    yield from ("", "## Phases", "")
    phases = [(f"`{p.name}`", f"`{p.part}_total`" if p.part else "", p.meaning) for p in PHASES]
    yield from table(("phase", "part of", "what is timed"), phases)
    for total, parts in TOTALS.items():
        yield f"- `{total}` has {', '.join(f'`{p}`' for p in parts)}."
    yield ""
    yield "A total is the largest sum of one rank over these phases. If ranks share processors,"
    yield "it is the sum of the phases ([clock](../method.md#1-clock))."
    yield ""
    yield "Other phases belong to one workload: `repack` (`study_chunk_cache`) rewrites the closed"
    yield "store. `look_up_first`, `read_first`, `…_middle` and `…_all` (`versions`) find and read"
    yield "other versions than the latest, through a store opened for each."
    yield from ("", "## `repetitions.jsonl`", "")
    yield "A line for each repetition. `phases`, `machine`, `read`, `disk` and `counts` have the"
    yield "keys of the tables below the first one. A key with its default is left out."
    yield ""
    for kind, title in _RECORDS.items():
        if title:
            yield from (f"### {title}", "")
        yield from _described(kind, "key")
    yield from ("## `samples.csv`", "")
    yield "The same for people and pandas: a row for each phase of each repetition, then a row for"
    yield "each total, which has only `seconds`."
    yield ""
    texts = field_descriptions(Repetition) | field_descriptions(PhaseTimes)
    yield from table(("column", "meaning"), [(f"`{name}`", texts[name]) for name in SAMPLES])
    yield from ("## `summary.csv`", "")
    quantities = (*CASE_QUANTITIES, *PHASE_QUANTITIES)
    yield from table(
        ("column", "in tables", "meaning"),
        [(f"`{q.name}`", _heading(q), q.meaning) for q in quantities],
    )
    yield from ("## Tables of one workload", "")
    brought = ((name, column) for name in workload_names() for column in workload(name).columns)
    yield from table(
        ("column", "workload", "what it shows"),
        [(f"`{heading_of(column)}`", f"`{name}`", _shown(column)) for name, column in brought],
    )
    yield from ("## `run.json`", "")
    yield from _described(RunRecord, "key")
    yield from ("### A case of `run.json`", "")
    yield from _described(CaseEntry, "key")


def heading_of(column: PhaseColumn | CountColumn) -> str:
    """Return the heading of a column that a workload brings, with times of totals in ms."""
    unit = f" {column.unit('ms')}" if isinstance(column, PhaseColumn) else ""
    return column.heading + unit


def _heading(quantity: Quantity) -> str:
    """Return the heading of a quantity in the tables of a summary, for writing and in ms."""
    shown = quantity.table
    return f"`{shown.heading.format(part='write', unit='ms')}`" if shown else ""


def _shown(column: PhaseColumn | CountColumn) -> str:
    if isinstance(column, CountColumn):
        return f"counter `{column.counter}` of phase `{column.phase}`"
    each = {"case": "", "array": " for each array", "call": " for each library call"}[column.per]
    return f"time of phase `{column.phase}`{each}"


def _described(kind: type, what: str) -> Iterator[str]:
    texts = field_descriptions(kind)
    yield from table((what, "meaning"), [(f"`{name}`", text) for name, text in texts.items()])


def _commands() -> Iterator[str]:
    yield from ("# Commands and exit statuses", "", _NOTE, "")
    yield from ("## Exit statuses", "")
    yield from table(("status", "meaning"), [(str(s), text) for s, text in EXIT_STATUSES.items()])
    yield from ("## `pffbench`", "", "```text", _help().rstrip(), "```", "")
    for name in chain.from_iterable(commands_by_task().values()):
        yield from (f"## `pffbench {name}`", "", "```text", _help(name).rstrip(), "```", "")
        if name == "doctor":
            asked = [(topic, first_line(ask)) for topic, ask in (*CHECKS, *CHECKS_OF_SCRATCH)]
            yield from table(("topic", "what it asks"), asked)


def _help(*command: str) -> str:
    """Return what `pffbench COMMAND --help` prints in 80 columns."""
    said = io.StringIO()
    with patch.dict("os.environ", {"COLUMNS": "80"}), redirect_stdout(said), suppress(SystemExit):
        make_parser(*command).parse_args([*command, "--help"])
    return said.getvalue()


def _api() -> Iterator[str]:
    yield from ("# Python API", "", _NOTE)
    yield "`pffbench.load` reads a finished run, for programs and notebooks. `to_pandas` needs"
    yield "pandas (`pip install '.[analysis]'` in a clone). Nothing here needs MPI."
    yield ""
    for name in (
        "pffbench.load",
        "pffbench.results.summary.Summary",
        "pffbench.results.answer.Answer",
        "pffbench.results.comparisons.Compared",
        "pffbench.results.compare.Comparison",
        "pffbench.results.cells.Cell",
        "pffbench.results.judge.decide",
        "pffbench.results.judge.bounds",
        "pffbench_studies.published.published_frame",
        "pffbench_studies.published.side_by_side",
        "pffbench.record.run_json.RunRecord",
    ):
        yield from (f"::: {name}", "")
        if isinstance(record := locate(name), type) and field_descriptions(record):
            yield from _described(record, "field")
