"""Labels of cases: their distinguishing settings, and the storage of their arrays."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from pffbench.backends.inspection import codec_words
from pffbench.backends.registry import backend_class, is_backend
from pffbench.case import itemsize
from pffbench.record.run_json import Entry, RunRecord
from pffbench.text import value_text
from pffbench.units import Size
from pffbench.workloads.registry import is_workload, workload

#: Options that are levers of the file system and of MPI-IO; those that a case leaves alone are
#: not named.
LEVERS = ("hints", "striping", "alignment", "alignment_threshold")
_ONLY_GIVEN = frozenset({*LEVERS, "call"})
#: Parameters that tables have columns for.
_OWN_COLUMNS = frozenset({"settings", "transfer"})


def format_title(name: str) -> str:
    """Return the name of a format as its makers write it."""
    return backend_class(name).title or name if is_backend(name) else name


def keys_of(entry: Entry) -> dict[str, Any]:
    """Return parameters and options of a case by their keys, from its entry in `run.json`.

    An option that has the name of a parameter is told apart by its backend: ``posix.order``.
    """
    p: dict[str, Any] = entry["parameters"]
    options = (entry.get("options") or {}).items()
    return p | {f"{p['backend']}.{key}" if key in p else key: value for key, value in options}


def variants_of(names: Sequence[str], record: RunRecord) -> dict[str, str]:
    """Return, for each case, its differences from others of its backend and settings."""
    told = {name: keys_of(record.cases[name]) for name in names if name in record.cases}
    alike: dict[tuple[str, str], list[dict[str, object]]] = defaultdict(list)
    for mine in told.values():
        alike[mine["backend"], mine.get("settings", "")].append(mine)
    # These are named where they differ from no other case too. The most bytes of a call of raw
    # transfers tells what they bound.
    always = {"call", "environment"} if len(record.environments) > 1 else {"call"}
    found = {}
    for name, mine in told.items():
        same = alike[mine["backend"], mine.get("settings", "")]
        swept = [
            k
            for k, v in mine.items()
            if k in always or any(other.get(k) != v for other in same)
            if v or k not in _ONLY_GIVEN
        ]
        found[name] = " ".join(f"{k}={_shown(k, mine)}" for k in swept if k not in _OWN_COLUMNS)
    return found


def _shown(key: str, values: Mapping[str, object]) -> str:
    value = values[key]
    return str(Size(value)) if key == "call" and isinstance(value, int) else value_text(value)


def cases_apart(record: RunRecord) -> dict[str, str]:
    """Return labels of the cases that several environments run, by their differences."""
    told = {
        entry["same_case"]: keys_of(entry)
        for entry in record.cases.values()
        if entry.get("same_case") and not entry.get("raw")
    }
    unnamed = {"backend", "workload", "layout", "settings", "environment", *_places(told.values())}
    found = {}
    for name, mine in told.items():
        alike = [other for other in told.values() if other["backend"] == mine["backend"]]
        words = [
            f"{key}={value_text(value)}"
            for key, value in mine.items()
            if key not in unnamed and any(other.get(key) != value for other in alike)
        ]
        found[name] = " ".join([str(mine["backend"]), *words])
    return found


def _places(parameters: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the parameters that say what the workloads read, and in which order."""
    names = dict.fromkeys(str(p.get("workload")) for p in parameters)
    known = [workload(name).places for name in names if is_workload(name)]
    return [key for places in known for key in places]


def comparisons_apart(record: RunRecord) -> dict[str, str]:
    """Return, for each comparison, its differences from others in the places that it reads.

    Such as `` axis 0``, to be appended to the name of the workload; empty if all read alike.
    """
    groups = {entry["group"]: entry["parameters"] for entry in record.cases.values()}
    places = _places(groups.values())
    texts = {key: {value_text(p[key]) for p in groups.values() if key in p} for key in places}
    telling = [key for key, values in texts.items() if len(values) > 1]
    return {
        group: "".join(f" {key} {value_text(p[key])}" for key in telling if p.get(key) is not None)
        for group, p in groups.items()
    }


