"""Names of cells: what sets one apart from its peers, in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from pffbench.backends.registry import backend_class, is_backend
from pffbench.record.run_json import CaseEntry
from pffbench.results.cells import NOT_IN_FORCE, Keys, keys_of, varying
from pffbench.results.words import listed

#: Keys that follow from others, or say where and when it was measured.
UNSAID = frozenset({"run", "ranks", "total", "work", "workload", NOT_IN_FORCE})
_FILES = {
    "shared": "one shared file",
    "own": "one file, an array per rank",
    "file_per_process": "one file per rank",
    "file_per_group": "one file per group of ranks",
}


def format_name(backend: str) -> str:
    """Return the name of a format as its makers write it."""
    return backend_class(backend).title or backend if is_backend(backend) else backend


def value_name(key: str, value: str) -> str:
    """Return the value of a key in words that stand alone, such as ``one file per rank``."""
    if key in _WORDS:
        return _WORDS[key](value)
    return f"{key.rpartition('.')[2].replace('_', ' ')} {value}"


_CODECS = {"none": "no compression", "auto": "library's codec"}
_SHUFFLE = re.compile(r"\b(byte|bit)\b")
_WORDS: Mapping[str, Callable[[str], str]] = {
    "backend": format_name,
    "layout": lambda value: _FILES.get(value, value),
    "chunks": lambda value: value if value == "contiguous" else f"chunks {value}",
    "codec": lambda value: _CODECS.get(value, _SHUFFLE.sub(r"\1 shuffle", value)),
    "transfer": lambda value: f"{value} transfer",
    "settings": lambda value: "library defaults" if value == "defaults" else value,
}
#: Order of the words of a name; other keys follow.
_ORDER = tuple(_WORDS)


def labels(keys: Mapping[str, Keys]) -> dict[str, str]:
    """Return for each name of a case the words that set it apart from the others, format first.

    A single case is named by its format.
    """
    differing = varying(list(keys.values()), UNSAID)
    return {name: ", ".join(words(own, differing)) for name, own in keys.items()}


def case_names(entries: Mapping[str, CaseEntry]) -> dict[str, str]:
    """Return what sets each case apart, in words; raw transfers, which follow formats, are one."""
    formats = {case: keys_of(entry) for case, entry in entries.items() if not entry.raw}
    return dict.fromkeys(entries, "raw I/O") | labels(formats)


def gathered(names: Iterable[str], most: int = 3) -> str:
    """Return names in a few words: those that differ in their format alone together.

    Parameters
    ----------
    names : iterable of str
        As `labels` returns them.
    most : int
        Largest number of such groups that are named.
    """
    formats: dict[str, dict[str, None]] = {}
    for name in names:
        backend, _, rest = name.partition(", ")
        formats.setdefault(rest, {})[backend] = None
    texts = [
        f"{listed(list(some))} ({rest})" if rest else listed(list(some))
        for rest, some in formats.items()
    ]
    more = sum(map(len, list(formats.values())[most:]))
    return listed([*texts[:most], *([f"{more} more"] if more else [])])


def words(own: Keys, wanted: Iterable[str]) -> list[str]:
    """Return the values of some keys in words, the format first."""
    names = {"backend", *wanted}
    order = [*(k for k in _ORDER if k in names), *(k for k in wanted if k not in _ORDER)]
    return [value_name(key, own[key]) for key in order if key in own]
