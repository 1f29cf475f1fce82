"""The search for the version of a package from which on a time or a count of a case is another.

Each step of the search is a run of two environments, of the good version and of another one. Of a
time it ends when their comparison is decided; a count takes one block.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

import pffbench
from pffbench.environments.blocks import MakesSchedule
from pffbench.environments.coordinator import measured, measured_further
from pffbench.environments.instructions import check_countable, count_instructions
from pffbench.environments.merge import MergingRecorder
from pffbench.environments.processes import last_line, run_bounded, stop_before_start
from pffbench.errors import NOT_VALID, VALID, StoppedError, UserError
from pffbench.experiment.load import load_experiment, to_plain
from pffbench.experiment.plan import Plan
from pffbench.parallel.batch_job import StopSignals
from pffbench.phases import TOTALS
from pffbench.record.run import MeasuredRun
from pffbench.record.run_json import LARGEST, RunRecord
from pffbench.regular_files import read_regular, write_replacing
from pffbench.run.options import RunOptions, add_arguments
from pffbench.run.schedule import Schedule
from pffbench.run.spec import BlockSpec
from pffbench.summary.dependence import variance_inflation
from pffbench.summary.export import write_summary
from pffbench.summary.rank_test import ALPHA, Ratio, Times, ratio_of_times
from pffbench.summary.results import write_results
from pffbench.summary.summary import CaseSummary, summarise, summary_of

_VERSION = r"[0-9]{1,18}(?:\.[0-9]{1,18}){0,20}"
_REQUIREMENT = re.compile(rf"(?P<package>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>{_VERSION})")
#: The checkout that this code is in, if it is in one.
_CHECKOUT = Path(pffbench.__file__).parents[2]
#: Counts that differ by more than this part, of all phases, have changed.
_COUNT_CHANGED = 0.01
#: Looks of a search, the first one, and the blocks from which on a dependence of blocks shows.
_LOOKS, _FIRST_LOOK, _SHOW_DEPENDENCE = 6, 8, 20
#: Seconds in which pip lists versions, and in which an environment is made.
_LISTING_SECONDS, _MAKING_SECONDS = 120.0, 3600.0
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
    resume : bool
        Whether a search that was stopped goes on there.
    progress : {"auto", "bar", "plain", "none"}
        Form of the progress reports of the runs.
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
    resume: bool
    progress: str
    launcher: str | None
    scratch: str | None

    @property
    def function(self) -> str | None:
        """The library function whose instructions are counted, if any are."""
        kind, _, function = (self.count or "").partition(":")
        return function if kind == "instructions" else None


Standing = Literal["more", "less", "equal", "like", "unlike", "undecided"]


class Question(msgspec.Struct, frozen=True):
    """The question about a version, which blocks of repetitions are run to answer.

    The ratio of its time to that of the good version is compared with a point, by the interval of
    the signed-rank test over blocks. Each look has an equal part of the error. Ranks are started
    anew in each block, so that blocks are taken for independent until there are enough of them to
    see otherwise.

    Parameters
    ----------
    point : float
        The ratio that it is compared with: 1, or half-way to that of the bad version.
    margin : float
        Without another point, the smallest difference that is searched for.
    """

    point: float = 1.0
    margin: float = 0.02

    def answer(
        self, new: Times, good: Times, most: int, *, ended: bool
    ) -> tuple[Standing, Ratio | None]:
        """Return what is shown by the blocks up to now, and the ratio at the look that shows it.

        Parameters
        ----------
        new, good : dict of int to float
            Seconds of both versions by block.
        most : int
            Most blocks.
        ended : bool
            Whether no further block follows.
        """
        blocks = sorted(new.keys() & good.keys())
        looks = looks_of(most)
        known: Ratio | None = None
        for n in [look for look in looks if look <= len(blocks)] + [len(blocks)] * ended:
            first = blocks[:n]
            one, other = ({block: way[block] for block in first} for way in (new, good))
            dependent = n >= _SHOW_DEPENDENCE
            inflation = variance_inflation([[one, other]], n, cautious=False) if dependent else 1.0
            known = ratio_of_times(one, other, ALPHA / len(looks), inflation, paired=True)
            if known is not None and (standing := self._standing(known)) != "undecided":
                return standing, known
        return "undecided", known

    def _standing(self, ratio: Ratio) -> Standing:
        if self.point == 1.0:
            if ratio.low > 1 or ratio.high < 1:
                return "more" if ratio.low > 1 else "less"
            return "equal" if ratio.is_equivalent(self.margin) else "undecided"
        above = ratio.low > self.point
        if not above and ratio.high >= self.point:
            return "undecided"
        return "like" if above == (self.point > 1) else "unlike"


def looks_of(most: int) -> list[int]:
    """Return the numbers of blocks after which a search looks, from the first that can show it."""
    if most <= _FIRST_LOOK:
        return [most]
    step = (most / _FIRST_LOOK) ** (1 / (_LOOKS - 1))
    return sorted({round(_FIRST_LOOK * step**place) for place in range(_LOOKS)})


class TriedVersion(msgspec.Struct, frozen=True):
    """A version beside the good one.

    Parameters
    ----------
    version : str
        The version.
    ratio : Ratio
        Its time or count over that of the good version.
    standing : {"more", "less", "equal", "like", "unlike", "undecided"}
        Whether it is shown to take more or less than the good version, or to differ from it by
        over or by under half as much as the bad one.
    fast, slow : CaseSummary or None
        The good version and this one, which tell the reason.
    directory : str
        Its results.
    """

    version: str
    ratio: Ratio
    standing: Standing
    fast: CaseSummary | None
    slow: CaseSummary | None
    directory: str


def bisect(search: Search, stop: StopSignals, say: Callable[[str], None]) -> int:
    """Search for the first changed version, and print the evidence; return the exit status.

    Parameters
    ----------
    search : Search
        What is searched.
    stop : StopSignals
        Tells that the search is to end.
    say : callable
        Receives the lines.

    Raises
    ------
    UserError
        The input is wrong, or an environment cannot be made or run.
    """
    package, first = _requirement(search.good, "--good")
    other, last = _requirement(search.bad, "--bad")
    if package != other:
        raise UserError(f"--bad {search.bad}: it is of another package than --good {search.good}")
    versions = _between(package, first, last, search.versions, stop)
    loaded = load_experiment(search.experiment)
    if len([case for _, case in loaded.cases if not case.roofline]) != 1:
        raise UserError(f"{search.experiment}: bisect takes an experiment with one case")
    if search.function is not None:
        check_countable(loaded, search.function)
    content = to_plain(loaded.experiment)
    content["step_repetitions"] = loaded.experiment.step_repetitions
    content |= {} if search.launcher is None else {"launcher": search.launcher}
    trials = _Trials(search, package, first, content, stop)
    trials.begin()
    say(f"{package} {first} to {last}: {len(versions)} versions")
    try:
        return _searched(search, trials, package, versions, say)
    except _UnknownCountError:
        trials.undo()
        raise


def _searched(
    search: Search,
    trials: _Trials,
    package: str,
    versions: Sequence[str],
    say: Callable[[str], None],
) -> int:
    words, (first, *_, last) = _Words.of(search), versions
    worst = trials.of(last, Question(margin=search.margin))
    say(words.line(worst, package))
    if worst.standing in ("equal", "undecided"):
        say(f"NOT SHOWN: {package} {last} is not shown to {words.differ} {first}")
        return NOT_VALID
    half = Question(math.sqrt(worst.ratio.value))
    before, since, at_since = first, last, worst
    while (left := versions[versions.index(before) + 1 : versions.index(since)]):
        trial = trials.of(left[len(left) // 2], half)
        say(words.line(trial, package))
        if trial.standing == "undecided":
            say(f"NOT DECIDED: it changed after {package} {before}, in {since} at the latest")
            return NOT_VALID
        if trial.standing == "like":
            since, at_since = trial.version, trial
        else:
            before = trial.version
    if since == last and search.count is None:
        # Its run has set what the others are compared with. A difference by chance is not there
        # again in a run of its own.
        again = trials.of(last, half, again=True)
        say(words.line(again, package))
        if again.standing != "like":
            say(f"NOT SHOWN: {package} {last} differed once from {first}, and not again")
            return NOT_VALID
    first_one, last_one = words.ends[worst.standing]
    say(f"FOUND: {package} {since} is {first_one}; {before} is {last_one}")
    say(_reason(at_since, search))
    return VALID


class _Words(msgspec.Struct, frozen=True):
    """Words for a search by time or by a count."""

    #: The standings, and the first version after and the last one before the change.
    standings: Mapping[str, str]
    ends: Mapping[str, tuple[str, str]]
    differ: str

    @classmethod
    def of(cls, search: Search) -> _Words:
        told = {
            "equal": "like it",
            "undecided": "not decided",
            "like": "like the bad version",
            "unlike": "like the good version",
        }
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


def _between(
    package: str, first: str, last: str, given: Sequence[str], stop: StopSignals
) -> list[str]:
    """Return the versions to search, the good and the bad one at the ends."""
    if wrong := [version for version in given if not re.fullmatch(_VERSION, version)]:
        raise UserError(f"--versions: {wrong[0]} is no version; separate them by commas")
    if _order(first) >= _order(last):
        raise UserError(f"--good {first} must be an earlier version than --bad {last}")
    known = sorted({*(given or _published(package, stop)), first, last}, key=_order)
    return known[known.index(first) : known.index(last) + 1]


def _order(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _published(package: str, stop: StopSignals) -> list[str]:
    """Return the released versions of a package, as pip lists them."""
    python = _CHECKOUT / ".build" / "tools" / "bin" / "python"
    command = [str(python if python.exists() else sys.executable), "-P", "-m", "pip"]
    done = run_bounded(
        [*command, "index", "versions", package],
        dict(os.environ),
        _LISTING_SECONDS,
        stop_before_start(stop),
        "Available versions: ",
    )
    if not done.messages:
        raise UserError(
            f"pip cannot list the versions of {package} ({last_line(done.text)}); name those "
            "between with --versions"
        )
    return [word for word in done.messages[0].split(", ") if re.fullmatch(_VERSION, word)]


class _UnknownCountError(UserError):
    """Nothing is counted by the name that was given."""


class _Trials:
    """Makes environments and runs them beside that of the good version.

    Times are compared within blocks, so the good version runs beside each other one. Counts are
    exact: it is counted once.
    """

    def __init__(
        self,
        search: Search,
        package: str,
        good: str,
        experiment: dict[str, Any],
        stop: StopSignals,
    ) -> None:
        self._search = search
        self._package = package
        self._good = good
        self._experiment = experiment
        self._stop = stop
        self._out = Path(search.out)
        #: Counts of the good version: those of all counters, and its instructions.
        self._before: CaseSummary | None = None
        self._instructions: dict[str, float] = {}
        self._maker = _CHECKOUT / "setup" / "env"
        if not self._maker.is_file():
            raise UserError("bisect makes environments with setup/env, which only a checkout has")

    def begin(self) -> None:
        """Make the directory of the search, or see that it is of the same search.

        Raises
        ------
        UserError
            It is there already, or is of another search.
        """
        search, file = self._search, self._out / "search.json"
        told = {
            "good": search.good, "bad": search.bad, "total": search.total, "count": search.count,
            "margin": search.margin, "experiment": self._experiment,
        }  # fmt: skip
        if not search.resume:
            if self._out.exists():
                raise UserError(f"--out {self._out}: already there; name a new directory")
            self._out.mkdir(parents=True)
            write_replacing(file, json.dumps(told, default=str))
            return
        try:
            before = json.loads(read_regular(file, LARGEST))
        except (OSError, ValueError):
            raise UserError(f"--resume {self._out}: there is no search to go on with") from None
        told = json.loads(json.dumps(told, default=str))
        if before != told:
            known = before if isinstance(before, dict) else {}
            keys = [key for key, value in told.items() if known.get(key) != value]
            raise UserError(
                f"--resume {self._out}: it is another search ({', '.join(keys)}); give the options "
                "with which it began"
            )

    def undo(self) -> None:
        """Remove what a search made that cannot be."""
        if not self._search.resume:
            shutil.rmtree(self._out, ignore_errors=True)

    def of(self, version: str, question: Question, *, again: bool = False) -> TriedVersion:
        """Run a version beside the good one until the question is answered, or count it.

        Parameters
        ----------
        version : str
            The version.
        question : Question
            What is asked about its time.
        again : bool
            Whether it has had a run before.
        """
        alone = self._before is not None
        names = [version] if alone else [self._good, version]
        made = {name: self._environment(name) for name in names}
        directory = self._out / f"{self._good}-{version}{'-again' * again}"
        content = self._experiment | {
            "environments": [{"name": n, "python": python} for n, python in made.items()],
            "roofline": False,
            "counters": True,
            "margin": min(self._search.margin, 1.0),
        }
        if self._search.count is not None:
            content["repetitions"] = 1
        file = self._out / f"{directory.name}.yaml"
        write_replacing(file, json.dumps(content))
        self._run(file, directory, question, version)
        return self._result(version, question, directory, file)

    def _run(self, file: Path, directory: Path, question: Question, version: str) -> None:
        """Measure, unless an earlier start of the search has done so."""
        schedule: MakesSchedule = Schedule
        if self._search.count is None:
            schedule = partial(_UntilAnswered, question, self._search.total, version, self._good)
        loaded = load_experiment(str(file))
        if directory.exists():
            try:
                if RunRecord.load(directory).status == "finished":
                    return
            except ValueError as error:
                raise UserError(f"{error}; remove {directory}") from None
            run = measured_further(self._options(file, "--resume", directory), self._stop, schedule)
        else:
            options = self._options(file, "--out", directory)
            run = measured(options, loaded, self._stop, schedule)
        try:
            with run as recorder:
                if recorder.run_record.status == "interrupted":
                    raise StoppedError
                summary = summarise(directory)
                write_summary(summary, directory)
                write_results(summary, directory)
        except StoppedError:
            raise StoppedError(self._how_to_go_on()) from None
        if recorder.exit_status != VALID:
            why = recorder.run_record.objection
            raise UserError(f"{self._package} {version}: {why} ({directory})")

    def _options(self, file: Path, option: str, directory: Path) -> RunOptions:
        parser = argparse.ArgumentParser()
        add_arguments(parser)
        told = [str(file), option, str(directory), "--progress", self._search.progress]
        scratch = self._search.scratch
        told += [] if scratch is None else ["--scratch", scratch]
        return RunOptions.of_arguments(parser.parse_args(told))

    def _result(
        self, version: str, question: Question, directory: Path, file: Path
    ) -> TriedVersion:
        search, run = self._search, MeasuredRun.load(directory)
        summary = summary_of(run)
        cases = {case.sample.environment: case for case in summary.cases}
        if search.count is not None:
            return self._counts(version, question, cases, str(directory), file)
        if any(a.total == search.total and a.too_short for a in summary.answers):
            raise UserError(f"{directory}: too short to be compared; take larger or more arrays")
        new, good = (
            run.seconds[cases[name].sample.case].get(search.total, {})
            for name in (version, self._good)
        )
        standing, ratio = question.answer(new, good, _most(run.record.experiment), ended=True)
        if ratio is None:
            raise UserError(f"{directory}: it has no times of {search.total} to compare")
        return TriedVersion(
            version, ratio, standing, cases[self._good], cases[version], str(directory)
        )

    def _counts(
        self,
        version: str,
        question: Question,
        cases: Mapping[str, CaseSummary],
        directory: str,
        file: Path,
    ) -> TriedVersion:
        """Return the result for a version by the ratio of a count, which has no error."""
        before = self._before = self._before or cases[self._good]
        if self._search.function is None:
            ratio = _counted(before, cases[version], self._search, directory)
        else:
            ratio = self._counted_instructions(version, file)
        standing: Standing = "equal" if abs(ratio - 1) <= _COUNT_CHANGED else "less"
        if standing == "less" and ratio > 1:
            standing = "more"
        if question.point != 1.0:
            mine, half = math.log(ratio), math.log(question.point)
            standing = "like" if mine * half > 0 and abs(mine) > abs(half) else "unlike"
        exact = Ratio(1, ratio, ratio, ratio, 0.0)
        return TriedVersion(version, exact, standing, before, cases[version], directory)

    def _counted_instructions(self, version: str, file: Path) -> float:
        """Return the instructions of a version over those of the good one, each counted once."""
        search, known = self._search, self._out / "instructions.json"
        assert search.function is not None
        if not self._instructions and known.exists():
            told = read_regular(known, LARGEST)
            self._instructions = msgspec.json.decode(told, type=dict[str, float])
        loaded = load_experiment(str(file))
        left = [e for e in loaded.experiment.environments if e.name not in self._instructions]
        if left:
            one = replace(loaded.experiment, environments=tuple(left))
            counted = count_instructions(
                replace(loaded, experiment=one), search.function, search.scratch, self._stop,
                lambda text: None if search.progress == "none" else print(text, flush=True),
            )  # fmt: skip
            self._instructions |= {count.environment: count.each for count in counted}
            write_replacing(known, json.dumps(self._instructions))
        return self._instructions[version] / self._instructions[self._good]

    def _environment(self, version: str) -> str:
        name = f"{self._package}-{version}"
        done = run_bounded(
            [str(self._maker), name, f"{self._package}=={version}"],
            dict(os.environ),
            _MAKING_SECONDS,
            self._keep_going,
        )
        if done.status != VALID:
            raise UserError(last_line(done.text).removeprefix("setup/env: "))
        return str(_CHECKOUT / ".envs" / name / "bin" / "python")

    def _keep_going(self) -> None:
        if self._stop.asked:
            raise StoppedError(self._how_to_go_on())

    def _how_to_go_on(self) -> str:
        return (
            "the search was stopped; go on with the same options and "
            f"--resume {self._out} in place of --out"
        )


class _UntilAnswered:
    """Schedule of a run that ends when a question is answered."""

    def __init__(
        self,
        question: Question,
        total: str,
        new: str,
        good: str,
        plan: Plan,
        record: MergingRecorder,
    ) -> None:
        self._question, self._total, self._names = question, total, (new, good)
        self._plan, self._record = plan, record

    def first(self) -> BlockSpec:
        """Return a block of both versions."""
        both = range(len(self._plan.cases))
        return BlockSpec(tuple(both), dict.fromkeys(both, 1))

    def after(self, block: int, passed: float, expected: Mapping[str, float]) -> BlockSpec:
        """Return the next block, or none."""
        experiment = self._plan.experiment
        budget = experiment.time_budget
        late = budget is not None and passed + sum(expected.values()) > budget
        failed = any("failure" in entry for entry in self._record.cases.values())
        times = self._record.totals(block).get(self._total, {})
        of = {case.environment: times.get(case.id, {}) for case in self._plan.cases}
        most = experiment.blocks - experiment.warmup
        new, good = (of.get(name, {}) for name in self._names)
        standing, _ = self._question.answer(new, good, most, ended=False)
        if late or failed or standing != "undecided":
            counted = block + 1 - experiment.warmup
            why = "the question of the search is answered" if not late else "the time budget ended"
            if counted < most and not failed:
                self._record.stop([case.id for case in self._plan.cases], counted, why)
            return BlockSpec((), {})
        return self.first()


def _most(experiment: Mapping[str, Any]) -> int:
    """Return the most blocks that count."""
    fixed = experiment["repetitions"]
    return int(experiment["max_repetitions"] if fixed == "auto" else fixed)


def _counted(good: CaseSummary, new: CaseSummary, search: Search, directory: str) -> float:
    """Return the ratio of a count.

    Raises
    ------
    _UnknownCountError
        There is no such count.
    """
    known = {name for phase, name in good.counts if phase in TOTALS[search.total]}
    before, mine = (
        sum(
            count
            for (phase, name), count in case.counts.items()
            if name == search.count and phase in TOTALS[search.total]
        )
        for case in (good, new)
    )
    if not mine or not before:
        raise _UnknownCountError(
            f"--count {search.count}: nothing is counted by that name; counted are: "
            f"{', '.join(sorted(known))} ({directory})"
        )
    return mine / before


def _reason(trial: TriedVersion, search: Search) -> str:
    """Return which counts changed, and of a time whether the processor time did."""
    fast, slow, total = trial.fast, trial.slow, search.total
    assert fast is not None
    assert slow is not None
    # A single block says how much was done, not how long it takes.
    told = f"; {_processor_time(fast, slow, total)}" if search.count is None else ""
    changed = list(_changed_counts(fast.counts, slow.counts, total))
    if changed:
        return f"changed counts: {'; '.join(changed)}{told}"
    if not any(counter in _LAYERS for _, counter in slow.counts):
        return f"system calls and their bytes were not counted here, so no layer is named{told}"
    return f"no count of system calls or bytes changed{told}"


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
