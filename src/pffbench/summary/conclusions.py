"""The verdict of a run in sentences, at most six."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from pffbench.experiment.estimate import SLOW_RATE
from pffbench.parallel.clock import RESOLUTION
from pffbench.phases import TOTALS
from pffbench.record.run_json import RunRecord
from pffbench.summary.again import command_again
from pffbench.summary.headline import Answer, ComparisonKey, Contender
from pffbench.summary.labels import (
    Measured,
    cases_apart,
    comparisons_apart,
    format_title,
    parameters_apart,
    unusual_sizes,
)
from pffbench.summary.rank_test import FEWEST, Ratio
from pffbench.summary.summary import CaseSummary, Summary
from pffbench.text import counted
from pffbench.units import duration_text

if TYPE_CHECKING:
    from pffbench.summary.sweep import SettingResult

#: Said of a comparison whose times are below resolution.
TOO_SHORT = f"too short to measure (under {RESOLUTION} × the overhead of measuring)"

VERBS = {"write_total": "Writing", "update_total": "Updating", "read_total": "Reading"}
#: End of writing, by the durability that the experiment requests: in a sentence, and as a heading.
_ENDS = {
    "close": ("until close", "write until close"),
    "flush": ("until the flush", "write until flush"),
    "sync": ("to the device", "write to disk"),
}
#: Source of reads, by the state of the page cache: the same.
_ORIGINS = {
    "warm": ("from the page cache", "read, page cache"),
    "shifted": ("from the page cache, written by another rank", "read, page cache"),
    "copied": ("from the page cache, a copy", "read, page cache"),
    "dropped": ("from the device, or a cache beyond this kernel", "read from disk"),
    "separate": ("by another job", "read, another job"),
    "unproved": ("with a page cache in an unproved state", "read, cache unproved"),
}
#: Above this number, comparisons are counted, not named.
_NAMED = 4
#: Above this number, formats whose settings are open are not named.
_FEW_FORMATS = 2
#: Above this number, missing repetitions are not reported.
MANY = 1000


def verdict_lines(summary: Summary) -> list[str]:
    """Return the fastest formats at writing and reading, undecided comparisons, and the validity.

    At most six lines. All of them follow from `Summary.answers` and `Summary.cold_answers`, and
    are supported by the tests of `pffbench.summary.inference`.
    """
    return [*sentences(summary), *undecided(summary), validity(summary)]


def sentences(summary: Summary) -> list[str]:
    """Return only the lines about speed."""
    if summary.absent and not summary.answers:
        return [f"Nothing is compared: {'; '.join(absent(summary))}."]
    lines = [line for line, _ in speed_lines(summary)]
    if lines and measured_in(summary, summary.answers).sizes:
        lines.append("Other sizes, chunks and numbers of ranks were not measured and may differ.")
    return lines


def speed_lines(summary: Summary) -> list[tuple[str, list[Answer]]]:
    """Return each line of the headline, with the answers that it is made of."""
    found = [(total, [a for a in summary.answers if a.total == total]) for total in VERBS]
    found.append(("read_total", list(summary.cold_answers)))
    lines = [(_sentence(summary, total, some), some) for total, some in found]
    return [(line, some) for line, some in lines if line]


def absent(summary: Summary) -> list[str]:
    """Return the formats missing from the comparison, with reasons."""
    return [
        f"{format_title(one.name)} takes no part"
        + (f" in {one.missed} of {one.planned} comparisons" if one.missed < one.planned else "")
        + f" ({one.why})"
        for one in summary.absent
    ]


def evidence(summary: Summary) -> str:
    """Return the validity of a run without a verdict on it, which the answer has already."""
    word, _, text = validity(summary).partition(": ")
    return f"{text[0].upper()}{text[1:]}" if word == "VALID" else f"{word}: {text}"


def validity(summary: Summary) -> str:
    """Return the validity of the run in a line that begins with the verdict and a colon."""
    record = summary.record
    if reason := record.objection:
        more = len(record.reasons) - 1
        also = f" (and {more} more reason{'s' if more > 1 else ''})" if more > 0 else ""
        return f"INVALID: {reason}{also}"
    if record.valid is None:
        return _without_verdict(record)
    word = "VALID" if record.status == "finished" else "INTERRUPTED"
    counts = [case.repetitions for case in summary.cases]
    text = f"{word}: every byte read was verified"
    if not counts:
        return text
    times = f"{min(counts)} to {max(counts)}" if min(counts) < max(counts) else f"{counts[0]}"
    plural = "s" if max(counts) > 1 else ""
    cases = counted(len(counts), "case")
    if out := record.without_time:
        cases = f"{len(counts)} of {len(counts) + out} cases fitted in the time"
    each = " each" if len(counts) > 1 else ""
    alone = "; one process without MPI" if without_mpi(record) else ""
    return f"{text}; {cases}, {times} repetition{plural}{each}{_duration(record)}{alone}"


def without_mpi(record: RunRecord) -> bool:
    """Whether a run was one process that had no MPI library."""
    return "missing" in (record.provenance.get("mpi_io") or {})


def _without_verdict(record: RunRecord) -> str:
    if record.status == "written":
        return "WRITTEN: nothing has been read and verified yet"
    if record.status == "interrupted":
        return "KILLED: repetitions are missing; pffbench run --resume goes on with them"
    return "NOT FINISHED: the run goes on, or was killed elsewhere; repetitions are missing"


def _duration(record: RunRecord) -> str:
    if record.finished is None or record.resumed:
        return ""
    seconds = _seconds_between(record.started, record.finished)
    return "" if seconds is None else f", {duration_text(seconds)}"


def _seconds_between(begin: str, end: str) -> float | None:
    try:
        return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()
    except (TypeError, ValueError):
        return None


def subject(summary: Summary, total: str) -> str:
    """Return the subject of a total in the headline, such as ``Writing (to the device)``."""
    found = [answer for answer in summary.answers if answer.total == total]
    return f"{VERBS[total]} ({origin_of(summary, found, total)})"


def _cold_subject(summary: Summary) -> str:
    """Return the subject of the extra cold reads, with the layout if they have only one."""
    found = summary.cold_answers
    layouts = {summary.record.cases[a.case]["parameters"]["layout"] for a in found}
    only = f", layout {layouts.pop()}" if len(layouts) == 1 else ""
    return f"{VERBS['read_total']} ({origin_of(summary, found, 'read_total')}{only})"


def measured_in(summary: Summary, found: Sequence[Answer]) -> Measured:
    """Return the sizes and chunks of comparisons."""
    names = {name for a in found for name in (a.case, *(o.case for o in a.others))}
    return Measured.of([summary.record.cases[name] for name in names])


def _sentence(summary: Summary, total: str, found: Sequence[Answer]) -> str | None:
    if not found:
        return None
    head = _cold_subject(summary) if found[0].extra else subject(summary, total)
    measured, ranks = measured_in(summary, found), summary.record.ranks
    if measured.sizes:
        on = f"{ranks} rank{'s' if ranks > 1 else ''}"
        head = f"{measured}, {on}, {head[0].lower()}{head[1:]}"
    long_enough = [answer for answer in found if not answer.too_short]
    if not long_enough:
        return f"{head}: {TOO_SHORT}; use larger arrays."
    names = comparison_names(summary, found if found[0].extra else summary.answers)
    clusters: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Answer]] = defaultdict(list)
    for answer in long_enough:
        clusters[answer.fastest, _open(answer)].append(answer)
    ordered = sorted(clusters.items(), key=lambda item: -len(item[1]))
    several = len(clusters) > 1
    first, *more = (_part(members, names, len(found), several, summary) for _, members in ordered)
    more = [re.sub("^not decided", "Not decided", text) for text in more]
    return ". ".join([f"{head}: {first}", *more]) + "."


def _open(answer: Answer) -> tuple[str, ...]:
    return tuple(o.name for o in answer.others if o.standing == "undecided")


def _part(
    members: Sequence[Answer],
    names: Mapping[ComparisonKey, str],
    count: int,
    several: bool,
    summary: Summary,
) -> str:
    """Return the fastest of comparisons with the same outcome, and the ratios of the others."""
    first = members[0]
    where = _among(members, names, count, several)
    label = contender_labels(summary)
    fastest = [label[name] for name in first.fastest]
    open_ = [o for answer in members for o in answer.others if o.standing == "undecided"]
    slower = [o for answer in members for o in answer.others if o.standing == "slower"]
    if open_:
        who = [*fastest, *dict.fromkeys(label[o.name] for o in open_)]
        text = f"not decided between {listed(who)}{where} ({_times(open_)})"
    elif len(fastest) > 1:
        text = f"{listed(fastest, 'and')} are equally fast within {summary.margin:.0%}{where}"
    else:
        text = f"{fastest[0]} is fastest{where}"
    by_name: dict[str, list[Contender]] = defaultdict(list)
    for other in slower:
        by_name[label[other.name]].append(other)
    told = [
        f"{name} takes {_times(some)}" + (" as long (medians)" if i == 0 else "")
        for i, (name, some) in enumerate(by_name.items())
    ]
    return "; ".join(filter(None, [text, ", ".join(told)]))


def contender_labels(summary: Summary) -> dict[str, str]:
    """Return labels of contenders: formats, or the differences of cases of one format."""
    cases = summary.by_name
    return {
        name: " ".join(
            filter(None, [format_title(case.sample.backend), case.sample.transfer, case.variant])
        )
        if (case := cases.get(name))
        else format_title(name)
        for answer in summary.all_answers
        for name in (answer.name, *(other.name for other in answer.others))
    }


def _times(others: Sequence[Contender]) -> str:
    """Format one ratio with its interval; of several comparisons, the smallest and the largest."""
    ratios = [other.ratio for other in others]
    text = f"{span([ratio.value for ratio in ratios])} times"
    if not all(ratio.is_bounded for ratio in ratios):
        return f"{text} (too few repetitions for an interval)"
    return f"{text} {interval(ratios[0])}" if len(ratios) == 1 else text


def bounds(ratio: Ratio) -> str:
    """Format the bounds of the interval of a ratio."""
    return f"{number(ratio.low)}–{number(ratio.high)}"


def interval(ratio: Ratio) -> str:
    """Format the interval of a ratio; brackets tell it apart from values of comparisons."""
    return f"[{bounds(ratio)}]"


def span(values: Sequence[float]) -> str:
    """Format the smallest and the largest of some ratios, such as ``1.11 to 1.44``."""
    return " to ".join(dict.fromkeys(number(end) for end in (min(values), max(values))))


def number(value: float) -> str:
    """Format a ratio with three digits, at most two decimals."""
    if not math.isfinite(value):
        return "∞" if value > 0 else "–"
    return f"{value:.2f}" if value < 10 else f"{value:.3g}"


def _among(
    members: Sequence[Answer], names: Mapping[ComparisonKey, str], count: int, several: bool
) -> str:
    """Return the names of the comparisons that a statement concerns."""
    if count == 1:
        return ""
    if not several and len(members) == count:
        return f" in all {count} comparisons"
    told = [names[answer.key] for answer in members]
    if len(told) > _NAMED or not all(told):
        return f" in {len(members)} of {count} comparisons"
    return f" with {listed(told, 'and')}"


def listed(names: Sequence[str], word: str = "and") -> str:
    """Join names, with a word before the last one."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def comparison_names(
    summary: Summary, found: Sequence[Answer] | None = None
) -> dict[ComparisonKey, str]:
    """Return names of comparisons by their differences; empty for a single one.

    Parameters
    ----------
    summary : Summary
        The run.
    found : sequence of Answer, optional
        The comparisons; those of the headline if not given.
    """
    answers = summary.answers if found is None else found
    keys = list(dict.fromkeys(answer.key for answer in answers))
    apart = comparisons_apart(summary.record)
    cases = cases_apart(summary.record)
    entries = {entry["group"]: entry["parameters"] for entry in summary.record.cases.values()}
    formats = [entry for entry in summary.record.cases.values() if not entry.get("raw")]
    measured = {key: Measured.of([e for e in formats if e["group"] == key.group]) for key in keys}
    sizes = unusual_sizes({key: one.sizes for key, one in measured.items()}, "{}")
    chunks = unusual_sizes({key: one.chunks for key, one in measured.items()}, "chunks of {}")
    words = {
        key: (
            entries[key.group]["workload"],
            f"layout {entries[key.group]['layout']}",
            sizes[key],
            chunks[key],
            apart.get(key.group, "").strip(),
            key.settings,
            "compressed" if key.compressed else "uncompressed",
            cases.get(key.same_case, ""),
        )
        for key in keys
    }
    telling = [i for i in range(8) if len({told[i] for told in words.values()}) > 1]
    names = {key: " ".join(told[i] for i in telling if told[i]) for key, told in words.items()}
    if len(set(names.values())) == len(names):
        return names
    more = parameters_apart(summary.record)
    return {key: f"{name} {more[key.group]}".strip() for key, name in names.items()}


