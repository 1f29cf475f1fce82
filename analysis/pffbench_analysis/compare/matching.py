"""Matching of the cases of two runs, and reasons for cases without a counterpart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pffbench.errors import UserError
from pffbench.grouping import grouped
from pffbench.text import value_text
from pffbench_analysis.compare.comparison import CaseName, Lone, Side
from pffbench_analysis.runs import ABSENT

_Told = dict[str, str]


def match(
    base: Side, new: Side, across: Sequence[str] = ()
) -> tuple[list[CaseName], list[Lone], list[Lone]]:
    """Find the cases that two sides share: those with equal parameters and options.

    Parameters
    ----------
    base, new : Side
        The runs.
    across : sequence of str
        Parameters or options that may differ: the subject of the comparison.

    Returns
    -------
    matched : list of CaseName
        Cases of both runs.
    only_base, only_new : list of Lone
        Cases of one run.

    Raises
    ------
    UserError
        No case has a parameter or option that `across` names.
    """
    mine, others = _told(base), _told(new)
    beside_formats = not only_raw(base, new)
    _check(across, (*mine.values(), *others.values()))
    by_key, theirs = (_by_key(cases, across) for cases in (mine, others))
    labels, labels_new = _labels(mine), _labels(others)
    pairs = {
        names[0]: theirs[key][0]
        for key, names in by_key.items()
        if len(names) == len(theirs.get(key, [])) == 1
    }
    matched = [_name(base, new, *pair, labels[pair[0]], beside_formats) for pair in pairs.items()]
    left = {name: told for name, told in mine.items() if name not in pairs}
    right = {name: told for name, told in others.items() if name not in pairs.values()}
    only_base = [Lone(n, labels[n], _why(n, told, right, new, across)) for n, told in left.items()]
    only_new = [
        Lone(n, labels_new[n], _why(n, told, left, base, across)) for n, told in right.items()
    ]
    return matched, only_base, only_new


def only_raw(*runs: Side) -> bool:
    """Whether no run has a case of a format, so that raw transfers are compared."""
    return all(entry.get("raw") for run in runs for entry in run.record.cases.values())


def _told(run: Side) -> dict[str, _Told]:
    """Return parameters and options of all planned cases as text, options by their backend."""
    return {
        name: _texts(entry["parameters"])
        | _texts(entry["options"], f"{entry['parameters']['backend']}.")
        for name, entry in run.record.cases.items()
    }


def _texts(values: Mapping[str, Any], prefix: str = "") -> _Told:
    return {f"{prefix}{key}": value_text(v) for key, v in values.items() if v is not None}


def _check(across: Sequence[str], cases: Iterable[_Told]) -> None:
    known = {key for told in cases for key in told}
    for key in across:
        if key not in known:
            raise UserError(
                f"--across {key}: no case has such a parameter or option; there are "
                f"{', '.join(sorted(known))}"
            )


def _by_key(cases: Mapping[str, _Told], across: Sequence[str]) -> dict[object, list[str]]:
    """Return the names of the cases of each work."""
    return grouped(
        (frozenset((k, v) for k, v in told.items() if k not in across), name)
        for name, told in cases.items()
    )


#: Parameters in every label.
_READABLE = ("backend", "workload", "layout", "transfer", "settings")


def _labels(cases: Mapping[str, _Told]) -> dict[str, str]:
    """Name cases by backend and by the parameters that distinguish them within their run.

    Common values stand without the parameter's name; a further parameter is named where cases
    equal in all common values differ in it.
    """
    naming = [key for key in _READABLE if key == "backend" or _varies(cases, key)]
    alike = grouped((tuple(told.get(k, "") for k in naming), name) for name, told in cases.items())
    labels = {}
    for told, names in alike.items():
        keys = dict.fromkeys(key for name in names for key in cases[name])
        telling = [k for k in keys if _varies({name: cases[name] for name in names}, k)]
        for name in names:
            more = (f"{k.split('.')[-1]}={cases[name].get(k, ABSENT)}" for k in telling)
            labels[name] = " ".join([*told, *more])
    return labels


def _varies(cases: Mapping[str, _Told], key: str) -> bool:
    return len({told.get(key) for told in cases.values()}) > 1


def _name(
    run: Side, other: Side, base: str, new: str, label: str, beside_formats: bool
) -> CaseName:
    entry, there = run.record.cases[base], other.record.cases[new]
    words = {key: str(entry["parameters"].get(key, "")) for key in _READABLE}
    control = beside_formats and bool(entry.get("raw") and there.get("raw"))
    return CaseName(base=base, new=new, label=label, control=control, **words)


def _why(
    name: str, told: _Told, others: Mapping[str, _Told], other: Side, across: Sequence[str]
) -> str:
    """Return the differences of a case from the nearest one without a counterpart."""
    for entry in other.record.left_out:
        if entry["case"] == name:
            return f"left out in the other run: {entry['reason']}"
    near = [o for o in others.values() if all(o.get(k) == told.get(k) for k in _READABLE[:2])]
    if not near:
        return "not in the other run"
    nearest = min(near, key=lambda o: len(_different(told, o)))
    keys = [key for key in _different(told, nearest) if key not in across]
    if not keys:
        return f"several cases fit when {', '.join(across)} may differ"
    words = (f"{k} {told.get(k, ABSENT)}, there {nearest.get(k, ABSENT)}" for k in keys)
    return f"different settings: {'; '.join(words)}"


def _different(a: _Told, b: _Told) -> list[str]:
    return [key for key in dict.fromkeys((*a, *b)) if a.get(key) != b.get(key)]
