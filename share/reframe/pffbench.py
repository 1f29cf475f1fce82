"""A ReFrame test of pffbench: a run is VALID, and no phase is slower than in a baseline.

See docs/other-programs.md for how it is started, and its variables.
"""

import re
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
from reframe.core.exceptions import PerformanceError

_FIGURE = re.compile(r"^FOM (\S+\.time)=(\S+) s$", re.MULTILINE)


class PffbenchBase(rfm.RunOnlyRegressionTest):
    """A run of pffbench. Derive from it to fix systems, environments or an experiment.

    Every time of `fom.txt` becomes a performance variable of the same name. With `baseline`, the
    `fom.txt` of another run, each of them has a reference: it may be slower by `allowed`, a
    fraction. Times that the baseline lacks are recorded and not judged; those that only the
    baseline has fail the test, since a case may be missing because it has become slow.
    """

    experiment = variable(str, value="")
    ranks = variable(int, value=4)
    scratch = variable(str, value="")
    baseline = variable(str, value="")
    allowed = variable(float, value=0.1)
    python = variable(str, value="python3")

    valid_systems = ["*"]
    valid_prog_environs = ["*"]

    @run_after("init")
    def describe(self):
        """Set the command."""
        self.descr = f"pffbench {self.experiment or 'default experiment'}"
        self.executable = shlex.quote(self.python)
        options = [shlex.quote(self.experiment)] if self.experiment else []
        if self.scratch:
            options += ["--scratch", shlex.quote(self.scratch)]
        self.executable_opts = ["-m", "pffbench", "run", *options, "--out", "results"]
        self.num_tasks = self.ranks

    @sanity_function
    def valid(self):
        """Require the verdict VALID."""
        return sn.assert_found(r"^FOM valid=1 ", "results/fom.txt", "the run is not VALID")

    @run_before("performance")
    def follow_all_times(self):
        """Make a performance variable of each time, with the reference of the baseline."""
        figures = _FIGURE.findall((Path(self.stagedir) / "results/fom.txt").read_text())
        limits = {}
        if self.baseline:
            limits = dict(_FIGURE.findall(Path(self.baseline).read_text()))
            _require_all(limits, dict(figures), self.baseline)
        system = self.current_partition.fullname
        references = {}
        for name, value in figures:
            self.perf_variables[name] = _measured(float(value))
            if name in limits:
                references[name] = (float(limits[name]), None, self.allowed, "s")
        self.reference = {system: references}


def _require_all(limits, figures, baseline):
    """Fail when a time of the baseline is missing, or it has none, so that nothing is judged."""
    if not limits:
        raise PerformanceError(f"{baseline} has no times, so nothing can be judged")
    if lost := sorted(limits.keys() - figures.keys()):
        more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
        raise PerformanceError(f"only the baseline has {', '.join(lost[:3])}{more}")


def _measured(seconds):
    """Return a performance function that yields a number that was read already."""
    return sn.make_performance_function(sn.defer(seconds), "s")


@rfm.simple_test
class Pffbench(PffbenchBase):
    """The test as it is started from the command line, with ``-S experiment=…``."""
