"""A ReFrame test of pffbench: a run is VALID, and shown to be slower than a baseline in nothing.

See docs/other-programs.md for how it is started, and its variables.
"""

import csv
import json
import shlex
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import (
    run_after,
    run_before,
    sanity_function,
    variable,
)


class PffbenchBase(rfm.RunOnlyRegressionTest):
    """A run of pffbench. Derive from it to fix systems, environments or an experiment.

    `baseline` has the results directories of one or several runs, separated by colons. The gate
    of ``pffbench compare`` judges by it: the test fails when a total is shown to be slower and
    is so by more than `allowed`, a fraction, and when something cannot be compared or the
    machine has changed.

    The median time of each case and phase in `summary.csv` is a performance variable, for logs.
    These have no references: single phases vary by more than anybody would allow.
    """

    experiment = variable(str, value="")
    ranks = variable(int, value=4)
    scratch = variable(str, value="")
    baseline = variable(str, value="")
    allowed = variable(float, value=0.2)
    python = variable(str, value="python3")

    valid_systems = ["*"]
    valid_prog_environs = ["*"]

    @run_after("init")
    def describe(self):
        """Set the commands: the comparison needs the environment of the job."""
        self.descr = f"pffbench {self.experiment or 'default experiment'}"
        self.executable = shlex.quote(self.python)
        options = [shlex.quote(self.experiment)] if self.experiment else []
        if self.scratch:
            options += ["--scratch", shlex.quote(self.scratch)]
        self.executable_opts = ["-m", "pffbench", "run", *options, "--out", "results"]
        self.num_tasks = self.ranks
        if self.baseline:
            runs = shlex.join(run for run in self.baseline.split(":") if run)
            gate = f"--fail-if-slower {100 * self.allowed:g}% --out compare"
            self.postrun_cmds = [
                f"{self.executable} -m pffbench compare {runs} -- results {gate} >gate.txt 2>&1; "
                "echo $? >gate.status"
            ]

    @sanity_function
    def passes(self):
        """Require the verdict VALID, and of the gate that nothing is shown to be slower."""
        record = json.loads((Path(self.stagedir) / "results" / "run.json").read_text())
        sn.evaluate(sn.assert_true(record["valid"], "the run is not VALID"))
        if not self.baseline:
            return True
        status, text = ((Path(self.stagedir) / f"gate.{n}").read_text() for n in ("status", "txt"))
        return sn.assert_in(status.strip(), ("0", "4"), text.partition("\n\n")[0])

    @run_before("performance")
    def follow_all_times(self):
        """Make a performance variable of each time."""
        with (Path(self.stagedir) / "results" / "summary.csv").open(newline="") as summary:
            self.perf_variables = {
                f"{row['case']}.{row['phase']}": _measured(float(row["median_s"]))
                for row in csv.DictReader(summary)
            }


def _measured(seconds):
    """Return a performance function that yields a number that was read already."""
    return sn.make_performance_function(sn.defer(seconds), "s")


@rfm.simple_test
class Pffbench(PffbenchBase):
    """The test as it is started from the command line, with ``-S experiment=…``."""
