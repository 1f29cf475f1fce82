"""The columns of `summary.csv`."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import mean, stdev
from typing import Any, NamedTuple

from pffbench.summary.phases import PhaseSummary, RankSpread
from pffbench.summary.rank_test import Ratio
from pffbench.summary.summary import CaseSummary

_MIB = 2**20
Values = Callable[[CaseSummary, PhaseSummary], Any]


def _case(value: Callable[[CaseSummary], Any]) -> Values:
    return lambda case, _: value(case)


def _phase(value: Callable[[PhaseSummary], Any]) -> Values:
    return lambda _, phase: value(phase)


def _interval(value: Callable[[Ratio], float]) -> Values:
    return lambda _, phase: None if phase.ratio is None else value(phase.ratio)


def _of_ranks(value: Callable[[RankSpread], Any]) -> Values:
    """Return a column about ranks; a sum of phases has none."""
    return lambda _, phase: None if phase.ranks is None else value(phase.ranks)


def _mib(rate: float | None) -> float | None:
    return None if rate is None else rate / _MIB


class CsvColumn(NamedTuple):
    """A column of `summary.csv`.

    Parameters
    ----------
    name : str
        Its name in the first row.
    value : callable
        Returns the value for a phase of a case.
    meaning : str
        What the value is, in a sentence; the reference of the documentation has it.
    """

    name: str
    value: Values
    meaning: str


# fmt: off
#: The columns of `summary.csv`, a row for each phase of a case.
CSV_COLUMNS = (
    CsvColumn("case", _case(lambda c: c.sample.case), "Name of the case."),
    CsvColumn("group", _case(lambda c: c.sample.group), "The comparison that the case belongs to."),
    CsvColumn("backend", _case(lambda c: c.sample.backend), "Backend of the case."),
    CsvColumn("workload", _case(lambda c: c.sample.workload), "Workload of the case."),
    CsvColumn("layout", _case(lambda c: c.sample.layout), "Layout of the case."),
    CsvColumn("transfer", _case(lambda c: c.sample.transfer), "Transfer that was asked for."),
    CsvColumn("settings", _case(lambda c: c.sample.settings), "Settings of the case."),
    CsvColumn(
        "cache", _case(lambda c: c.cache),
        "State of the page cache before reading; several with slashes when repetitions differ.",
    ),
    CsvColumn("phase", _phase(lambda p: p.phase), "A phase or a total."),
    CsvColumn("repetitions", _phase(lambda p: p.seconds.n), "Number of repetitions that count."),
    CsvColumn(
        "min_s", _phase(lambda p: p.seconds.minimum),
        "Smallest time of the job, in seconds.",
    ),
    CsvColumn(
        "median_s", _phase(lambda p: p.seconds.median),
        "Median time of the job. A total adds the phases of a repetition first, so it is never "
        "less than the time of any one rank from first to last phase.",
    ),
    CsvColumn("max_s", _phase(lambda p: p.seconds.maximum), "Largest time of the job."),
    CsvColumn("mad_s", _phase(lambda p: p.seconds.mad), "Median absolute deviation, not scaled."),
    CsvColumn(
        "mean_s", _phase(lambda p: mean(p.by_block.values())),
        "Mean, as studies publish it; one slow repetition moves it.",
    ),
    CsvColumn(
        "sd_s", _phase(lambda p: stdev(p.by_block.values()) if len(p.by_block) > 1 else math.nan),
        "Sample standard deviation, as studies publish it.",
    ),
    CsvColumn(
        "low_s", _phase(lambda p: p.seconds.low),
        "Lower end of the 95 % interval of the median, by order statistics; `nan` for fewer "
        "than five repetitions. It tells nothing of another day with another load.",
    ),
    CsvColumn(
        "high_s", _phase(lambda p: p.seconds.high),
        "Upper end of this interval. Whether two cases differ is shown by `ratio`, not by "
        "whether their intervals overlap.",
    ),
    CsvColumn("cv", _phase(lambda p: p.seconds.cv), "Standard deviation over mean."),
    CsvColumn(
        "rate_mib_s", _phase(lambda p: _mib(p.rate)),
        "Bytes over the median time, in MiB/s, for `write`, `read` and the totals. With "
        "durability `close` it can be the speed of memory; that of `write` alone can be a "
        "buffer's.",
    ),
    CsvColumn(
        "first_done_mib_s", _phase(lambda p: _mib(p.first_done)),
        "Bytes of all ranks over the median time of the fastest rank, for `write` and `read`; "
        "far above `rate_mib_s` means imbalance.",
    ),
    CsvColumn(
        "ms_per_array", _phase(lambda p: p.per_array * 1e3),
        "Median time over the number of arrays of all ranks, in ms: inverse throughput, not "
        "latency.",
    ),
    CsvColumn(
        "operations_per_s", _phase(lambda p: p.operations_rate),
        "`operations` over the median time; empty for totals. Operations are library calls, not "
        "system calls.",
    ),
    CsvColumn(
        "us_per_operation",
        _phase(lambda p: 1e6 / p.operations_rate if p.operations_rate else None),
        "Median time over `operations` of all ranks, in µs: what one small operation takes, such "
        "as creating a dataset or setting an attribute. Where it is far above the clock's floor "
        "over `operations`, fractions of a microsecond are resolved.",
    ),
    CsvColumn(
        "ratio", _interval(lambda r: r.value),
        "Time over that of the fastest case of the comparison in this phase, of equal settings "
        "and compressed or not like this one. The fastest has 1. Empty for raw bytes, INVALID "
        "cases and where there is nothing to compare with. In a single phase it can mislead: "
        "compare totals.",
    ),
    CsvColumn(
        "ratio_low", _interval(lambda r: r.low),
        "Lower end of the interval of the ratio, which holds at all looks at the results "
        "together.",
    ),
    CsvColumn(
        "ratio_high", _interval(lambda r: r.high),
        "Upper end of this interval. It knows nothing of other cases; which cases differ is in "
        "the verdict.",
    ),
    CsvColumn(
        "roofline", _phase(lambda p: p.roofline),
        "Speed as a part of the fastest raw transfer's median, for `write`, `read` and the "
        "totals; no raw transfer is taken to be faster than copying memory. It can be over 1: "
        "raw I/O varies too, and a format can move fewer bytes.",
    ),
    CsvColumn(
        "cpu_s", _phase(lambda p: p.cpu_seconds),
        "Median of `cpu_seconds`; a total adds its phases first.",
    ),
    CsvColumn(
        "faulted", _phase(lambda p: p.faulted),
        "Bytes of memory taken anew over the bytes moved; in reads `new_memory`, else small pages "
        "(`minor_faults`).",
    ),
    CsvColumn(
        "new_memory_s", _phase(lambda p: p.new_memory_seconds),
        "Seconds that taking this memory costs a read: `new_memory` over the rate that was "
        "measured in the run.",
    ),
    CsvColumn(
        "imbalance", _of_ranks(lambda r: r.imbalance),
        "Time of the slowest over that of the middle rank, the median over repetitions; 1 when "
        "all are alike. Empty for totals.",
    ),
    CsvColumn(
        "slowest_rank", _of_ranks(lambda r: r.slowest_rank),
        "Rank that was slowest most often.",
    ),
    CsvColumn(
        "slowest_rank_share", _of_ranks(lambda r: r.slowest_share),
        "Part of the repetitions in which it was; of R equal ranks each has about 1/R.",
    ),
    CsvColumn(
        "slowest_host", _of_ranks(lambda r: r.slowest_host),
        "Host that was slowest most often.",
    ),
    CsvColumn(
        "slowest_host_share", _of_ranks(lambda r: r.host_share),
        "Part of the repetitions in which it was; far above the host's part of the ranks it is "
        "a slow node.",
    ),
    CsvColumn(
        "warning_codes", _phase(lambda p: " ".join(w.code for w in p.warnings)),
        "Warnings as words for programs, separated by spaces.",
    ),
    CsvColumn(
        "warnings", _phase(lambda p: "; ".join(w.message for w in p.warnings)),
        "The same in sentences, with numbers.",
    ),
    CsvColumn(
        "invalid", _case(lambda c: c.invalid),
        "Why the case takes part in no best, ratio, roofline, sentence, figure or "
        "recommendation; mostly empty.",
    ),
)
# fmt: on
