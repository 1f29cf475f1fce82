"""Study 5: versions of a table in versioned-hdf5 and plain HDF5, repeated by `versions`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from pffbench.summary.statistics import spread
from pffbench.summary.summary import CaseSummary, PhaseSummary, Summary
from pffbench_analysis.published.counterparts import Match, PublishedValue
from pffbench_analysis.published.curves import (
    MOST_ROWS,
    Curves,
    PublishedAxis,
    PublishedCurve,
    PublishedPanel,
    PublishedPoint,
    curves_over,
)
from pffbench_analysis.published.reasons import Fields, Reason, reasons_of

#: Ways of keeping versions that match the study's two files, and their names.
_WAYS = {
    "versioned_hdf5": ("versioned", "versioned-hdf5"),
    "chunks": ("versioned", "chunks by content (pffbench)"),
    "last": ("unversioned", "plain HDF5, last state"),
}
#: The way in which each file of the study was really made; others are only similar.
_TRUE = {"versioned": "versioned_hdf5", "unversioned": "last"}
_MIB = 2**20
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
    "size of the file": "size of the file, MiB",
    "time of all versions": "time of all versions, s",
    "time of a version median over versions": "median time of a version, ms",
}
#: Statistics of the change of version times along a history, and the tenth.
_ENDS = {
    "median over the first tenth of versions": 0.0,
    "median over the last tenth of versions": 9.0,
}
_TENTHS = tuple(f"{number}" for number in range(1, 11))

#: Test, file, versions, chunk and codec.
Subject = tuple[str, str, str, str, str]


class VersionedHdf5Matcher:
    """Matcher of cases by kind of history, number of versions, chunk size, codec and way."""

    def matches(self, summary: Summary, values: Sequence[PublishedValue]) -> list[Match]:
        """Return the numbers with a counterpart in the run.

        Only histories with the probabilities of the published runs count. Sizes are the mean of the
        ranks' files, each of which has a history of its own.
        """
        by_subject = _by_subject(values)
        found: list[Match] = []
        plain: dict[Subject, tuple[CaseSummary, Mapping[str, Any]]] = {}
        cases = [(c, p) for c in summary.cases if _is_alike(p := summary.entry(c)["parameters"])]
        for case, p in cases:
            if p["keep"] == "last":
                plain[_key(p)] = case, p
        for case, p in cases:
            for value in by_subject.get(_key(p), ()):
                found += _matched(value, case, p, summary.record.ranks)
            beside = plain.get((_key(p)[0], "unversioned", *_key(p)[2:]))
            if beside is not None and p["keep"] != "last" and _alike_done(p, beside[1]):
                found += _ratio(by_subject, case, p, beside[0], summary.record.ranks)
        return found

    def curves(self, matches: Sequence[Match], values: Sequence[PublishedValue]) -> list[Curves]:
        """Return sizes and times over the number of versions, and times along a history."""
        variant = next((m.variant for m in matches if m.nearest), None)
        variant = variant or next((m.variant for m in matches), "")
        alike = [m for m in matches if m.variant == variant]
        return [
            *curves_over(_VERSIONS, alike, values, _but_versions, _DRAWN),
            *_histories(alike),
        ]

    def reasons(self, summary: Summary) -> list[Reason]:
        """Return the differences between study and run."""
        rows = {
            "look_up": list(_reading(summary)),
            "one_by_one": list(_changing(summary)),
            "changed": list(_changed(summary)),
        }
        return reasons_of("versioned-hdf5", summary, summary.cases, rows)

    def claims(self, values: Sequence[PublishedValue]) -> list[str]:
        """Return statements of the study's text, checked by counting its numbers."""
        by_subject = _by_subject(values)

        def ratios(test: str, chunk: str, codec: str, statistic: str) -> str:
            found = []
            for key, own in by_subject.items():
                if (key[0], key[1], *key[3:]) == (test, "versioned", chunk, codec):
                    other = by_subject[test, "unversioned", *key[2:]]
                    pair = [_only(side, "time of a version", statistic) for side in (own, other)]
                    found.append(pair[0].value / pair[1].value)
            return f"{min(found):.0f} to {max(found):.0f}"

        constant, usual = "large_fraction_constant_sparse", "median over versions"
        size = {
            test: _only(by_subject[test, "versioned", "5000", "4096", "none"], "size of the file")
            for test in ("large_fraction_changes_sparse", "small_fraction_changes_sparse")
        }
        large, small = (value.value for value in size.values())
        return [
            "a version of the constant table with chunks of 4096 is said to take 6 to 8 times as "
            f"long as in plain HDF5; by the study's own raw timings it takes "
            f"{ratios(constant, '4096', 'none', usual)} times as long, and with gzip and chunks of "
            f"16384 {ratios(constant, '16384', 'gzip', usual)}",
            "1000 and 10 changed values a version are said to be a large and a small fraction; "
            f"the files after 5000 versions have {large:.0f} and {small:.0f} MiB, since the "
            "program was run with all changes switched off",
            "572 MB are said to be what copies of the constant table would take, for 5000 rows; "
            "by its program about 3.7 rows are appended in each version, so that it ends with "
            "about 23 500, and copies would take about 1.7 GB",
            "times of reading are said to be those of reading; no value was read: they are the "
            "time in which the object of a column is found",
        ]


