"""What a run with ``unsafe: true`` answers: the rows that each way of writing together lost.

Its times are of ways that lose data, so no other table has them. A price is an upper bound of the
time of a way that lost nothing, over the quickest way of the same format and codec.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pffbench.phases import READ_PHASES
from pffbench.record.repetitions import Repetition
from pffbench.record.run import MeasuredRun
from pffbench.record.run_json import CaseEntry, FailureEntry
from pffbench.results.cells import Cell, grouped, keys_of, varying
from pffbench.results.judge import bounds
from pffbench.results.load import LoadSummary, busy
from pffbench.results.names import UNSAID, words
from pffbench.results.words import percent
from pffbench.text import counted, one_line
from pffbench.workloads.buffers import LOST_ROWS, ROWS

COLUMNS = ("rows lost", "in rounds", "error", "plan", "price")
#: Values of keys that only say that a way has no more to it.
_PLAIN = frozenset({("rearranger", "none"), ("writers", "all"), ("codec", "none")})
#: Characters of a library's error.
_LONGEST = 160


class CaseLosses(NamedTuple):
    """The rows that a case lost."""

    #: Words that set it apart from the others.
    label: str
    #: Rows that all ranks wrote in a round.
    rows: int
    #: Rows that were not read back as written, in each round.
    lost: tuple[int, ...]
    #: Why other runs refuse the case; empty if they do not.
    unsafe: str
    #: When a library reported an error; empty if none did.
    failed: str
    #: The error.
    error: str
    #: Upper bound of its time to write over the quickest way of its format; infinite if unknown.
    price: float

    @property
    def loses(self) -> bool:
        """Whether it lost rows in any round."""
        return any(self.lost)


def case_losses(run: MeasuredRun, cells: Sequence[Cell], load: LoadSummary) -> list[CaseLosses]:
    """Return the losses of all cases of a run, in its order."""
    entries = run.record.cases
    named = _labels(entries)
    prices = {} if any(busy(load)) else prices_among(cells, _format)
    found = []
    for name, entry in entries.items():
        counted_ones = [one for one in run.by_case.get(name, ()) if not one.warmup]
        both = [_rows_of(one) for one in counted_ones]
        failure = entry.failure
        found.append(
            CaseLosses(
                label=named[name],
                rows=max((rows for rows, _ in both), default=0),
                lost=tuple(lost for _, lost in both),
                unsafe=entry.unsafe,
                failed=_when(failure) if failure else "",
                error=one_line(" ".join(failure.error.split()), _LONGEST) if failure else "",
                price=math.inf if any(lost for _, lost in both) else prices.get(name, math.inf),
            )
        )
    return found


def _when(failure: FailureEntry) -> str:
    return "reading" if failure.phase in READ_PHASES else "writing"


def _labels(entries: Mapping[str, CaseEntry]) -> dict[str, str]:
    """Return what sets each case apart from the others of its format, and its chunks."""
    keys = {
        name: {key: text for key, text in keys_of(entry).items() if (key, text) not in _PLAIN}
        for name, entry in entries.items()
    }
    found: dict[str, str] = {}
    for some in grouped(entries, lambda name: entries[name].backend).values():
        differing = varying([keys[name] for name in some], UNSAID)
        found |= {name: ", ".join(words(keys[name], ["chunks", *differing])) for name in some}
    return {name: found[name] for name in entries}


def _rows_of(one: Repetition) -> tuple[int, int]:
    """Return the rows of a repetition and those that were lost; data may be read several times."""
    times = one.read.times if one.read else 1
    found = {count.name: round(count.total / times) for count in one.counts}
    return found.get(ROWS, 0), found.get(LOST_ROWS, 0)


def prices_among(cells: Sequence[Cell], alike: Callable[[Cell], Hashable]) -> Mapping[str, float]:
    """Return the price of writing of each case among those that are alike."""
    writes = [cell for cell in cells if cell.keys["total"] == "write"]
    found: dict[str, float] = {}
    for some in grouped(writes, alike).values():
        found |= bounds({cell.case: [cell.seconds] for cell in some}) if len(some) > 1 else {}
    return found


def _format(cell: Cell) -> Hashable:
    """Return the format, codec and work."""
    return tuple(cell.keys.get(key) for key in ("work", "backend", "codec"))


def row(case: CaseLosses) -> tuple[str, ...]:
    """Return the row of a case in the table."""
    lost = ""
    if case.lost:
        least, most = min(case.lost), max(case.lost)
        lost = f"{least}–{most}" if least < most else f"{least}"
        lost += f" of {case.rows}"
    rounds = f"{sum(map(bool, case.lost))} of {len(case.lost)}" if case.lost else ""
    price = "" if math.isinf(case.price) else f"at most {percent(case.price)}"
    plan = "refuses" if case.unsafe else "accepts"
    return (case.label, lost, rounds, case.failed or "none", plan, price)


def headline(cases: Sequence[CaseLosses]) -> str:
    """Return how many ways lose rows, and how many of them report an error."""
    silent = [case for case in cases if case.loses and not case.failed]
    failed = [case for case in cases if case.failed]
    texts = [f"no row was lost in {counted(len(cases), 'way')}"]
    if silent:
        verb = "loses" if len(silent) == 1 else "lose"
        texts = [f"{len(silent)} of {counted(len(cases), 'way')} {verb} rows without an error"]
    if failed:
        texts.append(f"{len(failed)} {'fails' if len(failed) == 1 else 'fail'} with an error")
    return f"{', '.join(texts)}."


def notes(cases: Sequence[CaseLosses], load: LoadSummary) -> Iterator[str]:
    """Yield what a reader needs below the table."""
    yield (
        "A row is lost if it is not read back as it was written. Rounds may lose different rows. "
        "Without an error a program ends with exit status 0."
    )
    yield (
        "plan: whether a run without unsafe accepts the way. price: how much more time it needs to "
        "write than the quickest way of its format (95 %)."
    )
    if disturbed := next(iter(busy(load)), None):
        yield f"No prices: {disturbed}."
    for case in cases:
        if case.failed:
            yield f"{case.label}: {case.error}"
