"""An experiment from the structure of a user's file: shapes, types, chunks, filters and sizes.

Arrays that are stored alike are one entry of the experiment. The entry with most bytes answers the
questions that users ask of a file: which format, chunks and codec, and one file or many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from pffbench.data.contents import MOST_NAMES
from pffbench.draft.entry import Entry, list_names
from pffbench.draft.structure import Description, FileArray, structure_of
from pffbench.errors import UserError
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import from_data
from pffbench.experiment.plan import Plan
from pffbench.text import counted, has_controls, one_line, plain_name

#: Most bytes of an entry: in a run of the time budget each case moves them ten times or more.
_MOST_BYTES, _TIME_BUDGET = 8 * 2**20, "240 s"
#: Most entries, and the part of the bytes of the largest one that another one has at least.
_MOST_ENTRIES, _LEAST_PART = 3, 0.01
#: Most files of a case, and calls of a rank.
_MOST_FILES = 10_000


class Draft(msgspec.Struct, frozen=True):
    """An experiment as text, its plan, and what it does not carry over from the file."""

    text: str
    entries: tuple[str, ...]
    notes: tuple[str, ...]
    plan: Plan


def draft_experiment(path: Path, ranks: int = 2) -> Draft:
    """Make an experiment of the arrays of a file.

    Parameters
    ----------
    path : Path
        The file.
    ranks : int
        Number of ranks that the experiment is planned for before it is returned.

    Raises
    ------
    UserError
        The file cannot be read or named in an experiment, or holds no array that an experiment can
        have.
    """
    if has_controls(str(path)):
        raise UserError(
            f"{one_line(str(path))}: an experiment cannot name a path with control characters or "
            "bytes that are not UTF-8; make a symbolic link with another name"
        )
    found = structure_of(path)
    alike, notes = _group(path, found)
    entries, more = _choose(path, alike)
    notes += [*more, *_notes_on_properties(found, entries)]
    if len(found) > MOST_NAMES:
        notes.append(f"only the first {len(found)} arrays of the file were looked at")
    notes += [note for entry in entries for note in entry.notes()]
    experiment = _experiment(path, entries)
    plan = _plan(path, experiment, ranks)
    left_out = Counter(reason for _, reason in plan.left_out)
    notes += [f"{counted(n, 'case')} left out: {reason}" for reason, n in left_out.items()]
    notes.append("attributes, dimensions and groups are not part of an experiment")
    text = _write_yaml(path, experiment, notes)
    swept, *others = entries
    listed = (str(swept), f"  compared: {swept.sweeps}", *map(str, others))
    return Draft(text, listed, tuple(notes), plan)


def _group(
    path: Path, found: Mapping[str, Description]
) -> tuple[dict[FileArray, list[str]], list[str]]:
    """Return the names of arrays that are stored alike, and notes on those left out."""
    alike: dict[FileArray, list[str]] = {}
    lacking: dict[str, list[str]] = {}
    for name, (stored, _) in found.items():
        if reason := stored.lacking or ("a name with control characters" * has_controls(name)):
            lacking.setdefault(reason, []).append(name)
        else:
            alike.setdefault(stored, []).append(name)
    notes = [f"not carried over ({why}): {list_names(names)}" for why, names in lacking.items()]
    if not alike:
        raise UserError("; ".join([f"{path}: holds no array for an experiment", *notes]))
    return alike, notes


def _choose(path: Path, alike: Mapping[FileArray, list[str]]) -> tuple[list[Entry], list[str]]:
    """Return the entries of the kinds of arrays with most bytes, and notes on the others."""
    size = {stored: stored.nbytes * len(names) for stored, names in alike.items()}
    ordered = sorted(alike, key=lambda stored: -size[stored])
    least = _LEAST_PART * size[ordered[0]]
    small = [stored for stored in ordered if size[stored] < least]
    large = [stored for stored in ordered if size[stored] >= least]
    reasons = {
        f"left out, since {_MOST_ENTRIES} kinds of arrays are measured": large[_MOST_ENTRIES:],
        f"left out, under {_LEAST_PART:.0%} of the bytes of the largest": small,
    }
    notes = [
        f"{reason}: {list_names([name for stored in some for name in alike[stored]])}"
        for reason, some in reasons.items()
        if some
    ]
    entries = [
        Entry(path, stored, alike[stored], _MOST_BYTES, swept=number == 0)
        for number, stored in enumerate(large[:_MOST_ENTRIES])
    ]
    return entries, notes


def _notes_on_properties(found: Mapping[str, Description], entries: Sequence[Entry]) -> list[str]:
    """Return what arrays of the entries have in the file that no key of an experiment has."""
    names: dict[str, list[str]] = {}
    for name in (name for entry in entries for name in entry.names):
        for text in found[name].properties:
            names.setdefault(text, []).append(name)
    return [f"{list_names(some)}: {text}" for text, some in names.items()]


def _experiment(path: Path, entries: Sequence[Entry]) -> dict[str, Any]:
    return {
        "name": plain_name(path.name.partition(".")[0]) or "file",
        "question": "Which format, chunks, codec and number of files suit arrays as in "
        f"{one_line(path.name, 80)}?",
        "time_budget": _TIME_BUDGET,
        "unsupported": "skip",
        "common": {"workload": "hyperslab", "durability": "sync"},
        "cases": [entry.keys() for entry in entries],
    }


def _plan(path: Path, experiment: dict[str, Any], ranks: int) -> Plan:
    """Plan the experiment, so that nothing is written that cannot be run.

    Raises
    ------
    UserError
        No experiment can be made of the file.
    """
    try:
        plan = make_plan(from_data(experiment, str(path)), ranks, as_installed=False)
    except UserError as error:
        reason = str(error).removeprefix(f"{path}: ")
        raise UserError(f"{path}: no experiment can be made of its arrays ({reason})") from None
    most = max(plan.costs[case.id].files for case in plan.cases)
    if most > _MOST_FILES:
        raise UserError(f"{path}: an experiment of its arrays would need {most} files in a case")
    return plan


def _write_yaml(path: Path, experiment: dict[str, Any], notes: Sequence[str]) -> str:
    """Return the experiment as YAML, with the notes as its first lines."""
    head = "".join(
        f"# {note}\n" for note in (f"Made by pffbench init {one_line(str(path))}", *notes)
    )
    return head + yaml.dump(
        experiment, Dumper=yaml.SafeDumper, sort_keys=False, allow_unicode=True, width=100,
        default_flow_style=None,
    )  # fmt: skip
