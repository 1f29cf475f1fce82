"""Instructions that a library function takes for each dataset, counted by valgrind's callgrind.

A count that the load of a machine does not change, where times vary more than versions differ. A
rank runs each case twice, with N and with 2N datasets: what the first calls and the start of the
program take cancels in the difference.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from pffbench.errors import VALID, UserError
from pffbench.experiment.load import LoadedExperiment
from pffbench.job.batch_job import StopSignals
from pffbench.workloads.datasets import DatasetsParameters
from pffbench_environments.processes import last_line, run_bounded, stop_before_start
from pffbench_environments.start import StartedEnvironment, start_environments
from pffbench_environments.steps import step_experiment

#: The sum at the end of callgrind's file.
_TOTALS = re.compile(r"^totals: (\d+)$", re.MULTILINE)


def count_instructions(
    loaded: LoadedExperiment, function: str, scratch: str | None, stop: StopSignals
) -> float:
    """Count the instructions of a function, and of all that it calls, for each dataset.

    Parameters
    ----------
    loaded : LoadedExperiment
        An experiment with one environment, and one case of the workload `datasets`.
    function : str
        Function of a library, which must not call itself.
    scratch : str, optional
        Directory for the files of the runs.
    stop : StopSignals
        Tells that the count is to end.

    Raises
    ------
    UserError
        The input is wrong, a run failed, or no such function was called.
    """
    counter = _Counter(
        check_countable(loaded, function), function, scratch, stop_before_start(stop)
    )
    (environment,) = start_environments(loaded.experiment, loaded.path, counter.keep_going)
    cases = [case for _, case in loaded.cases if not case.roofline]
    return counter.each(environment, step_experiment(loaded.experiment, cases, 0))


def check_countable(loaded: LoadedExperiment, function: str) -> str:
    """Check that instructions can be counted here for an experiment; return the valgrind.

    Raises
    ------
    UserError
        There is no valgrind, no name of a function, or a case of another workload.
    """
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise UserError("valgrind, which counts the instructions, is not installed here")
    if not function.strip():
        raise UserError("name the library function to count in, such as H5Dcreate2")
    for p in (case.parameters for _, case in loaded.cases if not case.roofline):
        if not isinstance(p, DatasetsParameters) or not isinstance(p.datasets, int):
            raise UserError(
                f"{loaded.path}: instructions are counted for each of the datasets of workload: "
                f"datasets, with a number of `datasets`; here is a case of {p.workload}"
            )
    return valgrind


class _Counter(msgspec.Struct, frozen=True):
    """Runs experiments under valgrind."""

    valgrind: str
    function: str
    #: Directory for the files of the runs.
    scratch: str | None
    #: Called while they run; may raise, which ends them.
    keep_going: Callable[[], None]

    def each(self, environment: StartedEnvironment, content: dict[str, Any]) -> float:
        """Return the instructions for each dataset of an experiment with one case."""
        (entry,) = content["cases"]
        fewer = int(entry["datasets"])
        counts = []
        for datasets in (fewer, 2 * fewer):
            once = {"repetitions": 1, "warmup": 0, "counters": False, "hang_timeout": "10000 h"}
            case = entry | {"datasets": datasets}
            counts.append(self._count(environment, content | once | {"cases": [case]}))
        if counts[0] == counts[1]:
            raise UserError(
                f"{environment.name}: {self.function}: no such function was called for the datasets"
            )
        return (counts[1] - counts[0]) / fewer

    def _count(self, environment: StartedEnvironment, content: dict[str, Any]) -> int:
        """Run an experiment in one process under callgrind; return the instructions counted."""
        with tempfile.TemporaryDirectory(prefix="pffbench-instructions-", dir=self.scratch) as made:
            place = Path(made)
            file, counted = place / "experiment.yaml", place / "callgrind.out"
            file.write_text(json.dumps(content), encoding="utf-8")
            command = [
                self.valgrind, "--tool=callgrind", f"--callgrind-out-file={counted}", "--quiet",
                f"--toggle-collect={self.function}",
                *environment.command, "-m", "pffbench", "run", str(file),
                "--out", str(place / "run"), "--scratch", made, "--quiet",
            ]  # fmt: skip
            # Objects of Python lie in an order that depends on random hashes otherwise.
            variables = {**environment.process_environment, "PYTHONHASHSEED": "0"}
            # Under valgrind it takes a hundred times as long; a signal ends it.
            done = run_bounded(command, math.inf, self.keep_going, variables=variables)
            if done.status != VALID:
                raise UserError(f"{environment.name}: {last_line(done.text)}")
            return total_of(counted.read_text(encoding="utf-8", errors="replace"))


def total_of(text: str) -> int:
    """Return the instructions in a file of callgrind; 0 where none were counted."""
    found = _TOTALS.search(text)
    return int(found[1]) if found else 0
