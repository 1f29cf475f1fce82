"""Differences between a study and a run: a table of texts, filled in with facts of the run."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from pffbench.summary.summary import CaseSummary, Summary

#: Values of the fields of a text, such as ``{ranks}``.
Fields = Mapping[str, object]


@dataclass(frozen=True)
class Reason:
    """A difference between study and run that may affect numbers.

    Parameters
    ----------
    about : str
        Subject of the difference.
    there, here : str
        As the study had it, and as the run has it.
    bears_on : str
        Affected numbers, and the direction where known.
    """

    about: str
    there: str
    here: str
    bears_on: str


def reasons_of(
    study: str,
    summary: Summary,
    cases: Iterable[CaseSummary],
    rows: Mapping[str, Sequence[Fields]],
    libraries: Sequence[str] = (),
) -> list[Reason]:
    """Return the differences between a study and a run, in the order of `data/reasons.csv`.

    The table's texts have fields for facts of the run (``{ranks}``, ``{nodes}``,
    ``{repetitions}``, ``{machine}``, ``{filesystem}``, ``{versions}``), and others for what only
    the study's matcher knows.

    Parameters
    ----------
    study : str
        Name of the study.
    summary : Summary
        The run.
    cases : iterable of CaseSummary
        Its cases that are compared.
    rows : mapping of str to sequence of mapping
        For a key of the table the fields of each of its rows: an empty sequence leaves it out. A
        key that is not here has one row; ``processes`` has none on one rank.
    libraries : sequence of str
        Libraries whose versions are named; by default all.
    """
    record = summary.record
    libraries_here = record.provenance.get("software", {}).get("libraries", {})
    facts: Fields = {
        "ranks": record.ranks,
        "nodes": len(set(record.topology.get("nodes", [0]))),
        "repetitions": "–".join(
            map(str, sorted({p.seconds.n for case in cases for p in case.phases.values()}))
        ),
        "machine": _machine(record.provenance),
        "filesystem": record.provenance.get("filesystem", {}).get("type") or "not recorded",
        "versions": ", ".join(_versions(libraries_here, libraries)) or "not recorded",
    }
    rows = {"processes": when(record.ranks > 1), **rows}
    with (files(__package__) / "data" / "reasons.csv").open(encoding="utf-8") as table:
        return [
            Reason(*(text.format_map({**facts, **fields}) for text in texts))
            for name, key, *texts in csv.reader(table)
            if name == study
            for fields in rows.get(key, ({},))
        ]


def when(condition: object, **fields: object) -> list[Fields]:
    """Return one row with these fields where a condition holds, else none."""
    return [fields] if condition else []


def listed(values: Iterable[object], none: str = "not recorded") -> str:
    """Join distinct texts in their order, or return the text for none."""
    return "; ".join(dict.fromkeys(map(str, values))) or none


def _machine(provenance: Mapping[str, Any]) -> str:
    host = (provenance.get("hosts") or [{}])[0]
    memory = host.get("memory_bytes")
    size = f"{memory / 2**30:.0f} GiB memory" if memory else ""
    facts = (host.get("cpu_model"), size, host.get("os"))
    return ", ".join(str(fact) for fact in facts if fact) or "not recorded"


def _versions(libraries: Mapping[str, Any], wanted: Sequence[str]) -> Iterator[str]:
    for name in wanted or libraries:
        facts = libraries.get(name)
        if isinstance(facts, Mapping) and facts.get("version"):
            yield f"{name} {facts['version']}"