def origin_of(summary: Summary, found: Sequence[Answer], total: str) -> str:
    """Return until when writing counts, or where reads come from."""
    cases = [summary.record.cases[answer.case]["parameters"] for answer in found]
    if total != "read_total":
        ends = {p["durability"] for p in cases}
        each = "as durably as each asks for"
        return _ENDS.get(ends.pop(), (each,))[0] if len(ends) == 1 else each
    states = {case.cache for case in cases_of(summary, found)}
    if len(states) > 1:
        return "mixed caches"
    return _ORIGINS.get(states.pop(), ("cache as asked for", ""))[0]


def column_heading(total: str, cases: Sequence[CaseSummary]) -> str:
    """Return the heading of a total, such as ``write to disk``."""
    if total == "write_total":
        durability = cases[0].parameters["durability"]
        return _ENDS.get(durability, ("", "write"))[1]
    if total == "update_total":
        return "update"
    states = {case.cache for case in cases}
    return _ORIGINS.get(states.pop(), _ORIGINS["unproved"])[1] if len(states) == 1 else "read"


def cases_of(summary: Summary, found: Sequence[Answer]) -> list[CaseSummary]:
    """Return the fastest cases of the contenders of comparisons."""
    wanted = {name for a in found for name in (a.case, *(o.case for o in a.others))}
    return [case for case in summary.cases if case.sample.case in wanted]


