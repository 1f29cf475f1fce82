"""Names of cells: what sets one apart from its peers, in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping

from pffbench.backends.registry import backend_class, is_backend
from pffbench.record.run_json import CaseEntry
from pffbench.results.cells import NOT_IN_FORCE, Keys, keys_of, varying
from pffbench.results.words import listed
from pffbench.text import counted

#: Keys that follow from others, or say where and when it was measured.
UNSAID = frozenset({"run", "ranks", "total", "work", "workload", NOT_IN_FORCE})
#: Name of all raw transfers.
RAW = "raw I/O"
_FILES = {
    "one": "one shared file",
    "one per_rank": "one shared file with an array per rank",
    "per_rank": "one file per rank",
}
_FILE_COUNT = re.compile(r"\{(count|per_node): (\d+)\}( per_rank)?")


def format_name(backend: str) -> str:
    """Return the name of a format as its makers write it."""
    return backend_class(backend).title or backend if is_backend(backend) else backend


def value_name(key: str, value: str) -> str:
    """Return the value of a key in words that stand alone, such as ``one file per rank``."""
    if key in _WORDS:
        return _WORDS[key](value)
    return f"{key.rpartition('.')[2].replace('_', ' ')} {_SWITCH.get(value, value)}"


def _file_count(match: re.Match[str]) -> str:
    number = counted(int(match[2]), "file")
    each = " per node" if match[1] == "per_node" else ""
    return f"{number}{each}{' with an array per rank' if match[3] else ''}"


_SWITCH = {"True": "on", "False": "off"}
_CODECS = {"none": "no compression", "auto": "library's codec"}
#: A codec with its level, its shuffle, and the compressor that may follow.
_SHUFFLE = re.compile(r"(.*) (byte|bit)\b(.*)")
_WORDS: Mapping[str, Callable[[str], str]] = {
    "backend": format_name,
    "files": lambda value: _FILES.get(value) or _FILE_COUNT.sub(_file_count, value),
    "chunks": lambda value: value if value == "contiguous" else f"chunks {value}",
    "codec": lambda value: _CODECS.get(value, _SHUFFLE.sub(r"\1\3 with \2 shuffle", value)),
    "transfer": lambda value: f"{value} transfer",
    "settings": lambda value: "library defaults" if value == "defaults" else value,
}
#: Characters of settings that a sentence names.
_TWO_LINES = 160
#: Order of the words of a name; other keys follow.
_ORDER = tuple(_WORDS)


def labels(keys: Mapping[str, Keys]) -> dict[str, str]:
    """Return for each name of a case the words that set it apart from the others, format first.

    A single case is named by its format.
    """
    differing = varying(list(keys.values()), UNSAID)
    return {name: ", ".join(words(own, differing)) for name, own in keys.items()}


def names_apart(entries: Mapping[str, CaseEntry], lost: Collection[str]) -> dict[str, str]:
    """Return what sets some cases apart from all others, in words, by one key if that is enough.

    Raw transfers, which go with the formats, have one name.
    """
    every = {case: keys_of(entry) for case, entry in entries.items() if not entry.raw}
    differing = varying(list(every.values()), UNSAID)
    sides = [[keys for case, keys in every.items() if (case in lost) == side] for side in (0, 1)]
    for key in ("backend", *differing):
        kept, gone = ({keys.get(key) for keys in side} for side in sides)
        if kept.isdisjoint(gone):
            differing = [key]
            break
    return {
        case: ", ".join(words(every[case], differing)) if case in every else RAW for case in lost
    }


def gathered(names: Iterable[str], most: int = 3) -> str:
    """Return names in a few words: equal formats, and what else is equal, are named once.

    Parameters
    ----------
    names : iterable of str
        As `names_apart` returns them; raw transfers are left out next to formats.
    most : int
        Largest number of such groups that are named, and of settings in one. More settings, or
        longer ones than two lines hold, are counted.
    """
    every = list(names)
    formats: dict[str, dict[str, None]] = {}
    for name in [name for name in every if name != RAW] or every:
        backend, _, rest = name.partition(", ")
        formats.setdefault(rest, {})[backend] = None
    rests: dict[tuple[str, ...], list[str]] = {}
    for rest, some in formats.items():
        rests.setdefault(tuple(some), []).append(rest)
    texts = []
    for backends, of_them in rests.items():
        named = "; ".join(of_them)
        if len(of_them) > most or len(named) > _TWO_LINES:
            named = counted(len(of_them), "setting")
        texts.append(f"{listed(backends)} ({named})" if any(of_them) else listed(backends))
    more = sum(len(some) * len(of_them) for some, of_them in list(rests.items())[most:])
    return listed([*texts[:most], *([f"{more} more"] if more else [])])


def words(own: Keys, wanted: Iterable[str]) -> list[str]:
    """Return the values of some keys in words, the format first."""
    names = {"backend", *wanted}
    order = [*(k for k in _ORDER if k in names), *(k for k in wanted if k not in _ORDER)]
    return [value_name(key, own[key]) for key in order if key in own]
