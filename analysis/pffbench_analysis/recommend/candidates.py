"""The measured ways of doing the same work, including layouts, and the purposes of a user."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pffbench.backends.registry import backend_class, backend_names
from pffbench.case import Parameters
from pffbench.errors import UserError
from pffbench.summary.best_number import files_of, writers_of
from pffbench.summary.labels import format_title
from pffbench.summary.summary import CaseSummary, Summary
from pffbench.text import value_text
from pffbench.workloads.registry import workload, workload_names


@dataclass(frozen=True)
class Weights:
    """How often data are written and read.

    Parameters
    ----------
    write, read : float
        Not negative; not both zero.
    """

    write: float = 1.0
    read: float = 1.0

    def __str__(self) -> str:
        if self.write == self.read == 1:
            return "writing once and reading once"
        return f"{self.write:g} × writing + {self.read:g} × reading"


@dataclass(frozen=True)
class Purpose:
    """A quantity to minimise: a weighted sum of the totals of phases.

    Parameters
    ----------
    name : str
        Readable name.
    parts : dict of str to float
        Weight of each total; weights of zero are left out.
    """

    name: str
    parts: Mapping[str, float]


WRITING = Purpose("writing", {"write_total": 1.0})
READING = Purpose("reading", {"read_total": 1.0})


def purposes(weights: Weights) -> tuple[Purpose, ...]:
    """Return writing, reading and their weighted sum, the sum last."""
    told = {"write_total": weights.write, "read_total": weights.read}
    both = Purpose(str(weights), {phase: w for phase, w in told.items() if w})
    return (WRITING, READING, both)


@dataclass(frozen=True)
class Candidate:
    """A case that could be recommended.

    Parameters
    ----------
    case : CaseSummary
        Summary of the case.
    parameters, options : dict
        Parameters and options of the case, as in `run.json`.
    stored : dict or None
        Actual storage of its arrays, as in `run.json`.
    """

    case: CaseSummary
    parameters: Mapping[str, Any]
    options: Mapping[str, Any]
    stored: Mapping[str, Any] | None

    @property
    def backend(self) -> str:
        """Name of the backend."""
        return self.case.sample.backend

    @property
    def layout(self) -> str:
        """Its layout."""
        return str(self.parameters["layout"])

    @cached_property
    def words(self) -> dict[str, str]:
        """Descriptive words, by the parameter that each describes."""
        p = self.parameters
        alone = p["layout"] == "file_per_process"
        return {
            "backend": format_title(self.backend),
            "layout": _LAYOUTS.get(p["layout"], p["layout"]).format(
                store="directory" if (self.case.disk_files or 1) > 1 else "file"
            ),
            "group": files_of(p) if p["layout"] == "file_per_group" else "",
            "writers": writers_of(p) if p.get("rearrange", "none") != "none" else "",
            "transfer": "" if alone else f"{p['transfer']} transfer",
            "settings": f"settings {p['settings']}",
            "environment": f"environment {p['environment']}" if "environment" in p else "",
            **self._storage(),
            # An option may have the name of a parameter.
            **{f"option {k}": f"{k} {value_text(v)}" for k, v in self.own_options.items()},
        }

    @property
    def label(self) -> str:
        """Full name: backend, layout, transfer, settings, chunks, codec and options."""
        return ", ".join(filter(None, self.words.values()))

    def _storage(self) -> dict[str, str]:
        """Return chunks and codec as stored in the file, or as requested."""
        codec = "no compression" if self.codec == "none" else f"codec {self.codec}"
        if self.stored is None:
            chunks = value_text(self.parameters.get("chunks", "auto"))
            return {"chunks": f"chunks {chunks}", "codec": codec}
        chunks, shards = self.stored["chunks"], self.stored.get("more", {}).get("shards")
        return {
            "chunks": "contiguous" if chunks is None else f"chunks {value_text(chunks)}",
            "shards": f"shards {shards}" if shards else "",
            "codec": codec,
        }

    @property
    def codec(self) -> str:
        """The codec as stored in the files, such as ``blosc-zstd 3 byte``, or as requested."""
        stored = (self.stored or {}).get("codec")
        return str(stored or self.parameters.get("codec", "auto"))

    @property
    def own_options(self) -> dict[str, Any]:
        """The options that are not library defaults; shards are named with the chunks."""
        if self.backend not in backend_names():
            return {k: v for k, v in self.options.items() if v is not None}
        defaults = backend_class(self.backend).options_type()
        return {
            key: value
            for key, value in self.options.items()
            if value != getattr(defaults, key, None) and key != "shards"
        }

    def seconds(self, purpose: Purpose) -> dict[int, float]:
        """Return the seconds of the purpose in each complete repetition."""
        found = [self.case.phases.get(phase) for phase in purpose.parts]
        if any(phase is None for phase in found):
            return {}
        by_block = [phase.by_block for phase in found if phase is not None]
        common = set.intersection(*(set(part) for part in by_block))
        return {
            b: sum(w * part[b] for w, part in zip(purpose.parts.values(), by_block, strict=True))
            for b in sorted(common)
        }

    def warned(self, purpose: Purpose, code: str) -> bool:
        """Whether a part of the purpose has a warning."""
        phases = (self.case.phases.get(phase) for phase in purpose.parts)
        return any(phase.warned(code) for phase in phases if phase is not None)


_LAYOUTS = {
    "shared": "one shared array",
    "own": "one {store}, an array for each rank",
    "file_per_process": "a file for each process",
    "file_per_group": "a file for each group of processes",
}


@dataclass(frozen=True)
class Work:
    """The same data, in all measured ways.

    Parameters
    ----------
    parameters : dict
        Parameters common to all ways.
    candidates : tuple of Candidate
        The ways.
    """

    parameters: Mapping[str, Any]
    candidates: tuple[Candidate, ...]

    def short(self, candidate: Candidate) -> str:
        """Name a way by the words that distinguish it from the others."""
        return ", ".join(
            word
            for key, word in candidate.words.items()
            if word and (key == "backend" or len(self._words_by_key[key]) > 1)
        )

    @cached_property
    def _words_by_key(self) -> dict[str, set[str]]:
        """The different words of the ways, by the parameter that each describes."""
        keys = dict.fromkeys(key for way in self.candidates for key in way.words)
        return {key: {way.words.get(key, "") for way in self.candidates} for key in keys}


@dataclass(frozen=True)
class Filters:
    """The ways that a user can take.

    Parameters
    ----------
    layouts, formats, transfers : tuple of str
        Allowed values; empty for all. Two or more layouts are compared with each other.
    one_file : bool
        Only ways that make a single file.
    """

    layouts: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    transfers: tuple[str, ...] = ()
    one_file: bool = False

    def allow(self, candidate: Candidate) -> bool:
        """Whether a way is among them."""
        p = candidate.parameters
        alone = p["layout"] == "file_per_process"
        return (
            (not self.layouts or p["layout"] in self.layouts)
            and (not self.formats or candidate.backend in self.formats)
            # Of a file that one rank has alone there is no transfer.
            and (not self.transfers or alone or p["transfer"] in self.transfers)
            and not (self.one_file and (alone or candidate.case.disk_files != 1))
        )

    def check(self, candidates: Sequence[Candidate]) -> None:
        """Refuse what no way of a run has.

        Raises
        ------
        UserError
            An option names no value of the run, or they leave no way.
        """
        kinds = {
            "layout": (self.layouts, {c.parameters["layout"] for c in candidates}),
            "format": (self.formats, {c.backend for c in candidates}),
            "transfer": (self.transfers, {c.parameters["transfer"] for c in candidates}),
        }
        for option, (wanted, there) in kinds.items():
            for name in wanted:
                if name not in there:
                    raise UserError(
                        f"--{option} {name}: the run has {', '.join(sorted(there)) or 'none'}"
                    )
        if candidates and not any(map(self.allow, candidates)):
            given = [f"--{key} {name}" for key, (names, _) in kinds.items() for name in names]
            named = " ".join([*given, *["--one-file"] * self.one_file])
            raise UserError(f"{named}: no way of the run is left; give fewer of these")


def works(summary: Summary, filters: Filters | None = None) -> list[Work]:
    """Collect the candidates of a run, by work.

    Raw bytes are left out: they are no format that other programs can read.

    Parameters
    ----------
    summary : Summary
        The run.
    filters : Filters, optional
        The ways to take. With filters each layout is a work of its own, since it answers another
        question, unless they name several; without filters all layouts are one work.
    """
    found: dict[str, list[Candidate]] = defaultdict(list)
    common: dict[str, dict[str, Any]] = {}
    for case in summary.cases:
        entry = case.entry
        if entry.get("raw") or case.invalid or not case.nbytes:
            continue
        ways = _ways(entry["parameters"].get("workload", ""))
        shared = {k: v for k, v in entry["parameters"].items() if k not in ways}
        key = json.dumps(shared, sort_keys=True, default=str)
        common[key] = shared
        candidate = Candidate(
            case, entry["parameters"], entry.get("options", {}), entry.get("stored_as")
        )
        found[key].append(candidate)
    if filters is not None:
        filters.check([candidate for tested in found.values() for candidate in tested])
    return [
        Work(common[key], tuple(candidates))
        for key, tested in found.items()
        for candidates in _by_layout(tested, filters)
    ]


def _by_layout(tested: Sequence[Candidate], filters: Filters | None) -> list[list[Candidate]]:
    if filters is None:
        return [list(tested)]
    found: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in filter(filters.allow, tested):
        found["" if len(filters.layouts) > 1 else candidate.parameters["layout"]].append(candidate)
    return list(found.values())


def _ways(name: str) -> frozenset[str]:
    """Return the parameters in which ways of doing the same work may differ."""
    known = workload(name).parameters_type if name in workload_names() else Parameters
    return known.ways | {"layout", "environment"}
