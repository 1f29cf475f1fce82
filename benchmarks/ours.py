"""Running pffbench as its users do, and reading what it measured."""

from __future__ import annotations

import csv
import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jobs import python, run_ranks

#: Seconds of each repetition of a case: phase → one number a repetition.
Times = Mapping[str, list[float]]


@dataclass(frozen=True)
class Measured:
    """What pffbench says of a case.

    Parameters
    ----------
    synced : mapping
        Seconds from the first rank's start, behind a barrier, until all ranks are behind the next
        one (``synced_max``).
    own : mapping
        Seconds of the rank that took longest (``own_max``).
    """

    synced: Times
    own: Times


def run(ranks: int, experiment: str, place: Path) -> list[Measured]:
    """Run an experiment and return the seconds of its cases, in the order of the experiment.

    Warm-up repetitions are left out. The files lie below `place`, results too.

    Raises
    ------
    RuntimeError
        The run failed or was not valid.
    """
    from pffbench.experiment.load import load_experiment

    out, scratch, file = place / "results", place / "scratch", place / "experiment.yaml"
    shutil.rmtree(out, ignore_errors=True)
    scratch.mkdir(exist_ok=True)
    file.write_text(experiment, encoding="utf-8")
    told = ["run", str(file), "--out", str(out), "--scratch", str(scratch), "--progress", "none"]
    run_ranks(ranks, python("-m", "pffbench", *told))
    synced: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    own: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with (out / "samples.csv").open(newline="", encoding="utf-8") as samples:
        for row in csv.DictReader(samples):
            if row["warmup"] == "false":
                synced[row["case"]][row["phase"]].append(float(row["synced_max"]))
                own[row["case"]][row["phase"]].append(float(row["own_max"]))
    cases = [case.id for _, case in load_experiment(str(file)).cases]
    return [Measured(synced[case], own[case]) for case in cases]


def summed(times: Times, phases: Sequence[str]) -> list[float]:
    """Return the seconds of these phases together, of each repetition."""
    return [sum(parts) for parts in zip(*(times[phase] for phase in phases), strict=True)]
