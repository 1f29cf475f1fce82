"""The words of a sweep: the best settings, a table of them, and the key that matters most."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from pffbench.summary.conclusions import interval, listed, number
from pffbench.summary.labels import format_title, parameters_apart
from pffbench.summary.summary import CaseSummary, Summary
from pffbench.summary.sweep import (
    CODEC,
    FORMAT,
    FormatSettings,
    KeyEffect,
    SettingResult,
    Sweep,
)
from pffbench.text import abridged
from pffbench.units import seconds_text

#: Above this number of values of a key they are counted, not named.
_MOST_VALUES = 3
#: The values of a key, by heading of the total.
_Best = Mapping[str, Mapping[str, str]]


class SettingsTable(msgspec.Struct, frozen=True):
    """A table of settings.

    Parameters
    ----------
    title : str
        The format, and what the numbers are.
    columns : tuple of str
        Values of a key, or the totals.
    rows : tuple of tuple of str
        For each setting its name, and the times over those of the fastest settings: alone if shown
        to be slower, ``same``, or with a question mark if not decided.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class SweepAnswer(msgspec.Struct, frozen=True):
    """The answer of a sweep in words.

    Parameters
    ----------
    sentence : str
        The best settings, as far as they are decided.
    decided : bool
        Whether the sentence says more than that nothing is decided.
    tables : tuple of SettingsTable
        The settings of each format and comparison; the format that comes first is first.
    notes : tuple of str
        What each key changes in each total, and how small each codec makes the files.
    brief : tuple of str
        The same in as many words as a terminal has room for.
    best : dict of str to str
        For each format its fastest settings, with a question mark at what is not decided.
    single : str
        The format, where the run compares no others; else empty.
    """

    sentence: str
    decided: bool
    tables: tuple[SettingsTable, ...]
    notes: tuple[str, ...]
    brief: tuple[str, ...]
    best: Mapping[str, str]
    single: str


def sweep_answer(summary: Summary, order: Sequence[str] = ()) -> SweepAnswer | None:
    """Return the answer of a sweep; None where no settings vary.

    Parameters
    ----------
    summary : Summary
        The run.
    order : sequence of str
        Names of formats, the fastest first, as far as they are compared.
    """
    sweeps = summary.sweeps
    if not sweeps:
        return None
    formats = list(dict.fromkeys(one.name for sweep in sweeps for one in sweep.formats if one.keys))
    formats.sort(key=lambda name: order.index(name) if name in order else len(order))
    best = {name: {sweep.heading: _agreed(sweep, name) for sweep in sweeps} for name in formats}
    told = [name for name in formats if any(best[name].values())]
    every = [one for sweep in sweeps for one in sweep.formats if one.keys]
    equal = all(other.standing in ("equal", "fastest") for one in every for other in one.results)
    compared = {case.sample.backend for case in summary.cases if not case.raw}
    sentence = _no_matter(every, summary) if equal else _sentence(best, told, every, sweeps)
    sizes = [text] if (text := _compression(summary, sweeps)) else []
    decided = equal or any(effect.decided for sweep in sweeps for effect in sweep.effects)
    return SweepAnswer(
        sentence,
        decided or bool(told),
        tuple(_tables(summary, formats, best)),
        (*(_effects(one) for one in sweeps if one.effects), *sizes),
        (_most(sweeps), *sizes),
        {name: _fastest_of(sweeps, name) for name in formats},
        format_title(formats[0]) if len(compared) == 1 else "",
    )


def _agreed(sweep: Sweep, name: str) -> dict[str, str]:
    """Return the values that are best in every comparison of a format."""
    found = [one.best for one in sweep.formats if one.name == name and one.keys]
    first, *others = found or [{}]
    return {k: v for k, v in first.items() if all(other.get(k) == v for other in others)}


def _sentence(
    best: Mapping[str, _Best],
    told: Sequence[str],
    every: Sequence[FormatSettings],
    sweeps: Sequence[Sweep],
) -> str:
    """Name the values that are best for a format, and what is best on average of other keys."""
    own = best[told[0]] if told else {}
    named = set.intersection(*(set(values) for values in own.values())) if own else set()
    of_all = own if all(other == own for other in best.values()) else {}
    average = {
        sweep.heading: {
            effect.key: effect.best
            for effect in sweep.effects
            if effect.best and effect.key not in {*named, FORMAT}
            if of_all.get(sweep.heading, {}).get(effect.key) != effect.best
        }
        for sweep in sweeps
    }
    texts = []
    if told:
        unanimous = len(best) > 1 and all(other == own for other in best.values())
        who = "every format" if unanimous else format_title(told[0])
        texts.append(f"Best for {who}: {_values(own)}.")
    if any(average.values()):
        texts.append(f"Best on average: {_values(average)}.")
    if texts:
        return " ".join(texts)
    text = f"No value of {listed(_keys(every), 'or')} is shown to be best"
    slower = [f"{key} {listed(values)}" for key, values in _slower(every).items() if values]
    return f"{text}; slower wherever compared: {listed(slower)}." if slower else f"{text}."


