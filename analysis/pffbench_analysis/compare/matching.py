"""Matching of the cases of two runs, and reasons for cases without a counterpart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pffbench.backends.registry import backend_class
from pffbench.case import defaults_of_added
from pffbench.errors import UserError
from pffbench.text import value_text
from pffbench.workloads.registry import workload
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
    by_key, theirs = _by_key(mine, across), _by_key(others, across)
    labels, labels_new = _labels(mine), _labels(others)
    matched = [
        _name(base, new, names[0], theirs[key][0], labels[names[0]], beside_formats)
        for key, names in by_key.items()
        if len(names) == len(theirs.get(key, [])) == 1
    ]
    left = _without(mine, {case.base for case in matched})
    right = _without(others, {case.new for case in matched})
    only_base = [Lone(n, labels[n], _why(n, told, right, new, across)) for n, told in left.items()]
    only_new = [
        Lone(n, labels_new[n], _why(n, told, left, base, across)) for n, told in right.items()
    ]
    return matched, only_base, only_new


def only_raw(*runs: Side) -> bool:
    """Whether no run has a case of a format, so that raw transfers are compared."""
    return all(entry.get("raw") for run in runs for entry in run.record.cases.values())


def _without(cases: Mapping[str, _Told], taken: set[str]) -> dict[str, _Told]:
    return {name: told for name, told in cases.items() if name not in taken}


def _told(run: Side) -> dict[str, _Told]:
    """Return parameters and options of all planned cases as text, options by their backend."""
    libraries = run.record.provenance.get("software", {}).get("libraries", {})
    hdf5 = str((libraries.get("h5py") or {}).get("hdf5") or "1")
    return {
        name: _settings(entry, old_hdf5=hdf5.startswith("1"))
        for name, entry in run.record.cases.items()
    }


#: What no `libver` means: earlier versions recorded ``earliest`` in place of nothing.
_LIBVER = {"matched": "v108", "defaults": "earliest"}


def _settings(entry: Mapping[str, Any], *, old_hdf5: bool) -> _Told:
    """Return parameters and options of a case; those its version lacked have their defaults.

    Parameters
    ----------
    entry : dict
        Its entry in `run.json`.
    old_hdf5 : bool
        Whether it ran with an HDF5 before 2.0, which wrote the earliest format by default.
    """
    parameters, options = entry["parameters"], entry["options"]
    backend = parameters["backend"]
    with suppress(KeyError):  # of a package that is not installed here
        kind = workload(parameters["workload"]).parameters_type
        parameters = defaults_of_added(kind) | parameters
    with suppress(KeyError):
        options = defaults_of_added(backend_class(backend).options_type) | options
    settings = parameters.get("settings")
    if "libver" in options and options["libver"] is None and (old_hdf5 or settings == "matched"):
        options = {**options, "libver": _LIBVER.get(str(settings))}
    return _texts(parameters) | _texts(options, f"{backend}.")


def _texts(values: Mapping[str, Any], prefix: str = "") -> _Told:
    given = {key: value for key, value in values.items() if value is not None}
    return {f"{prefix}{key}": value_text(value) for key, value in given.items()}


def _check(across: Sequence[str], cases: Iterable[_Told]) -> None:
    known = {key for told in cases for key in told}
    for key in across:
        if key not in known:
            raise UserError(
                f"--across {key}: no case has such a parameter or option; there are "
                f"{', '.join(sorted(known))}"
            )


def _by_key(cases: Mapping[str, _Told], across: Sequence[str]) -> dict[frozenset[Any], list[str]]:
    found: dict[frozenset[Any], list[str]] = defaultdict(list)
    for name, told in cases.items():
        found[frozenset((k, v) for k, v in told.items() if k not in across)].append(name)
    return found


#: Parameters in every label.
_READABLE = ("backend", "workload", "layout", "transfer", "settings")


def _labels(cases: Mapping[str, _Told]) -> dict[str, str]:
    """Name cases by backend and by the parameters that distinguish them within their run.

    Common values stand without the parameter's name; a further parameter is named where cases
    equal in all common values differ in it.
    """
    naming = [key for key in _READABLE if key == "backend" or _varies(cases, key)]
    words = {name: tuple(told.get(key, "") for key in naming) for name, told in cases.items()}
    alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, told in words.items():
        alike[told].append(name)
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