def undecided(summary: Summary) -> Iterator[str]:
    """Say what is open, and how many repetitions would decide it."""
    of = []
    every = [o for a in summary.all_answers if not a.too_short for o in a.others]
    if open_ := sum(other.standing == "undecided" for other in every):
        of.append(f"{open_} of {len(every)} comparisons")
    if formats := dict.fromkeys(format_title(name) for name, _ in _open_settings(summary)):
        who = f" of {listed(list(formats))}" if len(formats) <= _FEW_FORMATS else ""
        of.append(f"best settings{who}")
    if of:
        yield f"Open (?): {', '.join(of)}; {what_would_decide(summary)}."


#: What is said of reads from disk, for which a run makes fewer repetitions than for the others.
DECIDE_COLD = "measure reads from disk alone with --set cache=dropped"


def open_cold_reads(summary: Summary) -> int:
    """Return how many comparisons of reads from disk beside the headline are open."""
    found = [answer for answer in summary.cold_answers if not answer.too_short]
    return sum(other.standing == "undecided" for answer in found for other in answer.others)


def _open_pairs(summary: Summary) -> list[tuple[Answer, Contender]]:
    found = [a for a in summary.answers if not a.too_short]
    return [(a, other) for a in found for other in a.others if other.standing == "undecided"]


