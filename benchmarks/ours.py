"""Running pffbench as its users do, and reading what it measured."""

from __future__ import annotations

import csv
import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from jobs import python, run_ranks

#: The job's seconds in each repetition of a case, as the tables have them (``seconds``): phase →
#: one number a repetition.
Times = Mapping[str, list[float]]


def run(ranks: int, experiment: str, place: Path) -> list[Times]:
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
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with (out / "samples.csv").open(newline="", encoding="utf-8") as samples:
        for row in csv.DictReader(samples):
            if row["warmup"] == "false":
                found[row["case"]][row["phase"]].append(float(row["seconds"]))
    return [found[case.id] for _, case in load_experiment(str(file)).cases]


def summed(times: Times, phases: Sequence[str]) -> list[float]:
    """Return the seconds of these phases together, of each repetition."""
    return [sum(parts) for parts in zip(*(times[phase] for phase in phases), strict=True)]
