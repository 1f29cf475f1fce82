"""Study 5: versions of a table in versioned-hdf5 and plain HDF5, repeated by `versions`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from pffbench.grouping import grouped
from pffbench.phases import in_common
from pffbench.results.phases import PhaseSummary
from pffbench.results.spread import Spread, spread
from pffbench.results.summary import CaseSummary, Summary
from pffbench_studies.published.counterparts import Match, but, cases_like
from pffbench_studies.published.curves import (
    MOST_ROWS,
    Curves,
    PublishedAxis,
    PublishedCurve,
    PublishedPanel,
    PublishedPoint,
    curves_over,
)
from pffbench_studies.published.matchers import Matcher
from pffbench_studies.published.reasons import Fields
from pffbench_studies.published.values import PublishedValue

#: Ways of keeping versions that match the study's two files, and their names.
_WAYS = {
    "versioned_hdf5": ("versioned", "versioned-hdf5"),
    "chunks": ("versioned", "chunks by content (pffbench)"),
    "last": ("unversioned", "plain HDF5, last state"),
}
#: The way in which each file of the study was really made; others are only similar.
_TRUE = {"versioned": "versioned_hdf5", "unversioned": "last"}
_MIB = 2**20
_SIZE, _ALL, _EACH = "size of the file", "time of all versions", "time of a version"
#: Phases of each version that the study's time of a version includes.
_OF_A_VERSION = ("write", "commit", "flush")
#: Counter for each of the study's statistics of the time of a version.
_MEDIANS = {
    "median over versions": "median_seconds",
    "median over the first tenth of versions": "median_seconds_first_tenth",
    "median over the last tenth of versions": "median_seconds_last_tenth",
}
#: Phase for each of the study's look-ups, and those that it calls reading.
_LOOK_UPS = {
    ("time of looking all versions up", "read"): "look_up_all",
    ("time of a look-up", "read latest version"): "open_array",
    ("time of a look-up", "read"): "open_array",
}

_VERSIONS = PublishedAxis(
    "published-versions",
    "Published and here, by the number of versions",
    "versions",
    "versions",
)
#: Operations in this figure.
_DRAWN = {
    _SIZE: "size of the file, MiB",
    _ALL: "time of all versions, s",
    f"{_EACH} median over versions": "median time of a version, ms",
}
#: Statistics of the change of version times along a history, and the tenth.
_ENDS = {
    "median over the first tenth of versions": 0.0,
    "median over the last tenth of versions": 9.0,
}
_TENTHS = tuple(f"{number}" for number in range(1, 11))
_HISTORY = PublishedAxis(
    "published-history",
    "Published and here, along the history",
    "tenth of the versions",
    "",
    _TENTHS,
)

#: Columns that a case has to agree with.
_KEYS = ("test", "file", "versions", "chunk", "codec")
#: Test, file, versions, chunk and codec.
Subject = tuple[str, ...]


class VersionedHdf5Matcher(Matcher):
    """Matcher of cases by kind of history, number of versions, chunk size, codec and way."""

    def matches(self, summary: Summary, values: Sequence[PublishedValue]) -> list[Match]:
        """Return the numbers with a counterpart in the run.

        Only histories with the probabilities of the published runs count. Sizes are the mean of the
        ranks' files, each of which has a history of its own.
        """
        by_subject = grouped(
            (tuple(value.parameters[column] for column in _KEYS), value)
            for value in values
            if not math.isnan(value.value)
        )
        cases = list(cases_like(
            summary, workload="versions", backend="hdf5", keep=tuple(_WAYS),
            probabilities="as_published", cache=("warm", "shifted"),
        ))  # fmt: skip
        plain = {but("keep", c): c for c in cases if c.parameters["keep"] == "last"}
        found: list[Match] = []
        for c in cases:
            for value in by_subject.get(_subject(c.parameters), ()):
                if (measured := _measured(value, c)) is not None:
                    found.append(_match(value, c, *measured))
            other = plain.get(but("keep", c))
            if other is not None and c.parameters["keep"] != "last":
                found += _ratio(by_subject, c, other)
        return found

    def curves(self, matches: Sequence[Match], values: Sequence[PublishedValue]) -> list[Curves]:
        """Return sizes and times over the number of versions, and times along a history."""
        variants = [m.variant for m in sorted(matches, key=lambda m: not m.nearest)]
        alike = [m for m in matches if m.variant == variants[0]]
        return [
            *curves_over(_VERSIONS, alike, values, _but_versions, _DRAWN),
            *_histories(alike),
        ]

    def facts(self, summary: Summary, matches: Sequence[Match]) -> Mapping[str, Sequence[Fields]]:
        """Return what look-ups leave out, what single changes cost, and what really changed."""
        return {
            "look_up": list(_reading(summary)),
            "one_by_one": list(_changing(summary)),
            "changed": list(_changed(summary)),
        }


MATCHER = VersionedHdf5Matcher()


def _subject(p: Mapping[str, Any]) -> Subject:
    codec = "none" if p["codec"] in ("auto", None) else p["codec"]
    return p["kind"], _WAYS[p["keep"]][0], str(p["versions"]), str(p["chunks"][0]), codec


def _measured(
    value: PublishedValue, case: CaseSummary
) -> tuple[PhaseSummary, Spread | None] | None:
    """Return the phase of a published number and what was counted; None if not measured."""
    ranks = case.ranks
    if value.quantity == _SIZE and value.unit == "MiB":
        size = case.counts.get(("close", "file_bytes"))
        return None if size is None else (case.phases["close"], spread([size / ranks / _MIB]))
    if value.quantity == _ALL:
        total = of_all_versions(case)
        return None if total is None else (total, None)
    if value.quantity == _EACH:
        counted = case.counts.get(("version", _MEDIANS.get(value.statistic, "")))
        if counted is None:
            return None
        return case.phases["commit"], spread([1e3 * counted / ranks])
    phase = _LOOK_UPS.get((value.quantity, value.parameters["operation"]), "")
    return (case.phases[phase], None) if phase in case.phases else None


def _match(
    value: PublishedValue, c: CaseSummary, phase: PhaseSummary, measured: Spread | None
) -> Match:
    p, ranks = c.parameters, c.ranks
    kind, file, versions, chunk, codec = _subject(p)
    told = ["values one by one" if p["change"] == "element" else "values in a stretch"]
    told += [f"{ranks} ranks"] if ranks > 1 else []
    told += [str(p["durability"])] if p["durability"] != "close" else []
    statistic = value.statistic if value.quantity == _EACH else ""
    beyond = p["keep"] != _TRUE[file]
    return Match(
        value,
        c,
        phase,
        factor={"ms": 1e3, "s": 1.0}.get(value.unit, 1.0),
        subject=f"{kind}, {versions} versions, chunks {chunk}, {codec}",
        operation=" ".join(filter(None, (value.quantity, statistic))),
        variant=", ".join(told),
        alternative=_WAYS[p["keep"]][1],
        nearest=ranks == 1 and p["change"] == "element" and not beyond,
        measured=measured,
        known_as=_WAYS[_TRUE[file]][1],
        beyond=beyond,
    )


def of_all_versions(case: CaseSummary) -> PhaseSummary | None:
    """Return staging, committing and flushing all versions as one phase."""
    parts = [case.phases[name] for name in _OF_A_VERSION if name in case.phases]
    by_round = {b: sum(s) for b, s in in_common([part.by_round for part in parts]).items()}
    if not by_round:
        return None
    return replace(
        parts[0],
        phase="+".join(part.phase for part in parts),
        seconds=spread(list(by_round.values())),
        by_round=by_round,
        ranks=None,
        rate=None,
    )


def _ratio(
    by_subject: Mapping[Subject, Sequence[PublishedValue]], c: CaseSummary, plain: CaseSummary
) -> Iterator[Match]:
    """Yield the ratio of the time of all versions to plain HDF5, published and measured."""
    test, _, *others = _subject(c.parameters)
    times = [
        [v for v in by_subject.get((test, file, *others), ()) if v.quantity == _ALL]
        for file in ("versioned", "unversioned")
    ]
    own, other = of_all_versions(c), of_all_versions(plain)
    if not all(times) or own is None or other is None:
        return
    both = in_common([own.by_round, other.by_round]).values()
    ratios = [over / under for over, under in both if under > 0]
    if ratios:
        value = replace(
            times[0][0],
            quantity="time of all versions, versioned over unversioned",
            unit="",
            value=times[0][0].value / times[1][0].value,
            note="one published number over another",
        )
        yield _match(value, c, own, spread(ratios))


def _but_versions(match: Match) -> str:
    """Name the subject without the number of versions."""
    p = match.published.parameters
    return f"{p['test']}, chunks {p['chunk']}, {p['codec']}"


def _histories(matches: Sequence[Match]) -> list[Curves]:
    """Return the time of a version along the longest history of each kind."""
    panels: list[tuple[int, PublishedPanel]] = []
    for row, own in grouped((_but_versions(match), match) for match in matches).items():
        versions = max(map(_versions_of, own))
        longest = grouped((m.alternative, m) for m in own if _versions_of(m) == versions)
        curves = [_history(name, some, versions) for name, some in longest.items()]
        if drawn := tuple(curve for curve in curves if curve.here):
            heading = f"{row}, {versions} versions"
            panels.append((versions, PublishedPanel(heading, "time of a version, ms", drawn)))
    panels.sort(key=lambda panel: -panel[0])
    shown = tuple(panel for _, panel in panels[:MOST_ROWS])
    note = "Published: medians of the first and the last tenth. Here: means of each tenth."
    return [Curves(_HISTORY, shown, len(panels[MOST_ROWS:]), note)] if shown else []


def _versions_of(match: Match) -> int:
    return int(match.published.parameters["versions"])


def _history(alternative: str, matches: Sequence[Match], versions: int) -> PublishedCurve:
    there = (
        PublishedPoint(_ENDS[m.published.statistic], m.published.value)
        for m in matches
        if m.published.statistic in _ENDS and not m.beyond
    )
    here = _tenths(matches[0].case, versions)
    return PublishedCurve(alternative, "hdf5", tuple(there), tuple(here))


def _tenths(case: CaseSummary, versions: int) -> Iterator[PublishedPoint]:
    """Yield the mean time of a version in each tenth; the initial version is in the first."""
    shares = np.array_split(np.arange(versions + 1), len(_TENTHS))
    for number, share in enumerate(shares):
        seconds = case.counts.get(("version", f"tenth_{number + 1:02d}_seconds"))
        if seconds:
            yield PublishedPoint(float(number), 1e3 * seconds / case.ranks / len(share))


def _name(p: Mapping[str, Any]) -> str:
    history = f"{p['kind']}, {p['versions']} versions, chunks {p['chunks'][0]}"
    return f"{p['backend']} {p['keep']}, {history}"


def _milliseconds(case: CaseSummary, phase: str) -> float:
    return 1e3 * case.phases[phase].seconds.median


def _reading(summary: Summary) -> Iterator[Fields]:
    """Yield the times to find versions, and to read them too, which the study left out."""
    names = ("look_up_all", "read_all", "open_array", "read")
    for c in cases_like(summary, workload="versions", probabilities="as_published"):
        if set(names[:2]) <= set(c.phases):
            yield {"case": _name(c.parameters)} | {name: _milliseconds(c, name) for name in names}


def _changing(summary: Summary) -> Iterator[Fields]:
    """Yield the extra time of single values over a contiguous range, by pairs of cases."""
    described = cases_like(summary, workload="versions", probabilities="as_described")
    for cases in grouped((but("change", c), c) for c in described if not c.invalid).values():
        p, ways = cases[0].parameters, {c.parameters["change"]: c for c in cases}
        if {"element", "batch"} <= ways.keys():
            single, stretch = (_milliseconds(ways[way], "write") for way in ("element", "batch"))
            times = single / stretch
            yield {"case": _name(p), "single": single, "stretch": stretch, "times": times}


def _changed(summary: Summary) -> Iterator[Fields]:
    """Yield the real changes, and the number of chunks that versions share."""
    for c in cases_like(summary, workload="versions", keep="chunks", backend="hdf5"):
        counts, ranks, p = c.counts, summary.record.ranks, c.parameters
        if ("close", "chunks_referenced") not in counts:
            continue
        chunks = {w: counts["close", f"chunks_{w}"] / ranks for w in ("referenced", "stored")}
        rows = {w: counts["version", w] / ranks for w in ("changed", "appended", "final_rows")}
        name = f"{p['kind']}, {p['versions']} versions, {p['probabilities']}"
        times = chunks["referenced"] / chunks["stored"]
        yield {"case": name, **chunks, **rows, "times": times}
