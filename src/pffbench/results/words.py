"""Numbers and verdicts in words: the only place that formats them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pffbench.results.judge import Ratio, Verdict, Word
from pffbench.units import seconds_text, significant

#: What stands behind a ratio that is neither slower nor faster.
_MARKS: dict[Word, str] = {"same": "same", "open": "~"}


def seconds(value: float) -> str:
    """Format a time."""
    return seconds_text(value)


def rate(nbytes: float, value: float) -> str:
    """Format bytes over seconds, in powers of 1000, in which users state theirs."""
    per_second = nbytes / value if value else 0.0
    for unit, size in (("TB/s", 1e12), ("GB/s", 1e9), ("MB/s", 1e6)):
        if per_second >= size:
            return f"{two_digits(per_second / size)} {unit}"
    return f"{per_second / 1e3:.0f} kB/s"


def two_digits(value: float) -> str:
    """Format a number with two digits, and no exponent."""
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def number(ratio: float) -> str:
    """Format how many times as long something takes."""
    if not math.isfinite(ratio):
        return "–"
    return f"{ratio:.2f}" if ratio < 9.95 else significant(ratio)


def times(ratio: float) -> str:
    """Format a ratio of times: ``1.25×``."""
    return f"{number(ratio)}×"


def interval(ratio: Ratio) -> str:
    """Format the ends of an interval."""
    return f"{number(ratio.low)}–{number(ratio.high)}"


def verdict(found: Verdict) -> str:
    """Format a verdict for a table: the ratio, its interval, and a mark unless it differs.

    The interval allows for all pairs of the document. That of *same* is the one of the pair alone,
    within 10 %, so the word stands in its place.
    """
    if not found.rounds:
        return "~"
    if found.word == "same":
        return brief(found)
    mark = _MARKS.get(found.word)
    return " ".join(filter(None, [f"{times(found.ratio.value)} ({interval(found.ratio)})", mark]))


def brief(found: Verdict) -> str:
    """Format a verdict for a figure, which has its interval: the ratio, and a mark."""
    ratio = times(found.ratio.value) if found.rounds else ""
    return " ".join(filter(None, [ratio, _MARKS.get(found.word)]))


def cost(bound: float) -> str:
    """Format the price of a way: ``at most 2 % slower``."""
    part = 100 * (bound - 1)
    if part < 0.5:
        return "not slower"
    return f"at most {math.ceil(part - 1e-9):.0f} % slower"


def percent(bound: float) -> str:
    """Format a bound over the best way in percent: ``7 %``."""
    return "unknown" if math.isinf(bound) else f"{math.ceil(100 * (bound - 1) - 1e-6)} %"


def listed(texts: Sequence[str], last: str = "and") -> str:
    """Join words as a sentence does."""
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} {last} {texts[-1]}"