def parameters_apart(record: RunRecord) -> dict[str, str]:
    """Return, for each comparison, all parameters common to its cases that others lack.

    Such as ``cache dropped``; layout, workload and the places that are read have names of their
    own.
    """
    groups: dict[str, list[Mapping[str, object]]] = defaultdict(list)
    for entry in record.cases.values():
        groups[entry["group"]].append(entry["parameters"])
    shared = {
        group: {k: v for k, v in cases[0].items() if all(c.get(k) == v for c in cases)}
        for group, cases in groups.items()
    }
    named = {"workload", "layout", *_OWN_COLUMNS, *_places(shared.values())}
    keys = dict.fromkeys(k for p in shared.values() for k in p if k not in named)
    telling = [k for k in keys if len({value_text(p.get(k)) for p in shared.values()}) > 1]
    return {
        group: " ".join(f"{k} {value_text(p[k])}" for k in telling if p.get(k) is not None)
        for group, p in shared.items()
    }


def stored_as(entry: Mapping[str, object]) -> str:
    """Return the storage layout of a case's arrays, by its entry in `run.json`."""
    stored = entry.get("stored_as")
    if not isinstance(stored, dict):
        return ""
    if entry.get("raw"):
        return "raw bytes"
    chunks = stored["chunks"]
    shape = "contiguous" if chunks is None else "chunks " + value_text(chunks)
    parts = [shape, f"codec {codec_words(stored['codec'])}", f"fill {stored['fill']}"]
    parts += [f"{key} {value}" for key, value in stored["more"].items()]
    return ", ".join(parts)


class Measured(msgspec.Struct, frozen=True):
    """What cases moved, in words such as ``48 MiB in chunks of 4 MiB``.

    Parameters
    ----------
    sizes, chunks : tuple of int
        Bytes of all ranks together, and of a chunk: the different ones, in order. Empty where they
        are not known, or the experiment leaves the shape of chunks to the program.
    """

    sizes: tuple[int, ...]
    chunks: tuple[int, ...]

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Measured:
        """Return what cases moved, by their entries in `run.json`."""
        sizes = {(entry.get("cost") or {}).get("nbytes", 0) for entry in entries}
        chunks = {_chunk_bytes(entry["parameters"]) for entry in entries}
        return cls(*(() if 0 in some else tuple(sorted(some)) for some in (sizes, chunks)))

    def __str__(self) -> str:
        return _span(self.sizes) + (f" in chunks of {_span(self.chunks)}" if self.chunks else "")


def chunks_apart(record: RunRecord) -> dict[str, str]:
    """Return the size of the chunks of each comparison, such as `` in chunks of 4 MiB``.

    To be appended to the amount of data; empty where no comparison has another size.
    """
    groups: dict[str, list[Entry]] = defaultdict(list)
    for entry in record.cases.values():
        if not entry.get("raw"):
            groups[entry["group"]].append(entry)
    chunks = {group: Measured.of(entries).chunks for group, entries in groups.items()}
    if len(set(chunks.values())) < 2:
        return {}
    return {group: f" in chunks of {_span(some)}" for group, some in chunks.items() if some}


def _chunk_bytes(parameters: Mapping[str, Any]) -> int:
    """Return the bytes of a chunk; 0 where its shape is not given."""
    chunks, dtype = parameters.get("chunks"), parameters.get("dtype")
    return math.prod(chunks) * itemsize(dtype) if isinstance(chunks, list) and dtype else 0


def _span(sizes: Sequence[int]) -> str:
    first, last = Size(sizes[0]), Size(sizes[-1])
    return str(first) if first == last else f"{first} {'and' if len(sizes) == 2 else 'to'} {last}"


K = TypeVar("K")


def unusual_sizes(sizes: Mapping[K, tuple[int, ...]], text: str) -> dict[K, str]:
    """Return sizes in words; empty for those that more than half of them have."""
    usual, times = Counter(sizes.values()).most_common(1)[0] if sizes else ((), 0)
    most = usual if 2 * times > len(sizes) else None
    return {
        key: text.format(_span(one)) if one and one != most else "" for key, one in sizes.items()
    }


def ignored_of(entry: Mapping[str, object]) -> str:
    """Return the hints and stripes of a case that are not in force, by its entry in `run.json`.

    As the file was written; those that only the file opened for reading ignores follow.
    """
    facts = entry.get("transfer_facts")
    if not isinstance(facts, dict):
        return ""
    reading = facts.get("not_in_force_reading")
    told = [facts.get("not_in_force"), f"in reading: {reading}" if reading else None]
    return "; ".join(str(text) for text in told if text)
