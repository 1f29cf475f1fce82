"""Sweeps: which settings of a format are fastest, and which of the keys that vary matters most.

Settings are the keys, other than the format, in which the cases of a comparison differ: chunks,
codec, transfer, options of a backend. All claims about the settings of a run are one family of the
judge (`pffbench.summary.inference.decide`):

* All pairs of settings of a format are in the family, so that the choice of the fastest one by the
  same times is allowed for. A value is called best only if the fastest way has it, and *every* way
  with another value is shown to be slower than that one.
* The main effect of a key is the ratio of two of its values over all ways that differ in nothing
  else: in each block the geometric mean of the times with the one, over that with the other. A
  value is best on average if every other one is shown to be slower so.
* A key matters most if the least that one of its ratios can be, by the judge's intervals, is more
  than any ratio of another key can be.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal

import msgspec

from pffbench.phases import TOTALS
from pffbench.summary.conclusions import column_heading
from pffbench.summary.crossing import WaysAtSize, WaysCompared, compare_ways
from pffbench.summary.headline import Design
from pffbench.summary.inference import Decision
from pffbench.summary.labels import keys_of
from pffbench.summary.rank_test import Ratio, Times
from pffbench.summary.summary import CaseSummary, Summary
from pffbench.text import value_text

#: What is no setting: the format, and what a comparison has in common or a user asks by itself.
_NO_SETTINGS = frozenset({"workload", "backend", "settings", "layout"})
#: Parameters that together are the codec.
_OF_CODEC = ("codec", "compressor", "level", "shuffle")
#: The key that stands for them.
CODEC = "codec"
#: The key by which formats differ.
FORMAT = "file format"
#: Above these numbers of settings of a format, and of values of a key, they are not compared: the
#: pairs grow with the square.
_MOST_SETTINGS, _MOST_VALUES = 100, 30


class SettingResult(msgspec.Struct, frozen=True):
    """Settings of a format, compared with its fastest ones.

    Parameters
    ----------
    case : str
        The case.
    values : dict of str to str
        The value of each key that varies.
    standing : {"fastest", "slower", "equal", "undecided"}
        Result of the comparison with the fastest ones, which have the smallest median.
    ratio : Ratio
        Time over that of the fastest ones.
    needed : int
        If undecided: repetitions that would probably decide it.
    """

    case: str
    values: Mapping[str, str]
    standing: Literal["fastest", "slower", "equal", "undecided"]
    ratio: Ratio
    needed: int = 0


class FormatSettings(msgspec.Struct, frozen=True):
    """All settings of a format in one comparison.

    Parameters
    ----------
    name, group : str
        The format and the comparison.
    keys : tuple of str
        The keys that vary.
    results : tuple of SettingResult
        The settings, as planned.
    """

    name: str
    group: str
    keys: tuple[str, ...]
    results: tuple[SettingResult, ...]

    @property
    def fastest(self) -> SettingResult:
        """The settings with the smallest median."""
        return next(one for one in self.results if one.standing == "fastest")

    @property
    def rivals(self) -> list[SettingResult]:
        """The settings that are not shown to be slower than the fastest ones, and these."""
        return [one for one in self.results if one.standing != "slower"]

    @property
    def best(self) -> dict[str, str]:
        """The value of each key of which every other value is shown to be slower."""
        values = {key: {one.values[key] for one in self.rivals} for key in self.keys}
        return {key: found.pop() for key, found in values.items() if len(found) == 1}


class KeyEffect(msgspec.Struct, frozen=True):
    """What the values of a key change, over all ways that differ in nothing else.

    Parameters
    ----------
    key : str
        The key.
    slower, faster : str
        Of the pairs of values that are shown to differ, or of all, the one with the largest ratio.
    ratio : Ratio
        Time with the slower value over that with the faster one.
    decided : bool
        Whether that difference is shown.
    equal : bool
        Whether all values are shown to be equally fast.
    low, high : float
        The least that the largest ratio of two values is, and the most.
    best : str
        The value of which every other one is shown to be slower; empty where none is.
    """

    key: str
    slower: str
    faster: str
    ratio: Ratio
    decided: bool
    equal: bool
    low: float
    high: float
    best: str = ""


class Sweep(msgspec.Struct, frozen=True):
    """What a run says about settings in a total.

    Parameters
    ----------
    total : str
        ``write_total``, ``update_total`` or ``read_total``.
    heading : str
        The total in words, with durability or the state of the page cache.
    formats : tuple of FormatSettings
        For each comparison its formats.
    effects : tuple of KeyEffect
        The keys, with the format, by falling ratio.
    """

    total: str
    heading: str
    formats: tuple[FormatSettings, ...]
    effects: tuple[KeyEffect, ...]

    @property
    def matters_most(self) -> str | None:
        """The key that is shown to change times more than every other one."""
        for effect in self.effects:
            others = [other.high for other in self.effects if other is not effect]
            if others and effect.decided and effect.low > max(others):
                return effect.key
        return None


class _Way(msgspec.Struct, frozen=True):
    case: CaseSummary
    group: str
    values: Mapping[str, str]

    @property
    def format(self) -> str:
        return self.case.sample.backend

    @property
    def facts(self) -> dict[str, str]:
        """All that sets the way apart, the comparison included."""
        return {**self.values, "": self.group, FORMAT: self.format}


def sweeps_of(summary: Summary) -> tuple[Sweep, ...]:
    """Return what a run says about settings; nothing where none vary.

    Runs of several environments compare these, and no settings.
    """
    design = Design.of_experiment(summary.record.experiment)
    several = len(summary.record.environments) > 1
    fields = [] if several else list(_fields(summary, design))
    ways = [
        WaysAtSize((number, label), kind, 0, times)
        for number, field in enumerate(fields)
        for label, kind, times in field.questions()
    ]
    compared: dict[int, dict[tuple[str, ...], WaysCompared]] = defaultdict(dict)
    for (number, label), (found,) in compare_ways(ways, design).items():
        compared[number][label] = found
    return tuple(field.sweep(compared[number]) for number, field in enumerate(fields))


def _fields(summary: Summary, design: Design) -> Iterator[_Field]:
    """Yield the totals in which settings are compared, each with its ways."""
    found: dict[tuple[str, str], list[_Way]] = defaultdict(list)
    for group, cases in summary.groups.items():
        ways = list(_ways(group, cases))
        for total in TOTALS if ways else ():
            there = [way for way in ways if total in way.case.phases]
            cold = ways[0].case.parameters.get("cache") == "dropped"
            if not there or (cold and design.extra_cold_reads and total != "read_total"):
                continue
            if not any(way.case.phases[total].warned("below_resolution") for way in there):
                heading = column_heading(total, [way.case for way in there])
                found[total, heading] += there
    yield from (_Field(total, heading, tuple(ways)) for (total, heading), ways in found.items())


def _ways(group: str, cases: Sequence[CaseSummary]) -> Iterator[_Way]:
    """Yield the cases of a comparison that do equal work, if settings vary among them."""
    valid = [case for case in cases if not case.raw and not case.invalid]
    matched = [case for case in valid if case.sample.settings == "matched"]
    alike = matched if len(matched) > 1 else [case for case in valid if case not in matched]
    settings = [_settings(case.entry) for case in alike]
    by_format: dict[str, list[dict[str, str]]] = defaultdict(list)
    for case, own in zip(alike, settings, strict=True):
        by_format[case.sample.backend].append(own)
    vary = [
        key
        for key in dict.fromkeys(key for own in settings for key in own)
        if any(len({own.get(key) for own in some}) > 1 for some in by_format.values())
    ]
    if vary and max(map(len, by_format.values())) <= _MOST_SETTINGS:
        for case, own in zip(alike, settings, strict=True):
            yield _Way(case, group, {key: own[key] for key in vary if key in own})


def _settings(entry: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings of a case by its entry in `run.json`, those of its codec as one."""
    told = keys_of(entry)
    found = {}
    for key, value in told.items():
        if key == CODEC:
            found[key] = _codec(told)
        elif key not in _NO_SETTINGS and key not in _OF_CODEC:
            found[key] = value_text(value)
    return found


