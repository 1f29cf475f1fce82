"""Run the experiments of configs/issues, and compare each with what its maintainers published.

Two lines at the head of such an experiment are read::

    # Source:   https://github.com/HDFGroup/hdf5/issues/5962
    # Expected: define of h5py-3.16 over h5py-3.15: 1.2 to 1.3

Two environments are compared, or two values of an option (``concurrency=10``). The factor is a
number, a range, or ``above 1`` where none was published. The first case of each counts. The line
that is printed is that of docs/evidence/known-truths.md: the ratio of the times, its interval, and
whether it is *shown* (the interval lies above 1) and *published* (it holds a published factor).
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pffbench.summary.dependence import variance_inflation
from pffbench.summary.rank_test import ALPHA, Ratio, ratio_of_times
from pffbench.summary.summary import summarise

CONFIGS = Path(__file__).resolve().parents[1] / "configs" / "issues"
_NUMBER = r"\d+(?:\.\d+)?"
_EXPECTED = re.compile(
    rf"(?P<phase>\w+) of (?P<slower>\S+) over (?P<faster>[^\s:]+): "
    rf"(?:above 1|(?P<low>{_NUMBER})(?: to (?P<high>{_NUMBER}))?)"
)


@dataclass(frozen=True)
class Truth:
    """What maintainers published.

    Parameters
    ----------
    source : str
        Address of the publication.
    phase : str
        The phase, or total, that takes longer.
    slower, faster : str
        The environments, or values of an option.
    low, high : float or None
        Factor that was published; None where there is none.
    """

    source: str
    phase: str
    slower: str
    faster: str
    low: float | None
    high: float | None

    @classmethod
    def of(cls, file: Path) -> Truth:
        """Read the head of an experiment."""
        head = dict(re.findall(r"^# (\w+): +(.+)$", file.read_text(encoding="utf-8"), re.MULTILINE))
        expected = _EXPECTED.fullmatch(head.get("Expected", ""))
        if expected is None or not head.get("Source", "").startswith("https://"):
            raise ValueError(f"{file}: Source must be an address, Expected as docstring says")
        low = None if expected["low"] is None else float(expected["low"])
        high = low if expected["high"] is None else float(expected["high"])
        own = (expected[name] for name in ("phase", "slower", "faster"))
        return cls(head["Source"], *own, low, high)

    def measured(self, results: Path) -> Ratio:
        """Return the ratio of the two environments in a run."""
        times = {}
        for case in summarise(results).cases:
            name = case.sample.environment or case.variant
            if name in (self.slower, self.faster) and not case.raw and not case.invalid:
                times.setdefault(name, case.phases[self.phase].by_block)
        both = [times[self.slower], times[self.faster]]
        n = len(both[0].keys() & both[1].keys())
        inflation = variance_inflation([both], n, shared_cancels=True)
        found = ratio_of_times(*both, ALPHA, inflation)
        if found is None:
            raise ValueError(f"{results}: a time of {self.phase} is not above 0")
        return found

    def line(self, ratio: Ratio) -> str:
        """Return the line of the document."""
        shown = "shown" if ratio.low > 1 else "the other way" if ratio.high < 1 else "not shown"
        line = (
            f"{self.phase} of {self.slower} over {self.faster}: {ratio.value:.3g} "
            f"({ratio.low:.3g}–{ratio.high:.3g}), n={ratio.n}: {shown}"
        )
        if self.low is None or self.high is None:
            return line
        holds = ratio.low <= self.high and self.low <= ratio.high
        published = f"{self.low:g}" + (f" to {self.high:g}" if self.high != self.low else "")
        return f"{line}, {'within' if holds else 'without'} the published {published}"


def run(file: Path, out: Path, more: Sequence[str]) -> None:
    """Run an experiment."""
    command = [sys.executable, "-m", "pffbench", "run", str(file), "--out", str(out), *more]
    subprocess.run([*command, "--progress", "none"], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Run the experiments that are named, or compare runs that are there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="files of configs/issues (default: all)")
    parser.add_argument("--out", type=Path, required=True, help="directory for the results")
    parser.add_argument("--set", action="append", default=[], help="as that of pffbench run")
    given = parser.parse_args()
    names = given.names or sorted(file.stem for file in CONFIGS.glob("*.yaml"))
    for name in names:
        file, out = CONFIGS / f"{name}.yaml", given.out / name
        truth = Truth.of(file)
        if not out.exists():  # a run that is there is read again
            run(file, out, [word for change in given.set for word in ("--set", change)])
        print(f"{name}: {truth.line(truth.measured(out))}", flush=True)


if __name__ == "__main__":
    main()
