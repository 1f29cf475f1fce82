"""Quantities of a phase of a case, each declared once.

`summary.csv` has a column and `results.json` a key for each, and the reference of the documentation
its sentence. The tables of the terminal, of `summary.md` and of the page show some of them
(`columns.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from statistics import mean, stdev
from typing import Any, NamedTuple

import msgspec

from pffbench.phases import TOTALS
from pffbench.results.phases import PhaseSummary
from pffbench.results.spread import FEWEST_FOR_INTERVAL, Caveat, Spread
from pffbench.results.summary import CaseSummary
from pffbench.text import value_text
from pffbench.units import significant

_MIB = 2**20
#: Fraction of the raw speed beyond which raw transfers are no limit; less may be noise.
_NO_LIMIT = 1.1
#: Part of the bytes of a read in new memory from which on its cost has a column.
_SOME_NEW = 0.1


class Cell(msgspec.Struct, frozen=True):
    """What a table shows of a case in a column."""

    #: The number or words; empty where there are none.
    text: str = ""
    #: Interval of the number, which the page shows below it; often empty.
    interval: str = ""
    #: Caveats about the number, of which the page shows a mark.
    warnings: tuple[Caveat, ...] = ()


class Unit(msgspec.Struct, frozen=True):
    """A unit of time for a column."""

    name: str

    @property
    def per_second(self) -> float:
        """The number of units in a second."""
        return {"s": 1.0, "ms": 1e3, "µs": 1e6}[self.name]

    def time(self, found: PhaseSummary) -> Cell:
        """Return the median."""
        return self._scaled(found, 1.0)

    def each_array(self, found: PhaseSummary) -> Cell:
        """Return the median over the number of arrays of all ranks."""
        median = found.seconds.median
        return self._scaled(found, found.per_array / median if median else math.nan)

    def each_call(self, found: PhaseSummary) -> Cell:
        """Return the median over the library calls of all ranks; an array may have several."""
        if not found.operations_rate:
            return Cell()
        return self._scaled(found, 1 / (found.operations_rate * found.seconds.median))

    def _scaled(self, found: PhaseSummary, part: float) -> Cell:
        factor = part * self.per_second
        between = interval_text(found.seconds, lambda seconds: factor * seconds)
        return Cell(significant(factor * found.seconds.median), between, found.warnings)

    def interval(self, found: PhaseSummary) -> Cell:
        """Return the 95 % interval of the median; of fewer than five values their range."""
        return Cell(self.time(found).interval)

    def cpu(self, found: PhaseSummary) -> Cell:
        """Return the processor time of all ranks together."""
        return self._number(found.cpu_seconds)

    def new_memory(self, found: PhaseSummary) -> Cell:
        """Return what new memory takes of the time, where it is a noticeable part of the bytes."""
        if (found.faulted or 0) < _SOME_NEW:
            return Cell()
        return self._number(found.new_memory_seconds)

    def _number(self, seconds: float | None) -> Cell:
        return Cell() if seconds is None else Cell(significant(seconds * self.per_second))


class TotalColumn(NamedTuple):
    """How the tables show a quantity of a total."""

    #: Heading, in which ``{part}`` and ``{unit}`` are replaced.
    heading: str
    #: Returns the cell, of a unit of time and the total.
    cell: Callable[[Unit, PhaseSummary], Cell]
    #: Explanation below the tables; empty where the heading says it.
    legend: str = ""


class Quantity(NamedTuple):
    """A quantity of a phase, or a fact of its case."""

    #: Its column in `summary.csv`, and its key in `results.json`.
    name: str
    #: Path of the attribute of a phase, or of a case, that it is; or a function of them.
    value: str | Callable[[Any], Any]
    #: What it is, in a sentence.
    meaning: str
    #: Type in `results.json`.
    kind: Any = float | None
    #: How the tables of a summary and of the page show it for totals; None where they do not.
    table: TotalColumn | None = None

    def of(self, found: PhaseSummary | CaseSummary) -> Any:
        """Return the value of a phase, or of a case; None where a part of the path is."""
        if callable(self.value):
            return self.value(found)
        value: Any = found
        for name in self.value.split("."):
            value = None if value is None else getattr(value, name)
        return value


def rate_cell(found: PhaseSummary) -> Cell:
    """Return bytes of all ranks per second of the median."""
    if found.rate is None:
        return Cell()
    amount = found.rate * found.seconds.median / _MIB
    return Cell(
        significant(found.rate / _MIB),
        interval_text(found.seconds, lambda seconds: amount / seconds),
        () if found.phase in TOTALS else found.warnings,  # those of a total are beside its time
    )


def _roof_cell(_: Unit, found: PhaseSummary) -> Cell:
    if found.roofline is None:
        return Cell()
    text = part_of_raw(found.roofline)
    if text.startswith(">"):
        return Cell(text)
    limit = 100 * found.roofline * found.seconds.median
    between = interval_text(found.seconds, lambda seconds: limit / seconds, "{:.0f}".format)
    return Cell(text, between and f"{between}%")


def part_of_raw(part: float) -> str:
    """Format a fraction of the raw speed in percent; no number where raw transfers are no limit.

    They are none where a format takes clearly less time than the fastest of them: it stores
    fewer bytes, or in an order that suits the boxes better.
    """
    return ">100%" if part > _NO_LIMIT else f"{part:.0%}"


def interval_text(
    found: Spread, convert: Callable[[float], float], write: Callable[[float], str] = significant
) -> str:
    """Format the interval of a quantity that follows from the seconds of a phase.

    Of fewer than five repetitions it is their range, in brackets; of one there is none.
    """
    few = found.n < FEWEST_FOR_INTERVAL
    ends = (found.minimum, found.maximum) if few else (found.low, found.high)
    if found.n == 1 or min(ends) <= 0:
        return ""
    low, high = sorted(map(convert, ends))
    text = f"{write(low)}–{write(high)}"
    return f"({text})" if few else text


def _mib(rate: float | None) -> float | None:
    return None if rate is None else rate / _MIB


def _parameter(name: str, case: CaseSummary) -> str:
    return value_text(case.parameters.get(name, ""))


#: Facts of a case, which `summary.csv` repeats in the rows of its phases.
CASE_QUANTITIES = (
    Quantity("case", "name", "Name of the case in `run.json`."),
    Quantity("group", "entry.group", "Cases of a group move the same bytes in the same boxes."),
    *(
        Quantity(name, partial(_parameter, name), "As in `run.json`.")
        for name in ("backend", "workload", "files", "arrays", "transfer", "settings")
    ),
    Quantity(
        "cache",
        "cache",
        "State of the page cache before reading. Several states with slashes if repetitions "
        "differ.",
    ),
    Quantity("invalid", "invalid", "Reason why the case enters no comparison, figure or answer."),
)
#: Quantities of a phase, or of a total of phases.
PHASE_QUANTITIES = (
    Quantity("phase", "phase", "A phase or a total.", str),
    Quantity("repetitions", "seconds.n", "Number of repetitions that count.", int),
    Quantity("min_s", "seconds.minimum", "Smallest time of the job, in seconds.", float),
    Quantity(
        "median_s",
        "seconds.median",
        "Median time of the job. A total adds the phases of a repetition first, so it is never "
        "less than the time of any one rank from first to last phase.",
        float,
        table=TotalColumn("{part} {unit}", Unit.time),
    ),
    Quantity("max_s", "seconds.maximum", "Largest time of the job.", float),
    Quantity("mad_s", "seconds.mad", "Median absolute deviation, not scaled.", float),
    Quantity(
        "mean_s",
        lambda p: mean(p.by_round.values()),
        "Mean, as studies publish it. One slow repetition changes it.",
        float,
    ),
    Quantity(
        "sd_s",
        lambda p: stdev(p.by_round.values()) if len(p.by_round) > 1 else math.nan,
        "Sample standard deviation, as studies publish it.",
    ),
    Quantity(
        "low_s",
        "seconds.low",
        "Lower end of the 95 % interval of the median, by order statistics. `nan` for fewer than "
        "five repetitions. It does not cover another day with another load.",
        table=TotalColumn("low–high", Unit.interval),
    ),
    Quantity(
        "high_s",
        "seconds.high",
        "Upper end of this interval. The answer shows whether two ways differ. An overlap of "
        "their intervals does not.",
    ),
    Quantity("cv", "seconds.cv", "Standard deviation over mean."),
    Quantity(
        "first_done_mib_s",
        lambda p: _mib(p.first_done),
        "Bytes of all ranks over the median time of the fastest rank, for `write` and `read`. Far "
        "above `rate_mib_s` means imbalance.",
    ),
    Quantity(
        "ms_per_array",
        lambda p: p.per_array * 1e3,
        "Median time over the number of arrays of all ranks, in ms. It is inverse throughput, not "
        "latency.",
        float,
    ),
    Quantity(
        "operations_per_s",
        "operations_rate",
        "`operations` over the median time, empty for totals. Operations are library calls, not "
        "system calls.",
    ),
    Quantity(
        "us_per_operation",
        lambda p: 1e6 / p.operations_rate if p.operations_rate else None,
        "Median time over `operations` of all ranks, in µs: the time of one small operation, such "
        "as creating a dataset or setting an attribute. If it is far above the clock's floor over "
        "`operations`, fractions of a microsecond are resolved.",
    ),
    Quantity(
        "roofline",
        "roofline",
        "Speed as a part of the fastest raw transfer's median, for `write`, `read` and the "
        "totals. No bound is faster than copying memory. It can be over 1, because raw I/O varies "
        "too, and a format can move fewer bytes.",
        table=TotalColumn(
            "roof",
            _roof_cell,
            "roof: speed as a part of that of raw bytes (settings raw, in the same table); over "
            "100%: raw bytes are no limit",
        ),
    ),
    Quantity(
        "cpu_s",
        "cpu_seconds",
        "Median of `cpu_seconds`. A total adds its phases first.",
        table=TotalColumn("cpu {unit}", Unit.cpu, "cpu: processor time of all ranks together"),
    ),
    Quantity(
        "rate_mib_s",
        lambda p: _mib(p.rate),
        "Bytes over the median time, in MiB/s, for `write`, `read` and the totals. With "
        "durability `close` it can be the speed of memory. The speed of `write` alone can be the "
        "speed of a buffer.",
        table=TotalColumn(
            "MiB/s",
            lambda _, p: rate_cell(p),
            "MiB/s: bytes over the time of the whole part; 1000 MiB/s are 1.05 GB/s",
        ),
    ),
    Quantity(
        "faulted",
        "faulted",
        "Bytes of newly allocated memory over the bytes moved: in reads `new_memory`, otherwise "
        "small pages (`minor_faults`).",
    ),
    Quantity(
        "new_memory_s",
        "new_memory_seconds",
        "Seconds that this memory costs a read: `new_memory` over the rate measured in the run.",
        table=TotalColumn(
            "new mem {unit}",
            Unit.new_memory,
            "new mem: how much of the time of reading the library takes to get memory from the "
            "system, by its bytes and the rate measured in this run",
        ),
    ),
    Quantity(
        "imbalance",
        "ranks.imbalance",
        "Time of the slowest rank over the time of the middle rank, the median over repetitions. "
        "1 if all ranks are equally fast. Empty for totals.",
    ),
    Quantity(
        "slowest_rank",
        "ranks.slowest_rank",
        "Rank that was slowest most often.",
        int | None,
    ),
    Quantity(
        "slowest_rank_share",
        "ranks.slowest_share",
        "Part of the repetitions in which it was the slowest. With R equal ranks each has about "
        "1/R.",
    ),
    Quantity(
        "slowest_host",
        "ranks.slowest_host",
        "Host that was slowest most often.",
        str | None,
    ),
    Quantity(
        "slowest_host_share",
        "ranks.host_share",
        "Part of the repetitions in which it was the slowest. Far above the host's part of the "
        "ranks means a slow node.",
    ),
    Quantity(
        "warning_codes",
        lambda p: " ".join(w.code for w in p.warnings),
        "Warnings as words for programs, separated by spaces.",
        str,
    ),
    Quantity(
        "warnings",
        lambda p: tuple(w.message for w in p.warnings),
        "The same in sentences, with numbers.",
        tuple[str, ...],
    ),
)
