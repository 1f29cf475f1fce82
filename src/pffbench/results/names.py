"""Names of cells: what sets one apart from its peers, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pffbench.backends.registry import backend_class, is_backend
from pffbench.results.cells import NOT_IN_FORCE, Keys, varying

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


_WORDS: Mapping[str, Callable[[str], str]] = {
    "backend": format_name,
    "layout": lambda value: _FILES.get(value, value),
    "chunks": lambda value: value if value == "contiguous" else f"chunks {value}",
    "codec": lambda value: {"none": "no compression", "auto": "library's codec"}.get(value, value),
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


def words(own: Keys, wanted: Iterable[str]) -> list[str]:
    """Return the values of some keys in words, the format first."""
    names = {"backend", *wanted}
    order = [*(k for k in _ORDER if k in names), *(k for k in wanted if k not in _ORDER)]
    return [value_name(key, own[key]) for key in order if key in own]