MATCHER = VersionedHdf5Matcher()


def _by_subject(values: Sequence[PublishedValue]) -> dict[Subject, list[PublishedValue]]:
    found: dict[Subject, list[PublishedValue]] = {}
    for value in values:
        p = value.parameters
        key = (p["test"], p["file"], p["versions"], p["chunk"], p["codec"])
        if not math.isnan(value.value):
            found.setdefault(key, []).append(value)
    return found


def _only(values: Sequence[PublishedValue], quantity: str, statistic: str = "") -> PublishedValue:
    return next(v for v in values if v.quantity == quantity and statistic in v.statistic)


def _is_alike(p: Mapping[str, Any]) -> bool:
    return (
        p.get("workload") == "versions"
        and p.get("backend") == "hdf5"
        and p.get("keep") in _WAYS
        and p.get("probabilities") == "as_published"
        and p.get("cache") in ("warm", "shifted")
    )


def _key(p: Mapping[str, Any]) -> Subject:
    codec = "none" if p["codec"] in ("auto", None) else str(p["codec"])
    chunk = str(p["chunks"][0])
    return str(p["kind"]), _WAYS[p["keep"]][0], str(p["versions"]), chunk, codec


def _alike_done(p: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two cases differ only in the way of keeping versions."""
    return all(p[key] == other.get(key) for key in p if key != "keep")


def _matched(
    value: PublishedValue, case: CaseSummary, p: Mapping[str, Any], ranks: int
) -> Iterator[Match]:
    """Yield the match of a published number with a case; none if not measured."""
    if value.quantity == "size of the file" and value.unit == "MiB":
        size = case.counts.get(("close", "file_bytes"))
        if size is not None:
            yield _match(value, case, "close", p, [size / ranks / _MIB], ranks)
    elif value.quantity == "time of all versions":
        total = of_all_versions(case)
        if total is not None:
            yield _match(value, case, total, p, None, ranks)
    elif value.quantity == "time of a version":
        counted = case.counts.get(("version", _MEDIANS.get(value.statistic, "")))
        if counted is not None:
            yield _match(value, case, "commit", p, [1e3 * counted / ranks], ranks)
    else:
        phase = _LOOK_UPS.get((value.quantity, value.parameters["operation"]), "")
        if phase in case.phases:
            yield _match(value, case, phase, p, None, ranks)


def _match(
    value: PublishedValue,
    case: CaseSummary,
    phase: str | PhaseSummary,
    p: Mapping[str, Any],
    measured: list[float] | None,
    ranks: int,
) -> Match:
    kind, file, versions, chunk, codec = _key(p)
    told = ["values one by one" if p["change"] == "element" else "values in a stretch"]
    told += [f"{ranks} ranks"] if ranks > 1 else []
    told += [str(p["durability"])] if p["durability"] != "close" else []
    statistic = value.statistic if value.quantity == "time of a version" else ""
    return Match(
        value,
        case,
        case.phases[phase] if isinstance(phase, str) else phase,
        factor={"ms": 1e3, "s": 1.0}.get(value.unit, 1.0),
        subject=f"{kind}, {versions} versions, chunks {chunk}, {codec}",
        operation=" ".join(filter(None, (value.quantity, statistic))),
        variant=", ".join(told),
        alternative=_WAYS[p["keep"]][1],
        nearest=ranks == 1 and p["change"] == "element" and p["keep"] == _TRUE[file],
        measured=None if measured is None else spread(measured),
        known_as=_WAYS[_TRUE[file]][1],
        beyond=p["keep"] != _TRUE[file],
    )


def _but_versions(match: Match) -> str:
    """Name the subject without the number of versions."""
    p = match.published.parameters
    return f"{p['test']}, chunks {p['chunk']}, {p['codec']}"


def _histories(matches: Sequence[Match]) -> list[Curves]:
    """Return the time of a version along the longest history of each kind."""
    longest: dict[str, int] = {}
    for match in matches:
        row, versions = _but_versions(match), int(match.published.parameters["versions"])
        longest[row] = max(versions, longest.get(row, 0))
    curves: dict[str, dict[str, PublishedCurve]] = {}
    for match in matches:
        row, p = _but_versions(match), match.published.parameters
        if int(p["versions"]) != longest[row]:
            continue
        own = curves.setdefault(row, {})
        before = own.get(match.alternative)
        here = before.here if before else tuple(_tenths(match.case, longest[row]))
        there = before.published if before else ()
        place = _ENDS.get(match.published.statistic)
        if place is not None and not match.beyond:
            there += (PublishedPoint(place, match.published.value),)
        if here:
            own[match.alternative] = PublishedCurve(match.alternative, "hdf5", there, here)
    panels = [
        PublishedPanel(
            f"{row}, {longest[row]} versions", "time of a version, ms", tuple(curves[row].values())
        )
        for row in sorted(curves, key=lambda row: -longest[row])
        if curves[row]
    ]
    if not panels:
        return []
    return [
        Curves(
            "published-history",
            "Published and here, along the history",
            "tenth of the versions",
            _TENTHS,
            tuple(panels[:MOST_ROWS]),
            left_out=len(panels[MOST_ROWS:]),
            note="Published: medians of the first and the last tenth. Here: means of each tenth.",
        )
    ]


def _tenths(case: CaseSummary, versions: int) -> Iterator[PublishedPoint]:
    """Yield the mean time of a version in each tenth; the initial version is in the first."""
    shares = np.array_split(np.arange(versions + 1), len(_TENTHS))
    for number, share in enumerate(shares):
        seconds = case.counts.get(("version", f"tenth_{number + 1:02d}_seconds"))
        if seconds:
            yield PublishedPoint(float(number), 1e3 * seconds / case.sample.ranks / len(share))


def of_all_versions(case: CaseSummary) -> PhaseSummary | None:
    """Return staging, committing and flushing all versions as one phase."""
    parts = [case.phases[name] for name in _OF_A_VERSION if name in case.phases]
    blocks = set.intersection(*(set(part.by_block) for part in parts)) if parts else set()
    if not blocks:
        return None
    by_block = {b: sum(part.by_block[b] for part in parts) for b in sorted(blocks)}
    return msgspec.structs.replace(
        parts[0],
        phase="+".join(part.phase for part in parts),
        seconds=spread(list(by_block.values())),
        by_block=by_block,
        ranks=None,
        rate=None,
    )


def _ratio(
    by_subject: Mapping[Subject, Sequence[PublishedValue]],
    case: CaseSummary,
    p: Mapping[str, Any],
    plain: CaseSummary,
    ranks: int,
) -> Iterator[Match]:
    """Yield the ratio of the time of all versions to plain HDF5, published and measured."""
    key = _key(p)
    there = [by_subject.get((key[0], file, *key[2:]), ()) for file in ("versioned", "unversioned")]
    times = [[v for v in side if v.quantity == "time of all versions"] for side in there]
    own, other = of_all_versions(case), of_all_versions(plain)
    if not all(times) or own is None or other is None:
        return
    common = sorted(set(own.by_block) & set(other.by_block))
    ratios = [own.by_block[b] / other.by_block[b] for b in common if other.by_block[b] > 0]
    if ratios:
        value = replace(
            times[0][0],
            quantity="time of all versions, versioned over unversioned",
            unit="",
            value=times[0][0].value / times[1][0].value,
            note="one published number over another",
        )
        yield _match(value, case, own, p, ratios, ranks)


def _with(summary: Summary, **wanted: str) -> Iterator[tuple[CaseSummary, Mapping[str, Any]]]:
    """Yield the cases with versions that have these parameters."""
    for case in summary.cases:
        p = summary.entry(case)["parameters"]
        if p.get("workload") == "versions" and all(p.get(k) == v for k, v in wanted.items()):
            yield case, p


def _name(p: Mapping[str, Any]) -> str:
    history = f"{p['kind']}, {p['versions']} versions, chunks {p['chunks'][0]}"
    return f"{p['backend']} {p['keep']}, {history}"


def _milliseconds(case: CaseSummary, phase: str) -> float:
    return 1e3 * case.phases[phase].seconds.median


def _reading(summary: Summary) -> Iterator[Fields]:
    """Yield the times to find versions, and to read them too, which the study left out."""
    names = ("look_up_all", "read_all", "open_array", "read")
    for case, p in _with(summary, probabilities="as_published"):
        if set(names[:2]) <= set(case.phases):
            yield {"case": _name(p)} | {name: _milliseconds(case, name) for name in names}


def _changing(summary: Summary) -> Iterator[Fields]:
    """Yield the extra time of single values over a contiguous range, by pairs of cases."""

    def way(p: Mapping[str, Any]) -> str:
        return str(sorted((k, str(v)) for k, v in p.items() if k != "change"))

    batch = {way(p): case for case, p in _with(summary, change="batch")}
    for case, p in _with(summary, change="element", probabilities="as_described"):
        if (other := batch.get(way(p))) is not None:
            single, stretch = (_milliseconds(c, "write") for c in (case, other))
            yield {"case": _name(p), "single": single, "stretch": stretch,
                   "times": single / stretch}  # fmt: skip


def _changed(summary: Summary) -> Iterator[Fields]:
    """Yield the real changes, and the number of chunks that versions share."""
    for case, p in _with(summary, keep="chunks", backend="hdf5"):
        counts, ranks = case.counts, summary.record.ranks
        if ("close", "chunks_referenced") not in counts:
            continue
        chunks = {w: counts["close", f"chunks_{w}"] / ranks for w in ("referenced", "stored")}
        rows = {w: counts["version", w] / ranks for w in ("changed", "appended", "final_rows")}
        name = f"{p['kind']}, {p['versions']} versions, {p['probabilities']}"
        times = chunks["referenced"] / chunks["stored"]
        yield {"case": name, **chunks, **rows, "times": times}