def _open_settings(summary: Summary) -> list[tuple[str, SettingResult]]:
    """Return the formats whose best settings are open, each with what may be among them."""
    every = [one for sweep in summary.sweeps for one in sweep.formats]
    return [(o.name, r) for o in every for r in o.rivals if r.standing == "undecided"]


def needed_repetitions(summary: Summary) -> int:
    """Return the repetitions that would probably decide what is open; 0 where nothing is."""
    needed = [other.needed for _, other in _open_pairs(summary)]
    needed += [result.needed for _, result in _open_settings(summary)]
    return max(FEWEST, *needed) if needed else 0


def what_would_decide(summary: Summary) -> str:
    """Return what would decide what is open, of formats and of settings."""
    if (most := most_repetitions(summary)) < FEWEST:
        return f"at least {FEWEST} repetitions are needed, and no case has more than {most}"
    needed, cold = needed_repetitions(summary), open_cold_reads(summary)
    if cold and not needed:
        return DECIDE_COLD
    if needed > MANY:
        return f"more than {MANY} repetitions would be needed, or larger arrays"
    more = _seconds_for(summary, needed)
    took = f" ({duration_text(more)} more)" if more else ""
    decide = "would decide"
    if cold:  # as short as the line of a narrow terminal needs it
        decide = f"decide {len(_open_pairs(summary))}"
        if _open_settings(summary):
            decide = "would decide all but reads from disk"
    return f"about {needed} repetitions{took} {decide}"


