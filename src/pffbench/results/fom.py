"""Figures of merit: one line a number, for ReFrame, Ramble and other harnesses."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pffbench.results.record import RunRecord
from pffbench.results.summary import Summary
from pffbench.storage.regular_files import write_replacing

_MIB = 2**20
#: The words that every name begins with.
_WORDS = ("backend", "workload", "layout", "transfer", "settings")


def fom_lines(summary: Summary) -> Iterator[str]:
    """Yield lines ``FOM name=value unit``: the verdict first, then medians of all phases.

    Names hold neither spaces nor ``=``. They follow from the experiment alone, so they are the
    same in every run of it, whatever happened there.
    """
    record = summary.record
    finished = record.status == "finished"
    yield _line("valid", float(finished and record.valid is True), "bool")
    yield _line("finished", float(finished), "bool")
    names = fom_names(record)
    for case in summary.cases:
        if case.invalid:
            continue
        name = names[case.sample.case]
        for phase in case.phases.values():
            yield _line(f"{name}.{phase.phase}.time", phase.seconds.median, "s")
            if phase.rate is not None:
                yield _line(f"{name}.{phase.phase}.rate", phase.rate / _MIB, "MiB/s")


def write_fom(summary: Summary, directory: str | Path) -> Path:
    """Write the lines into `fom.txt` of a results directory and return its path."""
    path = Path(directory) / "fom.txt"
    write_replacing(path, "".join(f"{line}\n" for line in fom_lines(summary)))
    return path


def fom_names(record: RunRecord) -> dict[str, str]:
    """Name the planned cases for programs.

    A name is backend, workload, layout, transfer and settings, joined by dots. Cases that are
    alike in these get one more word: the parameters and options in which they differ.
    """
    told = {
        name: {**entry["parameters"], **entry["options"]} for name, entry in record.cases.items()
    }
    alike: dict[str, list[str]] = defaultdict(list)
    for name, entry in told.items():
        alike[".".join(_word(entry[key]) for key in _WORDS)].append(name)
    found = {}
    for stem, names in alike.items():
        for name in names:
            variant = _variant(told[name], [told[other] for other in names])
            found[name] = f"{stem}.{variant}" if variant else stem
    return _unique(found)


def _variant(mine: Mapping[str, Any], all_: list[dict[str, Any]]) -> str:
    differing = [key for key in mine if any(o.get(key) != mine[key] for o in all_)]
    return "_".join(f"{key}-{_word(mine[key])}" for key in differing)


def _word(value: object) -> str:
    """Return a value without what separates the parts of a line or of a name."""
    text = "x".join(map(str, value)) if isinstance(value, list) else str(value)
    return re.sub(r"[^A-Za-z0-9_+-]+", "-", text)


def _unique(names: Mapping[str, str]) -> dict[str, str]:
    """Tell names that are still alike apart by the digest in the name of the case."""
    taken = list(names.values())
    return {
        case: name if taken.count(name) == 1 else f"{name}_{_word(case.rpartition('.')[2])}"
        for case, name in names.items()
    }


def _line(name: str, value: float, unit: str) -> str:
    return f"FOM {name}={value:.9g} {unit}"
