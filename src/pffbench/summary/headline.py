"""The headline of a run: the fastest format at writing and at reading, and its certainty.

A *comparison* consists of cases that write and read the same bytes in the same boxes with the same
settings, uncompressed or compressed. Its *contenders* are the formats, each with all its cases, or
the cases themselves if there is only one format. In a run of several environments each case is a
comparison, and the environments are its contenders. A format is called faster than another when its
fastest case is shown to be faster than *each* case of the other, so more cases are no advantage.

The headline compares equal work: the comparisons with settings ``matched``, or those with
``defaults`` if there are no others. Rank 0 queries it during a run for the cases to continue, and
the summary at the end; both get the same answer from the same times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from pffbench.summary.inference import (
    MARGIN,
    ComparisonTable,
    Decision,
    Decisions,
    decide,
    planned_looks,
)
from pffbench.summary.rank_test import ALPHA, FEWEST, Ratio, Times, fastest_of

#: Seconds by block, by case, by total (``write_total``, …).
TotalTimes = Mapping[str, Mapping[str, Times]]
Entry = Mapping[str, Any]


class ComparisonKey(NamedTuple):
    """The common properties of the cases of one comparison.

    Parameters
    ----------
    group : str
        Name of the group: same bytes in the same boxes.
    settings : str
        ``matched`` or ``defaults``.
    compressed : bool
        Whether the stored data are compressed.
    same_case : str
        In a run of several environments: the case, which each of them runs; else empty.
    """

    group: str
    settings: str
    compressed: bool
    same_case: str = ""


def comparison_key(entry: Entry) -> ComparisonKey:
    """Return the comparison that a case belongs to, by its entry in `run.json`."""
    p = entry["parameters"]
    stored = entry.get("stored_as")
    codec = stored["codec"] if isinstance(stored, Mapping) else p.get("codec", "auto")
    compressed = codec not in ("none", "auto", "", None)
    return ComparisonKey(entry["group"], p["settings"], compressed, entry.get("same_case", ""))


def takes_part(entry: Entry) -> bool:
    """Return whether a case is compared: not if it failed or its data were wrong."""
    return not (entry.get("failure") or entry.get("invalid"))


def reason_out(entry: Entry) -> str:
    """Return the reason why a case is excluded, in a line; empty if it is not."""
    failure = entry.get("failure")
    if failure:
        text = f"failed in {failure['phase']}: {failure.get('error', 'see run.json')}"
    else:
        text = str(entry.get("invalid") or "")
    return " ".join(text.split())


class Absence(msgspec.Struct, frozen=True):
    """A format missing from the comparison, since all of its cases are excluded.

    Parameters
    ----------
    name : str
        The format.
    why : str
        Reason for the first of its cases.
    missed, planned : int
        Comparisons of the headline without it, and all for which it was planned.
    """

    name: str
    why: str
    missed: int
    planned: int


Standing = Literal["slower", "equal", "undecided"]


class Contender(msgspec.Struct, frozen=True):
    """A contender compared with the fastest one of a comparison.

    Parameters
    ----------
    name : str
        Name of the format, or of the case if only one format is compared.
    case : str
        Its fastest case.
    standing : {"slower", "equal", "undecided"}
        Result of its comparison with the fastest one.
    ratio : Ratio
        Its time over that of the fastest one.
    needed : int
        If undecided: repetitions that would probably decide it.
    open_cases : tuple of str
        If undecided: its cases that are not shown to be slower yet.
    spent : float or None
        Ratio of the sums of the times, where it lies outside of the interval of `ratio`; else
        None.
    """

    name: str
    case: str
    standing: Standing
    ratio: Ratio
    needed: int = 0
    open_cases: tuple[str, ...] = ()
    spent: float | None = None


class Answer(msgspec.Struct, frozen=True):
    """The result of a comparison in one total.

    Parameters
    ----------
    total : str
        ``write_total``, ``update_total`` or ``read_total``.
    key : ComparisonKey
        The comparison.
    name, case : str
        The contender with the smallest median, and its case.
    others : tuple of Contender
        The others, fastest first.
    too_short : bool
        Whether times are below resolution, so that no result is given.
    extra : bool
        Whether it is a cold read beside the headline (``cold_reads: extra``).
    running : tuple of str
        If undecided: the cases that need more repetitions. Cases shown to be slower than each
        case that may be the fastest are not among them.
    ratios : dict of str to Ratio
        The time of each case of another contender over that of `case`. All printed ratios of
        such a pair come from here, so that all show the same interval.
    """

    total: str
    key: ComparisonKey
    name: str
    case: str
    others: tuple[Contender, ...]
    too_short: bool = False
    extra: bool = False
    running: tuple[str, ...] = ()
    ratios: Mapping[str, Ratio] = msgspec.field(default_factory=dict)

    @property
    def decided(self) -> bool:
        """Whether each contender is shown to be slower than, or equal to, the fastest one.

        Times below resolution stay so however often they are measured.
        """
        return self.too_short or all(o.standing != "undecided" for o in self.others)

    @property
    def fastest(self) -> tuple[str, ...]:
        """Names of the fastest contender and of those that are equally fast."""
        return (self.name, *(o.name for o in self.others if o.standing == "equal"))


class Design(msgspec.Struct, frozen=True):
    """The design of a run: its looks, its margin, its headline, its pairs.

    Parameters
    ----------
    looks : tuple of int
        Numbers of repetitions after which the run tests its results.
    margin : float
        Relative difference under which two ways count as equally fast.
    extra_cold_reads : bool
        Whether reads with a dropped cache are compared beside the headline.
    paired : bool
        Whether cases are compared within blocks: where the ranks are started anew in each.
    """

    looks: tuple[int, ...]
    margin: float = MARGIN
    extra_cold_reads: bool = False
    paired: bool = False

    @classmethod
    def of_experiment(cls, experiment: Mapping[str, Any]) -> Design:
        """Return the design of an experiment as stored in `run.json`."""
        margin = float(experiment.get("margin") or MARGIN)
        extra = experiment.get("cold_reads") == "extra"
        paired = bool(experiment.get("environments") or experiment.get("starts"))
        repetitions = experiment.get("repetitions") or FEWEST
        if repetitions == "auto":
            return cls(planned_looks(int(experiment["max_repetitions"])), margin, extra, paired)
        return cls((int(repetitions),), margin, extra, paired)


def answers(
    cases: Mapping[str, Entry],
    times: TotalTimes,
    design: Design,
    resolution: float,
    *,
    ended: bool = True,
) -> list[Answer]:
    """Return the fastest contender of each comparison of the headline, and the others' results.

    Parameters
    ----------
    cases : dict of str to dict
        Entries of the cases in `run.json`.
    times : dict
        Seconds of the repetitions that count.
    design : Design
        Looks, margin, and whether cold reads are beside the headline.
    resolution : float
        Resolution of the harness in seconds.
    ended : bool
        Whether all repetitions are done.
    """
    contests, decisions = _decided(cases, times, design, ended=ended)
    return [contest.answer(place, decisions, resolution) for place, contest in enumerate(contests)]


def _decided(
    cases: Mapping[str, Entry], times: TotalTimes, design: Design, *, ended: bool
) -> tuple[Sequence[_Contest], Decisions]:
    contests = list(_contests(cases, times, design))
    tables = [contest.table for contest in contests]
    looks = design.looks
    return contests, decide(tables, looks, ended=ended, margin=design.margin, alpha=ALPHA)


def undecided_cases(found: Iterable[Answer]) -> set[str]:
    """Return the cases that must continue, since the fastest is undecided."""
    open_ = [answer for answer in found if not answer.decided]
    return {case for answer in open_ for case in answer.running}


class _Contest(msgspec.Struct, frozen=True):
    """A comparison in one total: its contenders, each with its cases."""

    total: str
    key: ComparisonKey
    contenders: Mapping[str, Sequence[str]]
    times: Mapping[str, Times]
    extra: bool
    paired: bool

    @property
    def table(self) -> ComparisonTable:
        """All pairs of cases of different contenders."""
        names = list(self.contenders)
        pairs = [
            (a, b)
            for i, one in enumerate(names)
            for other in names[i + 1 :]
            for a in self.contenders[one]
            for b in self.contenders[other]
        ]
        kinds = {case: name for name, cases in self.contenders.items() for case in cases}
        return ComparisonTable(self.times, tuple(pairs), self.paired, kinds)

    @property
    def best(self) -> dict[str, str]:
        """The fastest case of each contender."""
        return {name: self._fastest(cases) for name, cases in self.contenders.items()}

    def answer(self, place: int, decisions: Decisions, resolution: float) -> Answer:
        """Combine the decisions on the pairs."""
        best = self.best
        times = {name: self.times[case] for name, case in best.items()}
        first = fastest_of(times, paired=self.paired)
        others = [
            self.beside(name, best, first, place, decisions) for name in best if name != first
        ]
        others.sort(key=lambda other: other.ratio.value)
        short = any(self._median(case) < resolution for case in best.values())
        running = self._running(best[first], others, place, decisions)
        ratios = {
            case: decision.ratio
            for name in best
            if name != first
            for case in self.contenders[name]
            if (decision := _decision(place, case, best[first], decisions)).ratio.n
        }
        return Answer(
            total=self.total,
            key=self.key,
            name=first,
            case=best[first],
            others=tuple(others),
            too_short=short,
            extra=self.extra,
            running=running,
            ratios=ratios,
        )

    def _running(
        self, first: str, others: Sequence[Contender], place: int, decisions: Decisions
    ) -> tuple[str, ...]:
        """Return the cases that are not shown to be slower than all that may be the fastest."""
        rivals = [first]
        for other in others:
            rivals += other.open_cases if other.standing == "undecided" else ()
            rivals += [other.case] if other.standing == "equal" else ()
        of = {case: name for name, cases in self.contenders.items() for case in cases}
        found = []
        for case in of:
            against = [_decision(place, case, r, decisions) for r in rivals if of[r] != of[case]]
            if case in rivals or not all(d.longer for d in against):
                found.append(case)
        return tuple(found)

    def _median(self, case: str) -> float:
        return float(np.median(list(self.times[case].values())))

    def _fastest(self, cases: Iterable[str]) -> str:
        return fastest_of({case: self.times[case] for case in cases}, paired=self.paired)

    def beside(
        self,
        name: str,
        best: Mapping[str, str],
        first: str,
        place: int,
        decisions: Decisions,
    ) -> Contender:
        """Compare all cases of a contender with the fastest one of another."""
        of_all = {
            case: _decision(place, case, best[first], decisions) for case in self.contenders[name]
        }
        its_best = of_all[best[name]]
        open_ = [case for case, d in of_all.items() if not d.longer]
        standing: Standing = "undecided"
        if not open_:
            standing = "slower"
        elif its_best.equivalent:
            standing = "equal"
        undecided = standing == "undecided"
        return Contender(
            name,
            best[name],
            standing,
            its_best.ratio,
            needed=max(of_all[case].needed for case in open_) if undecided else 0,
            open_cases=tuple(open_) if undecided else (),
            spent=its_best.spent if its_best.differs_in_sum else None,
        )


def _decision(place: int, case: str, other: str, decisions: Decisions) -> Decision:
    """Return the decision on a pair in either order; the ratio is case / other."""
    known = decisions.get((place, case, other))
    if known is not None:
        return known
    return decisions.get((place, other, case), Decision(Ratio.unknown())).inverse


def _contests(cases: Mapping[str, Entry], times: TotalTimes, design: Design) -> Iterable[_Contest]:
    """Yield the comparisons of the headline in each total, and the extra cold reads."""
    by_key = _planned(cases)
    extra = _cold_beside_others(cases, by_key) if design.extra_cold_reads else frozenset()
    several = _several_formats(cases, by_key)
    for total, measured in times.items():
        for key, names in by_key.items():
            if key in extra and total != "read_total":
                continue  # it is written like the others, with fewer repetitions
            there = [name for name in names if takes_part(cases[name]) and measured.get(name)]
            contenders: dict[str, list[str]] = defaultdict(list)
            for name in there:
                contenders[_format(cases[name]) if several else name].append(name)
            if len(contenders) > 1:
                raw = [
                    name
                    for name, entry in cases.items()
                    if entry.get("raw") and entry["group"] == key.group and measured.get(name)
                ]
                chosen = {name: measured[name] for name in (*there, *raw)}
                yield _Contest(
                    total, key, dict(contenders), chosen, key in extra, paired=design.paired
                )


def _cold_beside_others(
    cases: Mapping[str, Entry], by_key: Mapping[ComparisonKey, Sequence[str]]
) -> frozenset[ComparisonKey]:
    """Return the comparisons with a dropped cache, if there are others."""
    cold = frozenset(
        key
        for key, names in by_key.items()
        if cases[names[0]]["parameters"].get("cache") == "dropped"
    )
    return cold if len(cold) < len(by_key) else frozenset()


def absences(cases: Mapping[str, Entry]) -> list[Absence]:
    """Return the formats missing from a comparison for which they were planned."""
    by_key = _planned(cases)
    if not _several_formats(cases, by_key):
        return []
    planned: dict[str, int] = defaultdict(int)
    missed: dict[str, list[str]] = defaultdict(list)
    for names in by_key.values():
        by_format: dict[str, list[str]] = defaultdict(list)
        for name in names:
            by_format[_format(cases[name])].append(name)
        for found, own in by_format.items():
            planned[found] += len(by_format) > 1
            if len(by_format) > 1 and not any(takes_part(cases[name]) for name in own):
                missed[found].append(reason_out(cases[own[0]]))
    return [Absence(name, why[0], len(why), planned[name]) for name, why in missed.items()]


def _planned(cases: Mapping[str, Entry]) -> dict[ComparisonKey, list[str]]:
    """Return the cases of the comparisons of the headline, excluded ones too.

    The comparisons must not depend on failures: if all cases of a format failed, the others
    are not a comparison among the cases of the remaining format.
    """
    by_key: dict[ComparisonKey, list[str]] = defaultdict(list)
    for name, entry in cases.items():
        if not entry.get("raw"):
            by_key[comparison_key(entry)].append(name)
    return _of_headline(by_key)


def _several_formats(
    cases: Mapping[str, Entry], by_key: Mapping[ComparisonKey, Sequence[str]]
) -> bool:
    """Return whether several formats are compared, and not the cases of a single one."""
    return any(len({_format(cases[name]) for name in names}) > 1 for names in by_key.values())


def _of_headline(by_key: dict[ComparisonKey, list[str]]) -> dict[ComparisonKey, list[str]]:
    """Return the comparisons of equal work, if any of them compares anything; else all."""
    matched = {
        key: names for key, names in by_key.items() if key.settings == "matched" and len(names) > 1
    }
    if any(key.same_case for key in by_key):  # in each of them environments do equal work
        return by_key
    return matched or by_key


def _format(entry: Entry) -> str:
    """Return the name of a contender with several cases: an environment, or else a format."""
    p = entry["parameters"]
    return str(p["environment"] if entry.get("same_case") else p["backend"])