def _codec(told: Mapping[str, Any]) -> str:
    """Return codec, compressor, level and shuffle in words without a comma."""
    texts = ("{}", "{}", "level {}", "with {} shuffle")
    known = zip(_OF_CODEC, texts, strict=True)
    return " ".join(text.format(told[key]) for key, text in known if told.get(key) is not None)


class _Field(msgspec.Struct, frozen=True):
    """The ways of a total, whose settings are compared."""

    total: str
    heading: str
    ways: tuple[_Way, ...]

    def questions(self) -> Iterator[tuple[tuple[str, ...], str, Mapping[str, Times]]]:
        """Yield the comparisons, each with its label, its kind and the times of its ways."""
        for (group, name), ways in self._by_format().items():
            times = {way.case.sample.case: self._times(way) for way in ways}
            yield (group, name), name, times
        for key in [] if self._has_one_key else self._keys():
            alike, values = self._alike(key), self._values(key)
            for one, other in combinations(values, 2) if len(values) <= _MOST_VALUES else ():
                both = [(ways[one], ways[other]) for ways in alike if {one, other} <= ways.keys()]
                if means := _means(both):
                    yield ("", key, one, other), "", dict(zip((one, other), means, strict=True))

    def sweep(self, compared: Mapping[tuple[str, ...], WaysCompared]) -> Sweep:
        """Return the results."""
        formats = [
            self._format(group, name, ways, compared[group, name])
            for (group, name), ways in self._by_format().items()
        ]
        effects = [found for key in self._keys() if (found := self._effect(key, compared))]
        effects.sort(key=lambda effect: -effect.ratio.value)
        return Sweep(self.total, self.heading, tuple(formats), tuple(effects))

    def _by_format(self) -> dict[tuple[str, str], list[_Way]]:
        found: dict[tuple[str, str], list[_Way]] = defaultdict(list)
        for way in self.ways:
            found[way.group, way.format].append(way)
        return found

    def _keys(self) -> list[str]:
        """Return the keys that vary, the format last."""
        keys = dict.fromkeys(key for way in self.ways for key in way.values) | {FORMAT: None}
        return [key for key in keys if len(self._values(key)) > 1]

    @property
    def _has_one_key(self) -> bool:
        """Whether one key of one format varies, so that its effects are ratios of two ways."""
        return [len(self._values(key)) for key in self._keys()] == [len(self.ways)]

    def _values(self, key: str) -> list[str]:
        facts = (way.facts for way in self.ways)
        return list(dict.fromkeys(told[key] for told in facts if key in told))

    def _times(self, way: _Way) -> Times:
        return way.case.phases[self.total].by_block

    def _alike(self, key: str) -> list[dict[str, Times]]:
        """Return the times of ways that differ in nothing but a key, by its value."""
        alike: dict[frozenset[tuple[str, str]], dict[str, Times]] = defaultdict(dict)
        for way in self.ways:
            told = way.facts
            if value := told.pop(key, ""):
                alike[frozenset(told.items())][value] = self._times(way)
        return list(alike.values())

    def _format(
        self, group: str, name: str, ways: Sequence[_Way], compared: WaysCompared
    ) -> FormatSettings:
        keys = dict.fromkeys(key for way in ways for key in way.values)
        vary = tuple(key for key in keys if len({way.values.get(key) for way in ways}) > 1)
        results = []
        for way in ways:
            case, values = way.case.sample.case, {key: way.values.get(key, "–") for key in vary}
            decision = compared.decisions.get((case, compared.first), Decision(Ratio.unknown()))
            if case == compared.first:
                one = SettingResult(case, values, "fastest", Ratio(0, 1.0, 1.0, 1.0, 1.0))
            else:
                standing = _standing(decision)
                one = SettingResult(case, values, standing, decision.ratio, decision.needed)
            results.append(one)
        return FormatSettings(name, group, vary, tuple(results))

    def _effect(
        self, key: str, compared: Mapping[tuple[str, ...], WaysCompared]
    ) -> KeyEffect | None:
        """Return the effect of a key; None where no two ways differ in it alone."""
        pairs = {label[2:]: found for label, found in compared.items() if label[:2] == ("", key)}
        found: list[tuple[str, str, Decision]] = []
        if self._has_one_key:
            of = {way.case.sample.case: way.values.get(key, "") for way in self.ways}
            (only,) = compared.values()
            found = [(of[a], of[b], d) for (a, b), d in only.decisions.items() if a < b]
        for (one, other), ways in pairs.items():
            if decision := ways.decisions.get((one, other)):
                found.append((one, other, decision))
        turned = [
            (one, other, d) if d.ratio.value >= 1 else (other, one, d.inverse)
            for one, other, d in found
            if d.ratio.n
        ]
        if not turned:
            return None
        shown = [pair for pair in turned if pair[2].longer]
        slower, faster, most = max(shown or turned, key=lambda pair: pair[2].ratio.value)
        ratios = [d.ratio for *_, d in turned]
        values = {value for pair in turned for value in pair[:2]}
        best = [v for v in values if {one for one, other, _ in shown if other == v} == values - {v}]
        return KeyEffect(
            key,
            slower,
            faster,
            most.ratio,
            decided=bool(shown),
            equal=all(d.equivalent for *_, d in turned),
            low=max(ratio.low for ratio in ratios),
            best="".join(best),
            high=max(
                max(ratio.high, 1 / ratio.low if ratio.low > 0 else math.inf) for ratio in ratios
            ),
        )


def _means(pairs: Sequence[tuple[Times, Times]]) -> tuple[Times, Times] | None:
    """Return the geometric means of the first, and of the second of pairs, in each common block."""
    if not pairs:
        return None
    common = set.intersection(*(set(times) for pair in pairs for times in pair))
    if not common or min(times[b] for pair in pairs for times in pair for b in common) <= 0:
        return None
    one, other = (
        {b: math.exp(math.fsum(math.log(own[b]) for own in side) / len(pairs)) for b in common}
        for side in zip(*pairs, strict=True)
    )
    return one, other


def _standing(decision: Decision) -> Literal["slower", "equal", "undecided"]:
    if decision.longer:
        return "slower"
    return "equal" if decision.equivalent else "undecided"
