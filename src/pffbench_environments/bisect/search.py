"""The search itself: its steps, its state on disk, and its sentences.

Each step is a run of two environments, of the good version and of another one. Of a time it ends
when their comparison is decided; a count takes one round.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from pffbench.cli import make_parser
from pffbench.errors import NOT_VALID, VALID, StoppedError, UserError
from pffbench.experiment.load import load_experiment, to_plain
from pffbench.job.batch_job import StopSignals
from pffbench.phases import TOTALS
from pffbench.record.run import MeasuredRun
from pffbench.record.run_json import RunRecord, digest_of
from pffbench.regular_files import LARGEST_RECORD, read_regular, write_replacing
from pffbench.results.cells import cells_of
from pffbench.results.judge import FEWEST, Ratio, Verdict
from pffbench.results.summary import CaseSummary, summarise, summary_of
from pffbench.run.options import RunOptions
from pffbench.run.schedule import Schedule
from pffbench.run.verdict import write_derived
from pffbench.text import one_line
from pffbench_environments.bisect.instructions import check_countable, count_instructions
from pffbench_environments.bisect.judging import (
    Question,
    Standing,
    UntilAnswered,
    count_of,
    most_rounds,
    reason,
)
from pffbench_environments.bisect.versions import (
    check_maker,
    make_environment,
    requirement,
    versions_between,
)
from pffbench_environments.coordinator import measured
from pffbench_environments.rounds import MakesSchedule


class Search(msgspec.Struct, frozen=True):
    """What is searched: the arguments of `pffbench bisect`."""

    #: Experiment file with one case.
    case: str
    #: Requirements of one package, such as ``h5py==3.13.0``.
    good: str
    bad: str
    #: Time that changed, or during which the count did: ``write`` or ``read``.
    total: str
    #: Counter that changed, such as ``write_calls``, or ``instructions:FUNCTION``; None for a time.
    count: str | None
    #: Versions between the two, in order; those of the package index if empty.
    versions: Sequence[str]
    #: Directory for the runs.
    out: str
    #: Directory of a search that was stopped, which is `out` then.
    resume: str | None
    #: Command that starts the ranks; that of the experiment if not given.
    launcher: str | None
    #: Directory on the file system under test; that of `pffbench run` if not given.
    scratch: str | None

    @property
    def function(self) -> str | None:
        """The library function whose instructions are counted, if any are."""
        kind, _, function = (self.count or "").partition(":")
        return function if kind == "instructions" else None


class TriedVersion(msgspec.Struct, frozen=True):
    """A version beside the good one."""

    version: str
    #: Its time or count, compared with that of the good version.
    verdict: Verdict
    standing: Standing
    #: The case with the good version and with this one, which tell the reason.
    good: CaseSummary
    new: CaseSummary
    #: Its results.
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
    package, first = requirement(search.good, "--good")
    other, last = requirement(search.bad, "--bad")
    if package != other:
        raise UserError(f"--bad {search.bad}: it is of another package than --good {search.good}")
    versions = versions_between(package, first, last, search.versions, stop)
    loaded = load_experiment(search.case)
    if len([case for _, case in loaded.cases if not case.roofline]) != 1:
        raise UserError(f"{search.case}: bisect takes an experiment with one case")
    if search.function is not None:
        check_countable(loaded, search.function)
    check_maker()
    content = to_plain(loaded.experiment)
    content["step_repetitions"] = loaded.experiment.step_repetitions
    # The launcher is not that of the file, which may come from anybody.
    content |= {"launcher": search.launcher, "starts": None}
    trials = Trials(search, package, first, content, stop)
    trials.begin()
    say(f"{package} {first} to {last}: {len(versions)} versions")
    return halve(search, trials, package, versions, say)


def halve(
    search: Search,
    trials: Trials,
    package: str,
    versions: Sequence[str],
    say: Callable[[str], None],
) -> int:
    """Try versions until the first changed one is found; return the exit status.

    Parameters
    ----------
    search, say
        As of `bisect`.
    trials : Trials
        Tries a version.
    package : str
        Name of the package.
    versions : sequence of str
        The versions, the good and the bad one at the ends.
    """
    words, (first, *_, last) = _Words.of(search), versions

    def tried(version: str, question: Question, *, again: bool = False) -> TriedVersion:
        trial = trials.of(version, question, again=again)
        say(words.line(trial, package))
        return trial

    worst = tried(last, Question())
    if worst.standing in ("same", "open"):
        say(f"NOT SHOWN: {package} {last} is not shown to {words.differ} {first}")
        return NOT_VALID
    between = Question(worst.verdict.ratio.value)
    before, since, at_since = first, last, worst
    while left := versions[versions.index(before) + 1 : versions.index(since)]:
        trial = tried(left[len(left) // 2], between)
        if trial.standing == "open":
            say(f"NOT DECIDED: it changed after {package} {before}, in {since} at the latest")
            return NOT_VALID
        if trial.standing == "like":
            since, at_since = trial.version, trial
        else:
            before = trial.version
    # Where the bad version is the first changed one, its run has set what the others are compared
    # with. A difference by chance is not there again in a run of its own.
    is_last = since == last and search.count is None
    if is_last and tried(last, between, again=True).standing != "like":
        say(f"NOT SHOWN: {package} {last} differed once from {first}, and not again")
        return NOT_VALID
    first_one, last_one = words.ends[worst.standing]
    say(f"FOUND: {package} {since} is {first_one}; {before} is {last_one}")
    say(reason(at_since.good, at_since.new, search.total, timed=search.count is None))
    return VALID


class _Words(msgspec.Struct, frozen=True):
    """Words for a search by time or by a count."""

    #: The standings, and the first version after and the last one before the change.
    standings: Mapping[str, str]
    ends: Mapping[str, tuple[str, str]]
    differ: str

    @classmethod
    def of(cls, search: Search) -> _Words:
        more, less, differ = "slower", "faster", "be slower or faster than"
        slow = ("the first slow version", "the last fast one")
        fast = ("the first fast version", "the last slow one")
        if (name := search.count) is not None:
            if search.function is not None:
                name = f"instructions in {search.function}"
            more, less, differ = f"more {name}", f"fewer {name}", f"have other {name} than"
            slow = fast = (f"the first version with other {name}", "the last one without")
        standings = {
            "slower": more,
            "faster": less,
            "same": "like it",
            "open": "not decided",
            "like": "like the bad version",
            "unlike": "like the good version",
        }
        return cls(standings, {"slower": slow, "faster": fast}, differ)

    def line(self, trial: TriedVersion, package: str) -> str:
        """Return the evidence of a version in a line."""
        ratio = trial.verdict.ratio
        interval = f" ({ratio.low:.3f}–{ratio.high:.3f})" if ratio.high > ratio.low else ""
        return (
            f"{package} {trial.version}: {ratio.value:.3f} times the good version{interval}, "
            f"{self.standings[trial.standing]}, {trial.verdict.rounds} rounds; {trial.directory}"
        )


class Trials:
    """Makes environments and runs them beside that of the good version.

    Times are compared within rounds, so the good version runs beside each other one. Counts are
    exact: it is counted once.

    Parameters
    ----------
    search : Search
        What is searched.
    package : str
        Name of the package.
    good : str
        Its good version.
    experiment : dict
        The experiment as plain data.
    stop : StopSignals
        Tells that the search is to end.
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
        #: Counts of the good version.
        self._before: CaseSummary | None = None

    def begin(self) -> None:
        """Make the directory of the search, or see that it is of the same search.

        Raises
        ------
        UserError
            It is there already, or is of another search.
        """
        search, file = self._search, self._out / "search.json"
        told = {key: getattr(search, key) for key in ("good", "bad", "total", "count")}
        text = json.dumps({**told, "experiment": self._experiment}, default=str)
        if search.resume is None:
            try:
                self._out.mkdir(parents=True)
            except FileExistsError:
                raise UserError(f"--out {self._out}: already there; name a new directory") from None
            write_replacing(file, text)
            return
        try:
            before = msgspec.json.decode(read_regular(file, LARGEST_RECORD), type=dict[str, Any])
        except (OSError, ValueError):
            raise UserError(f"--resume {self._out}: there is no search to go on with") from None
        if other := [key for key, value in json.loads(text).items() if before.get(key) != value]:
            raise UserError(
                f"--resume {self._out}: it is another search ({', '.join(other)}); give the "
                "options with which it began"
            )

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
        search, total = self._search, self._search.total
        names = [self._good, version] if self._before is None else [version]
        directory = self._out / f"{self._good}-{version}{'-again' * again}"
        content = self._experiment | {
            "environments": [
                {"name": n, "python": make_environment(self._package, n, self._keep_going)}
                for n in names
            ],
            "roofline": False,
            "counters": True,
        }
        if search.count is not None:
            content["repetitions"] = 1
        file = self._out / f"{directory.name}.yaml"
        write_replacing(file, json.dumps(content))
        self._run(file, directory, question, version)
        run = MeasuredRun.load(directory)
        summary = summary_of(run)
        cases = {case.keys["environment"]: case for case in summary.cases}
        new, good = cases[version], self._before or cases[self._good]
        if search.count is not None:
            self._before = good
            value = self._ratio_of_counts(version, good, new, file)
            standing = question.answer_by_count(value)
            verdict = Verdict("open", Ratio(value, value, value), 1)
            return TriedVersion(version, verdict, standing, good, new, str(directory))
        times = {c.keys["environment"]: c for c in cells_of(run) if c.keys["total"] == total}
        if not {version, self._good} <= times.keys():
            raise UserError(f"{directory}: it has no times to {total} to compare")
        if min(cell.median for cell in times.values()) < run.resolution:
            raise UserError(f"{directory}: too short to be compared; use larger or more arrays")
        most = most_rounds(load_experiment(str(file)).experiment)
        both = times[version].seconds, times[self._good].seconds
        standing, verdict = question.answer(*both, most)
        if not verdict.rounds:
            raise UserError(f"{directory}: fewer than {FEWEST} rounds decide nothing")
        return TriedVersion(version, verdict, standing, good, new, str(directory))

    def _run(self, file: Path, directory: Path, question: Question, version: str) -> None:
        """Measure, unless an earlier start of the search has done so."""
        schedule: MakesSchedule = Schedule
        if self._search.count is None:
            schedule = partial(UntilAnswered, question, self._search.total, version, self._good)
        loaded = load_experiment(str(file))
        began = directory.exists()
        if began:
            try:
                record = RunRecord.load(directory)
            except ValueError as error:
                raise UserError(f"{error}; remove {directory}") from None
            if record.status == "finished":
                return
            if digest_of(record.experiment) != digest_of(to_plain(loaded.experiment)):
                raise UserError(f"{directory}: a run of another experiment than {file}; remove it")
        options = self._options(*(["--resume"] if began else [str(file), "--out"]), str(directory))
        try:
            with measured(options, None if began else loaded, self._stop, schedule) as recorder:
                if recorder.run_record.status == "interrupted":
                    raise StoppedError
                summary = summarise(directory)
                for why in write_derived(summary, directory):
                    print(one_line(f"{directory}: {why}"), file=sys.stderr)
        except StoppedError:
            raise StoppedError(self._how_to_go_on()) from None
        if recorder.run_record.exit_status != VALID:
            why = recorder.run_record.objection
            raise UserError(f"{self._package} {version}: {why} ({directory})")

    def _options(self, *where: str) -> RunOptions:
        told = ["run", *where, "--trust"]
        if self._search.scratch is not None:
            told += ["--scratch", self._search.scratch]
        return RunOptions.of_arguments(make_parser("run").parse_args(told))

    def _ratio_of_counts(
        self, version: str, good: CaseSummary, new: CaseSummary, file: Path
    ) -> float:
        """Return the count of a version over that of the good one.

        Raises
        ------
        UserError
            There is no such count; a search that has just begun leaves nothing then.
        """
        search, total = self._search, self._search.total
        if search.function is not None:
            good_one = self._instructions_of(self._good, file, search.function)
            return self._instructions_of(version, file, search.function) / good_one
        assert search.count is not None
        mine, before = (count_of(case, total, search.count) for case in (new, good))
        if mine and before:
            return mine / before
        known = {name for phase, name in good.counts if phase in TOTALS[f"{total}_total"]}
        if search.resume is None:
            shutil.rmtree(self._out, ignore_errors=True)
        raise UserError(
            f"--count {search.count}: nothing is counted by that name; counted are: "
            f"{', '.join(sorted(known))} ({self._out})"
        )

    def _instructions_of(self, version: str, file: Path, function: str) -> float:
        """Return the instructions of a version, which are counted once."""
        known = self._out / f"{version}.instructions"
        if not known.exists():
            loaded = load_experiment(str(file))
            one = [each for each in loaded.experiment.environments if each.name == version]
            experiment = replace(loaded.experiment, environments=tuple(one))
            print(f"{version}: two runs under valgrind", flush=True)
            alone = replace(loaded, experiment=experiment)
            count = count_instructions(alone, function, self._search.scratch, self._stop)
            write_replacing(known, repr(count))
        return float(read_regular(known, LARGEST_RECORD))

    def _keep_going(self) -> None:
        if self._stop.asked:
            raise StoppedError(self._how_to_go_on())

    def _how_to_go_on(self) -> str:
        return (
            "the search was stopped; go on with the same options and "
            f"--resume {self._out} in place of --out"
        )
