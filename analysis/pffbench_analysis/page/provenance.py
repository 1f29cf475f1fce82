"""Provenance of a run as a tree of short lists that a page can unfold."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from msgspec.structs import asdict

from pffbench.record.run_json import RunRecord
from pffbench.text import abridged

#: Longer lists and tables are truncated; `run.json` holds them in full.
_MOST = 64
_LONGEST = 2000
#: Facts shown elsewhere on the page.
_ELSEWHERE = ("reasons", "remarks", "name", "question")


class Facts(NamedTuple):
    """Facts with one value each, and groups of facts below them."""

    #: Subject of the facts.
    name: str
    #: Names and values.
    values: list[tuple[str, str]]
    #: Nested groups.
    parts: list[Facts]
    #: Number of facts not shown.
    more: int


def provenance_of(record: RunRecord) -> list[Facts]:
    """Return the content of `run.json`, the run itself first."""
    told = {key: value for key, value in asdict(record).items() if key not in _ELSEWHERE}
    provenance = told.pop("provenance")
    told["command"] = shlex.join(told["command"])
    run, groups = _divided(told)
    single, kinds = _divided(provenance)
    order = {"run": run, **kinds, "provenance": single, **groups}
    return [_facts(key, value) for key, value in order.items() if value not in ({}, [], None)]


def _divided(facts: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the facts with one value each, and the groups."""
    single = {key: value for key, value in facts.items() if not _is_group(value)}
    return single, {key: value for key, value in facts.items() if key not in single}


def _is_group(value: Any) -> bool:
    if isinstance(value, Mapping):
        return True
    return isinstance(value, list) and any(isinstance(item, Mapping) for item in value)


def _facts(name: str, value: Any) -> Facts:
    named = value.items() if isinstance(value, Mapping) else _numbered(value)
    items = [(str(key), below) for key, below in named]
    single, groups = _divided(dict(items[:_MOST]))
    return Facts(
        name,
        [(key, _text(below)) for key, below in single.items()],
        [_facts(key, below) for key, below in groups.items()],
        max(0, len(items) - _MOST),
    )


def _numbered(items: Iterable[Any]) -> Iterable[tuple[str, Any]]:
    """Name items of a list by their number, and by their host or case if they have one."""
    for number, item in enumerate(items):
        named = item.get("host") or item.get("case") if isinstance(item, Mapping) else None
        yield (f"{number}: {named}" if named else f"{number}"), item


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return abridged([_text(item) for item in value], _MOST, ", ")
    text = " ".join(str(value).split())
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"
