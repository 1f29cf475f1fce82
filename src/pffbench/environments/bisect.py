"""The search for the version of a package from which on a time or a count of a case is another.

Each step of the search is a run of two environments, of the good version and of another one. Of a
time it ends when their comparison is decided; a count takes one block.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

import pffbench
from pffbench.environments.instructions import check_countable, count_instructions
from pffbench.environments.start import last_line
from pffbench.errors import NOT_VALID, VALID, UserError
from pffbench.experiment.load import load_experiment, to_plain
from pffbench.phases import TOTALS
from pffbench.summary.headline import Contender
from pffbench.summary.rank_test import Ratio
from pffbench.summary.summary import CaseSummary, Summary, summarise

_VERSION = r"[0-9]+(?:\.[0-9]+)*"
_REQUIREMENT = re.compile(rf"(?P<package>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>{_VERSION})")
#: The checkout that this code is in, if it is in one.
_CHECKOUT = Path(pffbench.__file__).parents[2]
#: Counts that differ by more than this part, of all phases, have changed.
_COUNT_CHANGED = 0.01
#: Part of a longer time that must be processor time for it to be named so.
_MOSTLY = 0.5
#: Counters of work and not of time, and the layer whose work each counts.
_LAYERS = {
    "write_calls": "system calls",
    "read_calls": "system calls",
    "written_bytes": "bytes of system calls",
    "read_bytes": "bytes of system calls",
}


class Search(msgspec.Struct, frozen=True):
    """What is searched.

    Parameters
    ----------
    experiment : str
        Experiment file with one case.
    good, bad : str
        Requirements of one package, such as ``h5py==3.13.0``.
    total : {"write_total", "read_total"}
        Time that changed, or during which the count did.
    count : str, optional
        Counter that changed, such as ``write_calls``, or ``instructions:FUNCTION``; None for a
        time.
    margin : float
        Smallest difference of the bad version that is searched for, as a part.
    versions : tuple of str
        Versions between the two, in order; those of the package index if empty.
    out : str
        Directory for the runs.
    launcher : str, optional
        Command that starts the ranks; that of the experiment if not given.
    scratch : str, optional
        Directory on the file system under test; that of `pffbench run` if not given.
    """

    experiment: str
    good: str
    bad: str
    total: str
    count: str | None
    margin: float
    versions: tuple[str, ...]
    out: str
    launcher: str | None
    scratch: str | None

    @property
    def function(self) -> str | None:
        """The library function whose instructions are counted, if any are."""
        kind, _, function = (self.count or "").partition(":")
        return function if kind == "instructions" else None


class TriedVersion(msgspec.Struct, frozen=True):
    """A version beside the good one.

    Parameters
    ----------
    version : str
        The version.
    ratio : Ratio
        Its time or count over that of the good version.
    standing : {"more", "less", "equal", "undecided"}
        Whether it is shown to take more or less.
    summary : Summary
        The run.
    directory : str
        Its results.
    """

    version: str
    ratio: Ratio
    standing: Literal["more", "less", "equal", "undecided"]
    summary: Summary
    directory: str

    def is_like(self, other: TriedVersion) -> bool:
        """Return whether it differs from the good version as another one does, or by over half."""
        mine, its = (math.log(trial.ratio.value) for trial in (self, other))
        return self.standing == other.standing and abs(mine) > abs(its) / 2


def bisect(search: Search, say: Callable[[str], None]) -> int:
    """Search for the first changed version, and print the evidence; return the exit status.

    Raises
    ------
    UserError
        The input is wrong, or an environment cannot be made or run.
    """
    package, first = _requirement(search.good, "--good")
    other, last = _requirement(search.bad, "--bad")
    if package != other:
        raise UserError(f"--bad {search.bad}: it is of another package than --good {search.good}")
    versions = _between(package, first, last, search.versions)
    loaded = load_experiment(search.experiment)
    if len([case for _, case in loaded.cases if not case.roofline]) != 1:
        raise UserError(f"{search.experiment}: bisect takes an experiment with one case")
    if search.function is not None:
        check_countable(loaded, search.function)
    out = Path(search.out)
    if out.exists():
        raise UserError(f"--out {out}: already there; name a new directory")
    content = to_plain(loaded.experiment)
    content["step_repetitions"] = loaded.experiment.step_repetitions
    content |= {} if search.launcher is None else {"launcher": search.launcher}
    trials = _Trials(search, package, first, content, out)
    say(f"{package} {first} to {last}: {len(versions)} versions")
    words = _Words.of(search)
    worst = trials.of(last, search.margin)
    say(words.line(worst, package))
    if worst.standing in ("equal", "undecided"):
        say(f"NOT SHOWN: {package} {last} is not shown to {words.differ} {first}")
        return NOT_VALID
    margin = math.expm1(abs(math.log(worst.ratio.value)) / 2)
    before, since, at_since = first, last, worst
    while (left := versions[versions.index(before) + 1 : versions.index(since)]):
        trial = trials.of(left[len(left) // 2], max(margin, 0.01))
        say(words.line(trial, package))
        if trial.standing == "undecided":
            say(f"NOT DECIDED: it changed after {package} {before}, in {since} at the latest")
            return NOT_VALID
        if trial.is_like(worst):
            since, at_since = trial.version, trial
        else:
            before = trial.version
    first_one, last_one = words.ends[worst.standing]
    say(f"FOUND: {package} {since} is {first_one}; {before} is {last_one}")
    say(_reason(at_since, search.total))
    return VALID


class _Words(msgspec.Struct, frozen=True):
    """Words for a search by time or by a count."""

    #: The standings, and the first version after and the last one before the change.
    standings: Mapping[str, str]
    ends: Mapping[str, tuple[str, str]]
    differ: str

    @classmethod
    def of(cls, search: Search) -> _Words:
        told = {"equal": "like it", "undecided": "not decided"}
        if search.count is None:
            return cls(
                {"more": "slower", "less": "faster", **told},
                {
                    "more": ("the first slow version", "the last fast one"),
                    "less": ("the first fast version", "the last slow one"),
                },
                "be slower or faster than",
            )
        name = search.count
        if search.function is not None:
            name = f"instructions in {search.function}"
        ends = (f"the first version with other {name}", "the last one without")
        return cls(
            {"more": f"more {name}", "less": f"fewer {name}", **told},
            {"more": ends, "less": ends},
            f"have other {name} than",
        )

    def line(self, trial: TriedVersion, package: str) -> str:
        """Return the evidence of a version in a line."""
        ratio = trial.ratio
        interval = f" ({ratio.low:.3f}–{ratio.high:.3f})" if ratio.high > ratio.low else ""
        return (
            f"{package} {trial.version}: {ratio.value:.3f} times the good version{interval}, "
            f"{self.standings[trial.standing]}, {ratio.n} repetitions; {trial.directory}"
        )


def _requirement(text: str, option: str) -> tuple[str, str]:
    match = _REQUIREMENT.fullmatch(text)
    if match is None:
        raise UserError(f"{option} {text}: name one version of a package, such as h5py==3.13.0")
    return match["package"], match["version"]


def _between(package: str, first: str, last: str, given: Sequence[str]) -> list[str]:
    """Return the versions to search, the good and the bad one at the ends."""
    if wrong := [version for version in given if not re.fullmatch(_VERSION, version)]:
        raise UserError(f"--versions: {wrong[0]} is no version; separate them by commas")
    if _order(first) >= _order(last):
        raise UserError(f"--good {first} must be an earlier version than --bad {last}")
    known = sorted({*(given or _published(package)), first, last}, key=_order)
    return known[known.index(first) : known.index(last) + 1]


def _order(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _published(package: str) -> list[str]:
    """Return the released versions of a package, as pip lists them."""
    python = _CHECKOUT / ".build" / "tools" / "bin" / "python"
    command = [str(python if python.exists() else sys.executable), "-P", "-m", "pip"]
    done = subprocess.run(
        [*command, "index", "versions", package], capture_output=True, text=True, check=False
    )
    _, found, versions = done.stdout.partition("Available versions: ")
    if not found:
        raise UserError(
            f"pip cannot list the versions of {package} ({last_line(done.stderr)}); name those "
            "between with --versions"
        )
    words = versions.partition("\n")[0].split(", ")
    return [version for version in words if re.fullmatch(_VERSION, version)]


class _Trials:
    """Makes environments and runs them beside that of the good version."""

    def __init__(
        self, search: Search, package: str, good: str, experiment: dict[str, Any], out: Path
    ) -> None:
        self._search = search
        self._package = package
        self._good = good
        self._experiment = experiment
        self._out = out
        self._maker = _CHECKOUT / "setup" / "env"
        if not self._maker.is_file():
            raise UserError("bisect makes environments with setup/env, which only a checkout has")

    def of(self, version: str, margin: float) -> TriedVersion:
        """Run a version beside the good one until it is decided, or counted."""
        both = {name: self._environment(name) for name in (self._good, version)}
        directory = self._out / f"{self._good}-{version}"
        directory.parent.mkdir(parents=True, exist_ok=True)
        content = self._experiment | {
            "environments": [{"name": n, "python": python} for n, python in both.items()],
            "roofline": False,
            "counters": True,
            "margin": min(margin, 1.0),
        }
        if self._search.count is not None:
            content["repetitions"] = 1
        file = self._out / f"{directory.name}.yaml"
        file.write_text(json.dumps(content), encoding="utf-8")
        scratch = self._search.scratch
        done = subprocess.run(
            [
                sys.executable, "-m", "pffbench", "run", str(file), "--out", str(directory),
                "--progress", "none", *(() if scratch is None else ("--scratch", scratch)),
            ],
            capture_output=True, text=True, check=False,
            # Without what an MPI that this process has started puts beside it: the run would
            # take itself for a rank.
            env=dict(os.environ),
        )  # fmt: skip
        if done.returncode != VALID:
            raise UserError(f"{self._package} {version}: {last_line(done.stderr or done.stdout)}")
        summary = summarise(directory)
        if self._search.function is None:
            return _trial(version, self._good, self._search, summary, str(directory))
        good, new = count_instructions(
            load_experiment(str(file)), self._search.function, scratch
        )
        return _by_count(version, new.each / good.each, summary, str(directory))

    def _environment(self, version: str) -> str:
        name = f"{self._package}-{version}"
        done = subprocess.run(
            [str(self._maker), name, f"{self._package}=={version}"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise UserError(last_line(done.stderr).removeprefix("setup/env: "))
        return str(_CHECKOUT / ".envs" / name / "bin" / "python")


def _trial(
    version: str, good: str, search: Search, summary: Summary, directory: str
) -> TriedVersion:
    """Return the result of a run for the version, over the good one."""
    if search.count is not None:
        return _by_count(
            version, _counted(version, good, search, summary, directory), summary, directory
        )
    answers = [answer for answer in summary.answers if answer.total == search.total]
    if not answers or answers[0].too_short:
        raise UserError(f"{directory}: too short to be compared; take larger or more arrays")
    (other,) = answers[0].others
    is_slower = answers[0].name == good
    ratio = other.ratio if is_slower else other.ratio.inverse
    return TriedVersion(version, ratio, _standing(other, is_slower), summary, directory)


def _by_count(version: str, ratio: float, summary: Summary, directory: str) -> TriedVersion:
    """Return the result for a version by the ratio of a count, which has no error."""
    standing: Literal["more", "less", "equal"] = "equal"
    if abs(ratio - 1) > _COUNT_CHANGED:
        standing = "more" if ratio > 1 else "less"
    return TriedVersion(version, Ratio(1, ratio, ratio, ratio, 0.0), standing, summary, directory)


def _standing(
    other: Contender, is_slower: bool
) -> Literal["more", "less", "equal", "undecided"]:
    if other.standing != "slower":
        return other.standing
    return "more" if is_slower else "less"


def _counted(
    version: str, good: str, search: Search, summary: Summary, directory: str
) -> float:
    """Return the ratio of a count."""
    assert search.count is not None
    of = {case.sample.environment: case.counts for case in summary.cases}
    known = {name for phase, name in of[good] if phase in TOTALS[search.total]}
    mine, before = (
        sum(
            count
            for (phase, name), count in of[environment].items()
            if name == search.count and phase in TOTALS[search.total]
        )
        for environment in (version, good)
    )
    if not mine or not before:
        raise UserError(
            f"--count {search.count}: nothing is counted by that name; counted are: "
            f"{', '.join(sorted(known))} ({directory})"
        )
    return mine / before


def _reason(trial: TriedVersion, total: str) -> str:
    """Return which counts changed with the time, and whether the processor time did."""
    by_environment = {case.sample.environment: case for case in trial.summary.cases}
    slow = by_environment.pop(trial.version)
    (fast,) = by_environment.values()
    told = _processor_time(fast, slow, total)
    changed = list(_changed_counts(fast.counts, slow.counts, total))
    if changed:
        return f"changed counts: {'; '.join(changed)}; {told}"
    if not any(counter in _LAYERS for _, counter in slow.counts):
        return f"system calls and their bytes were not counted here, so no layer is named; {told}"
    return f"no count of system calls or bytes changed; {told}"


def _processor_time(fast: CaseSummary, slow: CaseSummary, total: str) -> str:
    """Return how much of the change of a time is of processor time."""
    before, after = fast.phases[total], slow.phases[total]
    if before.cpu_seconds is None or after.cpu_seconds is None:
        return "processor time was not recorded"
    longer = after.seconds.median - before.seconds.median
    of_a_rank = (after.cpu_seconds - before.cpu_seconds) / slow.sample.ranks
    told = f"processor seconds of a rank {of_a_rank:+.3g}, of {longer:+.3g} in all"
    # Both are negative in a faster version.
    is_processor = bool(longer) and of_a_rank / longer >= _MOSTLY
    return f"it is {'processor time' if is_processor else 'mostly waiting'} ({told})"


def _changed_counts(
    fast: Mapping[tuple[str, str], float], slow: Mapping[tuple[str, str], float], total: str
) -> Iterator[str]:
    for (phase, counter), count in slow.items():
        before = fast.get((phase, counter), 0.0)
        if phase not in TOTALS[total] or counter not in _LAYERS:
            continue
        whole = sum(n for (p, c), n in fast.items() if c == counter and p in TOTALS[total])
        if abs(count - before) > _COUNT_CHANGED * max(whole, 1.0):
            yield f"{_LAYERS[counter]} in {phase} ({counter}) {before:g} → {count:g}"
