"""The measured ways of doing the same work, including layouts, and the purposes of a user."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pffbench.backends.registry import backend_class, backend_names
from pffbench.case import Parameters
from pffbench.summary.headline import Design
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

    @property
    def reads(self) -> bool:
        """Whether reading is a part of it."""
        return "read_total" in self.parts

    @property
    def writes(self) -> bool:
        """Whether writing is a part of it."""
        return "write_total" in self.parts


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
    def words(self) -> dict[str, str]:
        """Descriptive words, by the parameter that each describes."""
        p = self.parameters
        alone = p["layout"] == "file_per_process"
        return {
            "backend": self.backend,
            "layout": _LAYOUTS.get(p["layout"], p["layout"]),
            "transfer": "" if alone else _transfer(p),
            "settings": f"settings {p['settings']}",
            **self._storage(),
            **{key: f"{key} {value_text(value)}" for key, value in self.own_options.items()},
        }

    @property
    def label(self) -> str:
        """Full name: backend, layout, transfer, settings, chunks, codec and options."""
        return ", ".join(filter(None, self.words.values()))

    def _storage(self) -> dict[str, str]:
        """Return chunks and codec as stored in the file, or as requested."""
        if self.stored is None:
            p = self.parameters
            return {
                "chunks": f"chunks {value_text(p.get('chunks', 'auto'))}",
                "codec": f"codec {p.get('codec', 'auto')}",
            }
        chunks, codec = self.stored["chunks"], self.stored["codec"]
        shards = self.stored.get("more", {}).get("shards")
        return {
            "chunks": "contiguous" if chunks is None else f"chunks {value_text(chunks)}",
            "shards": f"shards {shards}" if shards else "",
            "codec": "no compression" if codec == "none" else f"codec {codec}",
        }

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
        weights = list(purpose.parts.values())
        common = set.intersection(*(set(part) for part in by_block))
        return {
            b: sum(w * part[b] for w, part in zip(weights, by_block, strict=True))
            for b in sorted(common)
        }

    def warned(self, purpose: Purpose, code: str) -> bool:
        """Whether a part of the purpose has a warning."""
        phases = (self.case.phases.get(phase) for phase in purpose.parts)
        return any(w.code == code for p in phases if p is not None for w in p.warnings)


_LAYOUTS = {
    "shared": "one shared array",
    "own": "one file, an array for each rank",
    "file_per_process": "a file for each process",
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
    design : Design
        Plan of their repetitions.
    """

    parameters: Mapping[str, Any]
    candidates: tuple[Candidate, ...]
    design: Design

    def short(self, candidate: Candidate) -> str:
        """Name a way by the words that distinguish it from the others."""
        all_ = [c.words for c in self.candidates]
        telling = [
            word
            for key, word in candidate.words.items()
            if key == "backend" or any(words.get(key, "") != word for words in all_)
        ]
        return ", ".join(filter(None, telling))


def _transfer(parameters: Mapping[str, Any]) -> str:
    """Name the transfer of ranks that share a file, and that of reading if different."""
    writing, reading = parameters["transfer"], parameters.get("read_transfer")
    if reading in (None, writing):
        return f"{writing} transfer"
    return f"{writing} transfer, {reading} reads"


def works(summary: Summary) -> list[Work]:
    """Collect the candidates of a run, by work.

    Raw bytes are left out: they are no format that other programs can read.
    """
    found: dict[str, list[Candidate]] = defaultdict(list)
    common: dict[str, dict[str, Any]] = {}
    for case in summary.cases:
        entry = summary.entry(case)
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
    design = Design.of_experiment(summary.record.experiment)
    return [Work(common[key], tuple(candidates), design) for key, candidates in found.items()]


def _ways(name: str) -> frozenset[str]:
    """Return the parameters in which ways of doing the same work may differ."""
    known = workload(name).parameters_type if name in workload_names() else Parameters
    return known.ways | {"layout"}
