"""Joining several runs whose cases need different environments.

Libraries that cannot be installed together are measured by separate runs, one after the other.
Their cases never share a block, so the common part of a run's cases, such as the load of its
machine, does not cancel between runs, and the intervals of ratios are wider. Cases in several runs
are controls: those of the first run are shown, and the times of the others reveal drift.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from msgspec.structs import replace

from pffbench.errors import UserError
from pffbench.record.run_json import RunRecord
from pffbench.summary.dependence import variance_inflation
from pffbench.summary.headline import comparison_key
from pffbench.summary.labels import variants_of
from pffbench.summary.phases import PhaseSummary
from pffbench.summary.rank_test import Ratio, fastest_of, ratio_of_times
from pffbench.summary.summary import CaseSummary, Summary

#: Offset of block numbers: repetitions of the second run begin here, and so on.
_APART = 10**6
#: Properties equal in all runs, in addition to the ranks: the computation, the repeated study.
_ALIKE = ("seed", "study")


def joined(runs: Sequence[tuple[str | Path, Summary]]) -> Summary:
    """Join runs whose cases differ, except for controls.

    Parameters
    ----------
    runs : sequence of (path, Summary)
        Results directories and their summaries. Name, experiment, machine and other unique
        entries come from the first one.

    Returns
    -------
    Summary
        All cases, each with the directory of its run. Ratios to the best case are recomputed.

    Raises
    ------
    UserError
        There is only one run, or they do not match.
    """
    if len(runs) < 2:
        raise UserError("only one run was given to be joined; give two or more")
    _refuse(runs)
    record = _record(runs)
    groups: dict[str, list[CaseSummary]] = {}
    known: dict[str, CaseSummary] = {}
    for number, (directory, summary) in enumerate(runs):
        controls = [(known[c.sample.case], c) for c in summary.cases if c.sample.case in known]
        record.remarks.extend(_drift(Path(directory).name, controls))
        for group, cases in summary.groups.items():
            new = [case for case in cases if case.sample.case not in known]
            own = [_of_run(case, str(directory), number * _APART) for case in new]
            if own:
                groups.setdefault(group, []).extend(own)
        known |= {c.sample.case: c for c in summary.cases if c.sample.case not in known}
    gaps = [f"{Path(place).name}: {gap}" for place, summary in runs for gap in summary.gaps]
    return Summary(
        record,
        {group: _compared(cases, record) for group, cases in groups.items()},
        tuple(gaps),
    )


def repetition(block: int) -> int:
    """Return the number of a repetition in its own run."""
    return block % _APART


def _refuse(runs: Sequence[tuple[str | Path, Summary]]) -> None:
    (first, base), *others = runs
    known = set(base.record.cases)
    for place, summary in others:
        a, b = base.record, summary.record
        if a.ranks != b.ranks:
            raise UserError(
                f"{first} has {a.ranks} ranks and {place} has {b.ranks}: they cannot be joined"
            )
        # Results of another program have neither a seed nor a study.
        for key in () if a.imported or b.imported else _ALIKE:
            one, other = a.experiment.get(key), b.experiment.get(key)
            if one != other:
                raise UserError(
                    f"{first} and {place} differ in {key} ({one}, {other}): they cannot be joined"
                )
        _refuse_other_numbers((first, a), (place, b))
        if not set(b.cases) - known:
            raise UserError(
                f"{place} has no case that the runs before it do not have: pffbench compare "
                "compares the same cases"
            )
        known |= set(b.cases)


def _refuse_other_numbers(
    one: tuple[str | Path, RunRecord], other: tuple[str | Path, RunRecord]
) -> None:
    """Reject runs in which cases of one comparison do not have equally many datasets."""
    numbers = [
        {
            entry["group"]: number
            for entry in record.cases.values()
            if (number := entry["parameters"].get("calibrated_datasets")) is not None
        }
        for _, record in (one, other)
    ]
    for group in numbers[0].keys() & numbers[1].keys():
        a, b = (each[group] for each in numbers)
        if a != b:
            raise UserError(
                f"{one[0]} has {a} datasets (datasets: auto) and {other[0]} has {b}: they cannot "
                f"be joined; run the second with --set calibrated_datasets={a}"
            )


def _record(runs: Sequence[tuple[str | Path, Summary]]) -> RunRecord:
    records = [(Path(place).name, summary.record) for place, summary in runs]
    _, first = records[0]
    names = ", ".join(name for name, _ in records)
    remark = (
        f"joined: {names}, which ran one after the other; where ratios and orders are of cases of "
        "two runs, what changed on the machine between the runs is in them"
    )
    unfinished = [record.status for _, record in records if record.status != "finished"]
    verdicts = [record.valid for _, record in records]
    imported = [f"{r.imported} (run {name})" for name, r in records if r.imported]
    return replace(
        first,
        imported=" and ".join(imported) or None,
        cases={name: e for _, record in reversed(records) for name, e in record.cases.items()},
        left_out=[entry for _, record in records for entry in record.left_out],
        # What one environment lacks another one may have measured.
        limits=[text for text in first.limits if all(text in r.limits for _, r in records)],
        status=unfinished[0] if unfinished else first.status,
        valid=False if False in verdicts else None if None in verdicts else True,
        reasons=[f"{name}: {text}" for name, record in records for text in record.reasons],
        remarks=[remark, *dict.fromkeys(text for _, r in records for text in r.remarks)],
        provenance=first.provenance | {"software": _software(records)},
    )


def _drift(name: str, controls: Sequence[tuple[CaseSummary, CaseSummary]]) -> Iterator[str]:
    """Report how much longer a run took for the cases of an earlier one, by medians."""
    told = []
    for phase, word in (("write_total", "writing"), ("read_total", "reading")):
        ratios = [
            again.phases[phase].seconds.median / first.phases[phase].seconds.median
            for first, again in controls
            if phase in first.phases
            and phase in again.phases
            and first.phases[phase].seconds.median > 0
        ]
        if ratios:
            told.append(f"{word} {median(ratios):.2g} ({min(ratios):.2g}–{max(ratios):.2g})")
    if told:
        yield (
            f"control: of {len(controls)} case(s) that an earlier run has too, {name} took so many "
            f"times as long: {', '.join(told)}; far from 1, its numbers and those of the earlier "
            "run were made under different load"
        )


def _software(records: Sequence[tuple[str, RunRecord]]) -> dict[str, Any]:
    """Return the software of the first run, with differing versions of libraries in others."""
    software: dict[str, Any] = dict(records[0][1].provenance.get("software", {}))
    libraries: dict[str, Any] = dict(software.get("libraries", {}))
    for name, record in records[1:]:
        own: Mapping[str, Any] = record.provenance.get("software", {}).get("libraries", {})
        for library, facts in own.items():
            known = libraries.setdefault(library, facts)
            if _version(facts) != _version(known):
                libraries[f"{library} ({name})"] = facts
    return software | {"libraries": libraries}


def _version(facts: Any) -> Any:
    return facts.get("version") if isinstance(facts, Mapping) else facts


def _of_run(case: CaseSummary, directory: str, offset: int) -> CaseSummary:
    phases = {
        name: replace(phase, by_block={b + offset: s for b, s in phase.by_block.items()})
        for name, phase in case.phases.items()
    }
    return replace(case, run=directory, phases=phases)


def _compared(cases: Sequence[CaseSummary], record: RunRecord) -> list[CaseSummary]:
    """Compare all cases with the best of all runs, and renew the labels within a backend."""
    if len({case.run for case in cases}) == 1:
        return list(cases)
    variants = variants_of([case.sample.case for case in cases], record)
    keys = {case.sample.case: comparison_key(record.cases[case.sample.case]) for case in cases}
    best = {
        (key, name): _best([c for c in cases if keys[c.sample.case] == key], name)
        for key in set(keys.values())
        for name in _phases(cases)
    }
    return [
        replace(
            case,
            variant=variants[case.sample.case],
            phases={
                name: _beside(case, name, best[keys[case.sample.case], name])
                for name in case.phases
            },
        )
        for case in cases
    ]


def _phases(cases: Iterable[CaseSummary]) -> list[str]:
    return list(dict.fromkeys(name for case in cases for name in case.phases))


def _best(cases: Sequence[CaseSummary], phase: str) -> CaseSummary | None:
    found = {
        case.sample.case: case
        for case in cases
        if not case.raw and not case.invalid and phase in case.phases
    }
    if len(found) < 2:
        return None
    return found[fastest_of({n: c.phases[phase].by_block for n, c in found.items()})]


def _beside(case: CaseSummary, name: str, best: CaseSummary | None) -> PhaseSummary:
    """Return a phase with its ratio to the best case; unchanged if that is of its own run."""
    phase = case.phases[name]
    if case.raw or case.invalid or best is None:
        return phase
    if best is case:  # the only case of a run has no ratio there
        return replace(phase, ratio=Ratio(len(phase.by_block), 1.0, 1.0, 1.0, 1.0))
    if best.run == case.run:
        return phase
    mine, other = phase.by_block, best.phases[name].by_block
    # The load of two runs differs, so the common part of a run's cases does not cancel.
    n = min(len(mine), len(other))
    inflation = variance_inflation([[mine], [other]], n, shared_cancels=False)
    return replace(phase, ratio=ratio_of_times(mine, other, inflation=inflation))
