"""Differences between a study and a run: a table of texts, filled in with facts of the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pffbench.record.run_json import RunRecord
from pffbench.results.summary import Summary
from pffbench_studies.published.counterparts import Match
from pffbench_studies.published.values import table

#: Values of the fields of a text, such as ``{ranks}``.
Fields = Mapping[str, object]


class Reason(NamedTuple):
    """A difference between study and run that may affect numbers."""

    #: Subject of the difference.
    about: str
    #: As the study had it, and as the run has it.
    there: str
    here: str
    #: Affected numbers, and the direction where known.
    bears_on: str


def reasons_of(
    study: str,
    summary: Summary,
    matches: Iterable[Match],
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
    matches : iterable of Match
        Its numbers that are compared.
    rows : mapping of str to sequence of mapping
        For a key of the table the fields of each of its rows: an empty sequence leaves it out. A
        key that is not here has one row; ``processes`` has none on one rank.
    libraries : sequence of str
        Libraries whose versions are named; by default all.
    """
    record = summary.record
    repetitions = {p.seconds.n for match in matches for p in match.case.phases.values()}
    facts: Fields = {
        "ranks": record.ranks,
        "nodes": summary.run.nodes,
        "repetitions": "–".join(map(str, sorted(repetitions))),
        "machine": _machine(record.provenance),
        "filesystem": record.provenance.get("filesystem", {}).get("type") or "not recorded",
        "versions": _versions(record, libraries),
    }
    rows = {"processes": when(record.ranks > 1), **rows}
    return [
        Reason(*(row[name].format_map({**facts, **fields}) for name in Reason._fields))
        for row in table("reasons")
        if row["study"] == study
        for fields in rows.get(row["key"], ({},))
    ]


def when(condition: object, **fields: object) -> list[Fields]:
    """Return one row with these fields where a condition holds, else none."""
    return [fields] if condition else []


def listed(values: Iterable[object], none: str = "not recorded", between: str = "; ") -> str:
    """Join distinct texts in their order, or return the text for none."""
    return between.join(dict.fromkeys(map(str, values))) or none


def _machine(provenance: Mapping[str, Any]) -> str:
    host = (provenance.get("hosts") or [{}])[0]
    memory = host.get("memory_bytes")
    size = f"{memory / 2**30:.0f} GiB memory" if memory else ""
    return listed(filter(None, (host.get("cpu_model"), size, host.get("os"))), between=", ")


def _versions(record: RunRecord, wanted: Sequence[str]) -> str:
    """Return the versions of the libraries, in all environments of the run."""
    environments = [each["provenance"] for each in record.environments.values()]
    known = list(map(libraries_of, environments or [record.provenance]))
    names = wanted or dict.fromkeys(name for each in known for name in each)
    told = ((name, each.get(name, {}).get("version")) for name in names for each in known)
    return listed((f"{name} {version}" for name, version in told if version), between=", ")


def libraries_of(provenance: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the facts of the libraries of a run, by import name."""
    found = provenance.get("software", {}).get("libraries", {})
    return {name: facts for name, facts in found.items() if isinstance(facts, Mapping)}
