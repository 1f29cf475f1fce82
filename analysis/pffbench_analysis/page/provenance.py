"""Provenance of a run as a tree of short lists that a page can unfold."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import asdict

from pffbench.record.run_json import RunRecord
from pffbench_analysis.style import plain

#: Longer lists and tables are truncated; `run.json` holds them in full.
_MOST = 64
_LONGEST = 2000
#: Facts shown elsewhere on the page.
_ELSEWHERE = ("reasons", "remarks", "name", "question")


@dataclass(frozen=True)
class Facts:
    """Facts with one value each, and groups of facts below them.

    Parameters
    ----------
    name : str
        Subject of the facts.
    values : list of (str, str)
        Names and values.
    parts : list of Facts
        Nested groups.
    more : int
        Number of facts not shown.
    """

    name: str
    values: list[tuple[str, str]] = field(default_factory=list)
    parts: list[Facts] = field(default_factory=list)
    more: int = 0


def provenance_of(record: RunRecord) -> list[Facts]:
    """Return the content of `run.json`, the run itself first."""
    told = {key: value for key, value in asdict(record).items() if key not in _ELSEWHERE}
    provenance = told.pop("provenance", {})
    run = {key: value for key, value in told.items() if not _is_group(value)}
    groups = {key: value for key, value in told.items() if _is_group(value)}
    if isinstance(run.get("command"), list):
        run["command"] = shlex.join(map(str, run["command"]))
    order = {"run": run, **provenance_groups(provenance), **groups}
    return [_facts(key, value) for key, value in order.items() if value not in ({}, [], None)]


def provenance_groups(provenance: Any) -> dict[str, Any]:
    """Return the groups of the provenance; single values form one group."""
    if not isinstance(provenance, Mapping):
        return {"provenance": {"provenance": provenance}}
    single = {key: value for key, value in provenance.items() if not _is_group(value)}
    groups = {key: value for key, value in provenance.items() if _is_group(value)}
    return {**groups, "provenance": single}


def _is_group(value: Any) -> bool:
    if isinstance(value, Mapping):
        return True
    return isinstance(value, list) and any(isinstance(item, Mapping) for item in value)


def _facts(name: str, value: Any) -> Facts:
    items = list(_items(value))
    shown = items[:_MOST]
    return Facts(
        plain(name),
        [(plain(str(key)), _text(below)) for key, below in shown if not _is_group(below)],
        [_facts(str(key), below) for key, below in shown if _is_group(below)],
        len(items) - len(shown),
    )


def _items(value: Any) -> Sequence[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return list(value.items())
    return [(_title(item, number), item) for number, item in enumerate(value)]


def _title(item: Any, number: int) -> str:
    """Name an item of a list by its number, and by its host or case if it has one."""
    named = item.get("host") or item.get("case") if isinstance(item, Mapping) else None
    return f"{number}: {named}" if named else str(number)


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        parts = [_text(item) for item in value[:_MOST]]
        more = [f"… and {len(value) - _MOST} more"] if len(value) > _MOST else []
        return ", ".join([*parts, *more])
    text = plain(" ".join(str(value).split()))
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"