def _slower(every: Sequence[FormatSettings]) -> dict[str, list[str]]:
    """Return the values that are shown to be slower with each format, total and other value."""
    results = [result for one in every for result in one.results]
    found: dict[str, list[str]] = {}
    for key in _keys(every):
        values = dict.fromkeys(r.values[key] for r in results if key in r.values)
        found[key] = [
            value
            for value in values
            if all(r.standing == "slower" for r in results if r.values.get(key) == value)
        ]
    return found


def _no_matter(every: Sequence[FormatSettings], summary: Summary) -> str:
    keys = _keys(every)
    text = f"{listed(keys)} {'makes' if len(keys) == 1 else 'make'} no difference"
    return f"{text[0].upper()}{text[1:]} of more than {summary.margin:.0%}."


def _keys(every: Sequence[FormatSettings]) -> list[str]:
    return list(dict.fromkeys(key for one in every for key in one.keys))


def _values(best: _Best) -> str:
    """Name the best values of keys; where totals differ, those of each."""
    texts = {heading: _words(values) for heading, values in best.items() if values}
    if len(set(texts.values())) == 1 and len(texts) == len(best):
        return next(iter(texts.values()))
    return "; ".join(f"{text} to {verb_of(heading)}" for heading, text in texts.items())


def _words(values: Mapping[str, str]) -> str:
    return listed([f"{key} {value}" for key, value in values.items()])


def verb_of(heading: str) -> str:
    """Return the infinitive of a heading, such as ``read from the page cache``."""
    return heading.replace(",", " from the")


def _tables(
    summary: Summary, formats: Sequence[str], best: Mapping[str, _Best]
) -> Iterator[SettingsTable]:
    headings = [sweep.heading for sweep in summary.sweeps]
    if len(formats) > 1 and len({repr(one) for one in best.values()}) > 1:
        rows = [
            (format_title(name), *(_fastest(sweep, name) for sweep in summary.sweeps))
            for name in formats
        ]
        yield SettingsTable("Best settings (?: not decided)", tuple(headings), tuple(rows))
    apart = parameters_apart(summary.record)
    groups = list(dict.fromkeys(f.group for sweep in summary.sweeps for f in sweep.formats))
    for group in groups:
        layout = summary.groups[group][0].sample.layout
        where = f", layout {layout} {apart[group]}".rstrip() if len(groups) > 1 else ""
        for name in formats:
            found = [
                (sweep, one)
                for sweep in summary.sweeps
                for one in sweep.formats
                if (one.name, one.group) == (name, group) and one.keys
            ]
            if found:
                fastest = " / ".join(_fastest_time(sweep, one, summary) for sweep, one in found)
                title = f"{format_title(name)}{where}, times as long as its fastest ({fastest})"
                yield _table(title, {sweep.heading: one for sweep, one in found}, summary)


def _fastest_time(sweep: Sweep, one: FormatSettings, summary: Summary) -> str:
    """Return the time of the fastest settings, by which formats can be compared."""
    return seconds_text(summary.by_name[one.fastest.case].phases[sweep.total].seconds.median)


def _fastest(sweep: Sweep, name: str) -> str:
    """Return the fastest settings of a format, with a question mark at what is not decided.

    Values that are shown to be equally fast stand side by side.
    """
    agreed = _agreed(sweep, name)
    found = [one for one in sweep.formats if one.name == name and one.keys]
    open_ = any(rival.standing == "undecided" for one in found for rival in one.rivals)
    words = []
    for key in _keys(found):
        best = [r for one in found for r in ([one.fastest] if open_ else one.rivals)]
        values = dict.fromkeys(one.values.get(key, "–") for one in best)
        text = " or ".join(values) if len(values) <= _MOST_VALUES else f"any of {len(values)}"
        words.append(text + "?" * (open_ and key not in agreed))
    return ", ".join(words) or "–"


def _fastest_of(sweeps: Sequence[Sweep], name: str) -> str:
    """Return the fastest settings of a format in all totals; one text where they agree.

    Where they differ in nothing but marks, what is not decided in any total is marked.
    """
    texts = [_fastest(sweep, name) for sweep in sweeps]
    if len({text.replace("?", "") for text in texts}) == 1:
        words = zip(*(text.split(", ") for text in texts), strict=True)
        texts = [", ".join(max(each, key=len) for each in words)]
    return " / ".join(dict.fromkeys(texts))


