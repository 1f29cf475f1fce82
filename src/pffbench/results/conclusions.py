"""Two or three plain sentences that the numbers of a run support."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pffbench.results.statistics import Spread, geometric_mean, spread
from pffbench.results.summary import CaseSummary, Summary

_VERBS = {"write_total": "Writing (create to {end})", "read_total": "Reading (open to close)"}


def conclusions(summary: Summary) -> list[str]:
    """Say which backend is fastest at writing and at reading, or that none is shown to be.

    Each backend enters with its best case of each comparison. Backends are compared by the
    geometric mean, over the comparisons that all of them have, of their times within each
    block; the interval is a bootstrap over the blocks. Intervals that hold 1 claim nothing.
    """
    return [s for phase in _VERBS if (s := _sentence(summary, phase))]


def _sentence(summary: Summary, phase: str) -> str | None:
    groups = [_best_of_each(cases, phase) for cases in summary.groups.values()]
    groups = [group for group in groups if group]
    backends = set.intersection(*(set(g) for g in groups)) if groups else set()
    if len(backends) < 2:
        return None
    blocks = sorted(set.intersection(
        *({*g[b].phases[phase].by_block} for g in groups for b in backends)
    ))  # fmt: skip
    if not blocks:
        return None
    times = {
        backend: geometric_mean(np.array(
            [[g[backend].phases[phase].by_block[b] for b in blocks] for g in groups]
        ))
        for backend in sorted(backends)
    }  # fmt: skip
    order = sorted(times, key=lambda backend: float(np.median(times[backend])))
    best = order[0]
    ratios = {other: spread(times[other] / times[best]) for other in order[1:]}
    end = summary.cases[0].sample and _end(summary)
    head = _VERBS[phase].format(end=end)
    over = f" over {len(groups)} comparisons" if len(groups) > 1 else ""
    return f"{head}{over}: {_verdict(best, ratios)}."


def _best_of_each(cases: Sequence[CaseSummary], phase: str) -> dict[str, CaseSummary]:
    """Return each format's fastest case of a comparison."""
    best: dict[str, CaseSummary] = {}
    for case in cases:
        if case.raw or phase not in case.phases or not case.nbytes:
            continue
        known = best.get(case.sample.backend)
        if known is None or (
            case.phases[phase].seconds.median < known.phases[phase].seconds.median
        ):
            best[case.sample.backend] = case
    return best


def _end(summary: Summary) -> str:
    """Tell where writing ends: at close, or with the bytes on the device."""
    durable = {
        case["parameters"]["durability"] for case in summary.record.cases.values()
    }  # fmt: skip
    return "the device" if durable == {"sync"} else "close"


def _verdict(best: str, ratios: dict[str, Spread]) -> str:
    same = [name for name, ratio in ratios.items() if not ratio.low > 1]
    slower = {name: ratio for name, ratio in ratios.items() if ratio.low > 1}
    told = ", ".join(
        f"{name} takes {r.median:.2f} times as long (95 % interval {r.low:.2f}–{r.high:.2f})"
        for name, r in slower.items()
    )
    if not slower:
        return f"no difference beyond noise between {_and([best, *same])}"
    if same:
        return f"no difference beyond noise between {_and([best, *same])}; {told}"
    return f"{best} is fastest; {told}"


def _and(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