def most_repetitions(summary: Summary) -> int:
    """Return the largest number of repetitions that a case has."""
    return max((case.repetitions for case in summary.cases), default=0)


def command_to_decide(summary: Summary, needed: int) -> str:
    """Return the command of a run with so many repetitions; empty for more than `MANY`."""
    if not 0 < needed <= MANY:
        return ""
    experiment, changes = summary.record.experiment, {}
    budget = experiment.get("time_budget")
    # With ``auto`` a run goes on for as long as the headline is open, and for nothing else.
    goes_on = bool(_open_pairs(summary)) and not _open_settings(summary)
    more = needed > (experiment.get("max_repetitions") or 0)
    if experiment.get("repetitions") != "auto" or not goes_on or not (more or budget):
        changes["repetitions"] = f"{needed}"
    elif more:
        changes["max_repetitions"] = f"{needed}"
    if budget:
        passed = _seconds_of(summary.record) or budget
        enough = max(budget, _SPARE * (passed + _seconds_for(summary, needed)))
        changes["time_budget"] = f"{10 * math.ceil(enough / 10)}"
    return command_again(summary.record, changes)


#: Bytes of arrays whose time is mostly not that of moving them.
_SMALL = 2**20
#: Time of a longer run over what is estimated.
_SPARE = 1.2


def _seconds_of(record: RunRecord) -> float:
    """Return the duration of a run; 0 where it is not known."""
    if record.finished is None or record.resumed:
        return 0.0
    return _seconds_between(record.started, record.finished) or 0.0


def _seconds_for(summary: Summary, needed: int) -> float:
    """Estimate the time of the missing repetitions from that of the run; 0 if it is not known."""
    done = sum(case.repetitions + 1 for case in summary.cases)
    known = {case.sample.case: case.repetitions for case in summary.cases}
    going = {name for a, other in _open_pairs(summary) for name in (a.case, *other.open_cases)}
    if _open_settings(summary) or not going:
        going = set(known)
    missing = sum(max(0, needed - count) for name, count in known.items() if name in going)
    return _seconds_of(summary.record) / done * missing if done else 0.0


def seconds_again(summary: Summary, repetitions: int = 0, factor: int = 1) -> float:
    """Estimate the time of the run measured again; 0 if that of the whole run is not known.

    Parameters
    ----------
    summary : Summary
        The run.
    repetitions : int
        Repetitions of each case, if more than it has.
    factor : int
        How many times as long the timed operations take, or as many bytes they move. What surrounds
        them stays as it is.
    """
    record = summary.record
    took = _seconds_of(record) if record.status == "finished" else 0.0
    longer = sum(
        _longer(case, case.phases[total].seconds.median, factor) * (case.repetitions + 1)
        for case in summary.cases
        for total in TOTALS
        if total in case.phases
    )
    more = (repetitions + 1) / (most_repetitions(summary) + 1)
    return max(1.0, more) * (took + longer) if took else 0.0


def _longer(case: CaseSummary, seconds: float, factor: int) -> float:
    """Return how much longer an operation takes with that many times the bytes.

    Small arrays take a time that hardly depends on their bytes, so 2000 times as many do not take
    2000 times as long, but what they take on the slow machine of a plan.
    """
    longer = (factor - 1) * seconds
    if not 0 < case.nbytes < _SMALL:
        return longer
    return min(longer, factor * case.nbytes / SLOW_RATE)