def _table(title: str, found: Mapping[str, FormatSettings], summary: Summary) -> SettingsTable:
    """Return the table of a format: the values of one key beside those of all others."""
    one = next(iter(found.values()))
    cases = summary.by_name
    if len(one.keys) == 1:
        (key,) = one.keys
        sizes = [_ratio_text([cases[r.case]]) for r in one.results] if key == CODEC else []
        rows = [
            (
                f"{key} {result.values[key]}",
                *(_cell(f.results[i]) for f in found.values()),
                *sizes[i : i + 1],
            )
            for i, result in enumerate(one.results)
        ]
        columns = (*found, *([_SIZES] if sizes else []))
        return SettingsTable(title, columns, tuple(rows))
    across = CODEC if CODEC in one.keys else one.keys[-1]
    down = [key for key in one.keys if key != across]
    columns = tuple(dict.fromkeys(result.values[across] for result in one.results))
    cells: dict[str, dict[str, str]] = {}
    of_column: dict[str, list[CaseSummary]] = defaultdict(list)
    for i, result in enumerate(one.results):
        row = ", ".join(f"{key} {result.values[key]}" for key in down)
        text = " / ".join(_short(f.results[i]) for f in found.values())
        cells.setdefault(row, {})[result.values[across]] = text
        of_column[result.values[across]].append(cases[result.case])
    if across == CODEC:
        cells[_SIZES] = {value: _ratio_text(some) for value, some in of_column.items()}
    return SettingsTable(
        f"{title}: {' / '.join(found)}",
        tuple(f"{across} {value}" for value in columns),
        tuple((row, *(own.get(value, "–") for value in columns)) for row, own in cells.items()),
    )


#: Heading of the compression ratios.
_SIZES = "size of data / files"
_SIZES_TOLD = "Size of the data over that of the files"
#: Codecs whose ratio a line names.
_MOST_CODECS = 5


def _ratio_text(cases: Sequence[CaseSummary]) -> str:
    """Return the bytes of the arrays over those of the files, the smallest and the largest."""
    found = [case.nbytes / case.disk_bytes for case in cases if case.disk_bytes]
    ends = dict.fromkeys(number(end) for end in (min(found), max(found))) if found else ("–",)
    return " to ".join(ends)


def _compression(summary: Summary, sweeps: Sequence[Sweep]) -> str:
    """Say how many times as large as their files the arrays are, with each codec."""
    cases, found = summary.by_name, defaultdict(list)
    for one in (one for sweep in sweeps[:1] for one in sweep.formats):
        for result in one.results if CODEC in one.keys else ():
            found[result.values[CODEC]].append(cases[result.case])
    texts = {codec: _ratio_text(some) for codec, some in found.items()}
    if len(set(texts.values())) <= 1:
        return "".join(f"{_SIZES_TOLD}: {text} with every codec." for text in {*texts.values()})
    ordered = sorted(texts, key=lambda codec: (-_first_number(texts[codec]), codec))
    told = abridged([f"{codec} {texts[codec]}" for codec in ordered], _MOST_CODECS, ", ")
    return f"{_SIZES_TOLD}: {told}."


def _first_number(text: str) -> float:
    return float(text.split()[0]) if text != "–" else 0.0


def _cell(result: SettingResult) -> str:
    """Return how many times as long as the fastest settings some take, with the interval."""
    if result.standing == "fastest":
        return "1.00"
    if result.standing == "equal":
        return "same"
    text = number(result.ratio.value)
    mark = " slower" if result.standing == "slower" else " ?"
    return text + mark + (f" {interval(result.ratio)}" if result.ratio.is_bounded else "")


def _short(result: SettingResult) -> str:
    if result.standing == "equal":
        return "same"
    return number(result.ratio.value) + " ?" * (result.standing == "undecided")


def _effects(sweep: Sweep) -> str:
    """Say what each key changes in a total, and which changes most."""
    most = sweep.matters_most
    told = [_effect(effect, most=effect.key == most) for effect in sweep.effects]
    several = sum(effect.decided for effect in sweep.effects) > 1
    more = "; which of them more is not decided" if several and not most else ""
    return f"What matters to {verb_of(sweep.heading)}: {', '.join(told)}{more}."


def _effect(effect: KeyEffect, *, most: bool) -> str:
    if not effect.decided:
        return f"{effect.key} {'does not' if effect.equal else 'not decided'}"
    slower, faster = _ends(effect)
    return (
        f"{effect.key}{' most' if most else ''} ({slower} takes "
        f"{number(effect.ratio.value)} times as long as {faster} {interval(effect.ratio)})"
    )


def _ends(effect: KeyEffect) -> list[str]:
    """Return the slower and the faster value in words."""
    ends = [effect.slower, effect.faster]
    return list(map(format_title, ends)) if effect.key == FORMAT else ends


def _most(sweeps: Sequence[Sweep]) -> str:
    """Say which key is shown to matter most in each total."""
    texts = [f"to {verb_of(sweep.heading)}: {_most_in(sweep)}" for sweep in sweeps]
    return f"What matters most {'; '.join(texts)}."


def _most_in(sweep: Sweep) -> str:
    shown = [effect for effect in sweep.effects if effect.decided]
    first = next((e for e in shown if e.key == sweep.matters_most or len(sweep.effects) == 1), None)
    if first:
        return _effect(first, most=False)
    if shown:
        rivals = [e.key for e in sweep.effects if not e.equal]
        return f"{listed(rivals, 'or')} (not decided which)"
    return "nothing" if all(e.equal for e in sweep.effects) else "not decided"
