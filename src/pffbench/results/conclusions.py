"""Two or three plain sentences that the numbers of a run support."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pffbench.results.statistics import Spread, Values, geometric_mean, spread
from pffbench.results.summary import CaseSummary, Summary

#: Fewer blocks than this support no claim.
_FEWEST_BLOCKS = 3
#: With fewer values no interval of a median covers it with 95 %: 1 - 2 / 2**5 is 94 %.
_FEWEST_FOR_INTERVAL = 6
_VERBS = {
    "write_total": "Writing (create to {end})",
    "update_total": "Updating (reopen to {end})",
    "read_total": "Reading (open to close)",
}


def conclusions(summary: Summary) -> list[str]:
    """Say which backend is fastest at writing and at reading, or that none is shown to be.

    Each backend enters with its best case of each comparison. Backends are compared by the
    geometric mean, over the comparisons that all of them have, of their times within each
    block; the interval is a bootstrap over the blocks. Intervals that hold 1 claim nothing. Runs
    that are joined have no block in common, so nothing is said of them as a whole.
    """
    if len({case.run for case in summary.cases}) > 1:
        return []
    return [s for phase in _VERBS if (s := _sentence(summary, phase))]


def _sentence(summary: Summary, phase: str) -> str | None:
    head = _VERBS[phase].format(end=_end(summary))
    groups = [_best_of_each(cases, phase) for cases in summary.groups.values()]
    groups = [group for group in groups if len(group) > 1]
    backends = set.intersection(*(set(g) for g in groups)) if groups else set()
    if len(backends) < 2:
        return None
    long_enough = [g for g in groups if not any(_too_short(g[b], phase) for b in backends)]
    if not long_enough:
        return f"{head}: too short to be told apart from the harness; take larger arrays."
    blocks = sorted(
        set.intersection(*(set(g[b].phases[phase].by_block) for g in long_enough for b in backends))
    )
    if len(blocks) < _FEWEST_BLOCKS:
        return f"{head}: too few repetitions to compare; take at least {_FEWEST_BLOCKS}."
    times = {b: _over_groups(long_enough, b, phase, blocks) for b in sorted(backends)}
    best, *others = sorted(times, key=lambda backend: float(np.median(times[backend])))
    ratios = {other: spread(times[other] / times[best]) for other in others}
    over = f" over {len(long_enough)} comparisons" if len(long_enough) > 1 else ""
    return f"{head}{over}: {_verdict(best, ratios)}."


def _over_groups(
    groups: Sequence[Mapping[str, CaseSummary]], backend: str, phase: str, blocks: Sequence[int]
) -> Values:
    """Return the geometric mean over comparisons of a backend's times, for each block."""
    rows = [[g[backend].phases[phase].by_block[b] for b in blocks] for g in groups]
    return geometric_mean(np.array(rows))


def _too_short(case: CaseSummary, phase: str) -> bool:
    return any(w.code == "below_resolution" for w in case.phases[phase].warnings)


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
    durable = {case["parameters"]["durability"] for case in summary.record.cases.values()}
    return "the device" if durable == {"sync"} else "close"


def _verdict(best: str, ratios: dict[str, Spread]) -> str:
    same = [name for name, ratio in ratios.items() if not ratio.low > 1]
    slower = {name: ratio for name, ratio in ratios.items() if ratio.low > 1}
    told = ", ".join(
        f"{name} takes {r.median:.2f} times as long ({_interval(r)})" for name, r in slower.items()
    )
    if not slower:
        return f"no difference beyond noise between {_and([best, *same])}"
    if same:
        return f"no difference beyond noise between {_and([best, *same])}; {told}"
    return f"{best} is fastest; {told}"


def _interval(ratio: Spread) -> str:
    """Name the interval by what it is: of fewer than six values it is just their range."""
    name = "95 % interval" if ratio.n >= _FEWEST_FOR_INTERVAL else f"range of {ratio.n} blocks"
    return f"{name} {ratio.low:.2f}–{ratio.high:.2f}"


def _and(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
