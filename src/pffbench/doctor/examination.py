"""The examination: facts of all ranks, the checks on rank 0, and a run of the smallest experiment.

All ranks leave a collective step together, so that an error on one of them becomes a finding and
no rank waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import asdict, replace

from pffbench.doctor import libraries, locks, mpi_stack, node, scratch, stack, trial
from pffbench.doctor.finding import Finding, Findings, lines_of, look_at, problem
from pffbench.doctor.installation import find_installation
from pffbench.doctor.spack import check_spack
from pffbench.doctor.subject import Subject, look_around
from pffbench.errors import NOT_VALID, VALID, UserError
from pffbench.job.launcher import (
    check_launcher,
    leave_at_once,
    reason_against_mpi,
    start_ranks,
)
from pffbench.job.watchdog import Watchdog
from pffbench.mpi.agreement import AgreedStep, PhaseFailedError, sleeping_barrier
from pffbench.mpi.collectives import on_root
from pffbench.mpi.single import SingleProcess, lack_of_mpi
from pffbench.mpi.topology import Team
from pffbench.observe.clock import measure_floor
from pffbench.provenance.mpiio import mpi_io_facts
from pffbench.record.run_json import RunRecord
from pffbench.run.output import print_json
from pffbench.storage.page_cache import part_kept_in_cache
from pffbench.storage.scratch import Scratch
from pffbench.text import counted, without_digests

if TYPE_CHECKING:
    from mpi4py import MPI

    from pffbench.run.session import Session

Tried = tuple[bool, dict[str, str]]
Checks = tuple[tuple[str, Callable[[Subject], Findings]], ...]
#: Topic and check, in the order in which they are printed.
CHECKS: Checks = (
    ("Python", libraries.check_python),
    ("Spack", check_spack),
    ("Libraries", libraries.check_required),
    ("Libraries", libraries.check_optional),
    ("Libraries", libraries.check_plugins),
    ("HDF5", mpi_stack.check_hdf5),
    ("MPI", mpi_stack.check_mpi),
    ("Launcher", mpi_stack.check_launcher),
    ("Node", node.check_nodes),
    ("Environment", node.check_environment),
)
#: Those that look at the scratch directory, which is made when the others have been printed.
CHECKS_OF_SCRATCH: Checks = (
    ("Scratch", scratch.check_file_system),
    ("Scratch", scratch.check_directory),
    ("Scratch", locks.check_locks),
    ("MPI-IO", mpi_stack.check_mpi_io),
    ("Clock", node.check_clock),
    ("Known corruptions", stack.check_stack),
)
#: Topic of the run, and its directory of results.
RUN, OUT = "Parallel I/O", "results"
#: Version of what `--json` prints; a higher one changed or removed a key.
_JSON_VERSION = 2
#: Far more seconds than a step takes anywhere, also if ranks compete for cores.
_SECONDS = 120.0


class Report:
    """The findings of rank 0, printed as they come unless JSON is asked for."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._findings: list[Finding] = []

    def add(self, topic: str, check: Callable[[], Iterable[Finding]]) -> None:
        """Add the findings of a check."""
        for finding in look_at(topic, check):
            if not self._as_json:
                is_new = not self._findings or self._findings[-1].topic != topic
                print(*([topic] if is_new else []), *lines_of(finding), sep="\n", flush=True)
            self._findings.append(finding)

    def end(self, installation: str, abilities: list[trial.Ability]) -> int:
        """Print what runs here and the verdict, or all as JSON; return the exit status."""
        statuses = [finding.status for finding in self._findings]
        problems, warnings = statuses.count("problem"), statuses.count("warning")
        if self._as_json:
            print_json(
                {
                    "format": "pffbench doctor",
                    "version": _JSON_VERSION,
                    "problems": problems,
                    "warnings": warnings,
                    "installation": installation,
                    "findings": list(map(asdict, self._findings)),
                    "abilities": list(map(asdict, abilities)),
                }
            )
        else:
            print("What runs here", *trial.table_of(abilities), sep="\n")
            print(f"{counted(problems, 'problem')}, {counted(warnings, 'warning')}", flush=True)
        return NOT_VALID if problems else VALID


def examine(given: str | None, *, with_mpi: bool, known: bool, as_json: bool) -> int:
    """Examine software and machine on all ranks, and print the findings; collective.

    Parameters
    ----------
    given : str, optional
        The scratch parent that the user named.
    with_mpi : bool
        Whether MPI may be started, and libraries imported.
    known : bool
        Whether corruptions that public reports name are tried.
    as_json : bool
        Whether the findings are printed as JSON.

    Returns
    -------
    int
        The exit status.
    """
    report, no_mpi, comm = Report(as_json=as_json), "not looked at with --no-mpi", None
    if with_mpi:
        try:
            comm = start_ranks()
            check_launcher(comm.size)
        except UserError as error:  # in the one process that reports
            text, _, remedy = str(error).rpartition(": ")
            report.add("Launcher", lambda: [problem(text, remedy)])
            no_mpi, comm = "not looked at, since MPI would not find the other processes", None
    if comm is None:
        alone = cast("MPI.Intracomm", SingleProcess(no_mpi))
        return _Examination(alone, given, report, runs=False, known=known).run()
    return _Examination(comm, given, report, runs=True, known=known).run()


class _Examination:
    """An examination by all ranks; every method is collective.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        All ranks.
    given : str, optional
        The scratch parent that the user named.
    report : Report
        Gets the findings on rank 0.
    runs : bool
        Whether libraries may be imported, and the smallest experiment run.
    known : bool
        Whether corruptions that public reports name are tried.
    """

    def __init__(
        self, comm: MPI.Intracomm, given: str | None, report: Report, *, runs: bool, known: bool
    ) -> None:
        self._team = Team.of(comm)
        self._given = given
        self._report = report
        self._runs = runs
        self._known = known
        #: The facts, on rank 0.
        self._subject: Subject | None = None
        self._made: Scratch | None = None
        self._session: Session | None = None
        self._abilities: list[trial.Ability] = []

    def run(self) -> int:
        """Run all checks and the smallest experiment; return the exit status."""
        comm, report = self._team.comm, self._report
        with ExitStack() as held:
            try:
                with Watchdog(self._team, _SECONDS) as watchdog:
                    watchdog.begin("pffbench doctor", _SECONDS)
                    self._look_around()
                    watchdog.step("scratch directory")
                    self._look_at_scratch(held)
                self._try()
            except PhaseFailedError as error:
                failure = problem(str(error))
                report.add("Ranks", lambda: [failure])
            sleeping_barrier(comm)
            report.add("Scratch", lambda: _close(held))
        status = VALID
        if self._team.is_root:
            summary = find_installation().summary
            status = report.end(summary, self._abilities)
        status = int(comm.bcast(status))
        if self._session is not None and self._session.abandoned:
            leave_at_once(comm, status)
        return status

    def _look_around(self) -> None:
        no_mpi = lack_of_mpi(self._team.comm) or ""
        self._subject = look_around(self._team, self._given, no_mpi, imports=self._runs)
        self._check(CHECKS)

    def _check(self, checks: Checks) -> None:
        if (subject := self._subject) is not None:
            for topic, check in checks:
                self._report.add(topic, partial(check, subject))

    def _look_at_scratch(self, held: ExitStack) -> None:
        """Create a directory, see whether all nodes see it, and look at it."""
        team = self._team
        try:
            made = on_root(
                team.comm, lambda: held.enter_context(scratch.own_directory(self._given))
            )
        except UserError as error:
            refusal = problem(str(error), "name a writable directory with --scratch")
            self._report.add("Scratch", lambda: [refusal])
            return
        blind = self._blind_hosts(made)
        if blind:
            self._note(blind=blind)
        else:
            self._made = made
            refused, tries = self._try_locks(made.directory)
            floor = measure_floor(team.comm) if self._runs else None
            self._note(refused=refused, tries=tries, floor=floor)
            if self._known:
                self._note(attempts=self._try_stack(made.directory))
            with AgreedStep(team.comm, "looking at the scratch directory"):
                self._note_directory(made.directory)
        self._check(CHECKS_OF_SCRATCH)

    def _note(self, **facts: Any) -> None:
        if self._subject is not None:
            self._subject = replace(self._subject, **facts)

    def _note_directory(self, directory: str) -> None:
        if not self._team.is_root:
            return
        self._note(kept_in_cache=part_kept_in_cache(directory))
        if self._runs and lack_of_mpi(self._team.comm) is None:
            from mpi4py import MPI

            self._note(mpi_io=mpi_io_facts(MPI.COMM_SELF, directory))

    def _blind_hosts(self, made: Scratch) -> list[str]:
        """Return the hosts that do not see the directory that rank 0 has made."""
        host = None
        try:
            Scratch.attach(made.directory, made.run_id)
        except (UserError, OSError):
            host = self._team.topology.hosts[self._team.rank]
        return sorted({name for name in self._team.comm.allgather(host) if name is not None})

    def _try_locks(self, directory: str) -> tuple[dict[str, str], list[Tried]]:
        """Hold locks on rank 0 and let all others try at once to share them."""
        team, result = self._team, None
        with ExitStack() as taken:
            refused: dict[str, str] = {}
            with AgreedStep(team.comm, "taking locks"):
                if team.is_root:
                    refused = taken.enter_context(locks.held(directory))
            with AgreedStep(team.comm, "trying locks"):
                if not team.is_root:
                    result = locks.tried(directory)
                elif team.size == 1:
                    result = locks.tried_by_another_process(directory)
            results = team.comm.allgather(result)
        nodes = team.topology.nodes
        met = zip(nodes, results, strict=True)
        return refused, [(node != nodes[0], one) for node, one in met if one is not None]

    def _try_stack(self, directory: str) -> list[stack.Attempt]:
        if not self._runs:
            return stack.try_none("libraries were not loaded")
        return stack.try_all(self._team, directory)

    def _try(self) -> None:
        """Run the smallest experiment, and plan it with all backends, files and transfers."""
        comm, refusal, tried = self._team.comm, "", {}
        if self._runs and self._made is not None:
            try:
                self._session = trial.run_smallest(comm, self._given, self._made.path(OUT))
            except UserError as error:
                refusal = without_digests(str(error))
                refused = problem(f"no run can begin here: {refusal}")
                # Without h5py none can, which is reported with it.
                if self._subject is not None and "h5py" not in self._subject.errors:
                    self._report.add(RUN, lambda: [refused])
        with AgreedStep(comm, "planning"):
            if not self._team.is_root:
                return
            if self._session is not None:
                assert self._made is not None
                record = RunRecord.load(self._made.path(OUT))
                tried = trial.ways_of(record)
                self._report.add(RUN, lambda: trial.judge_trial(record))
            no_mpi = lack_of_mpi(comm) if self._runs else reason_against_mpi()
            self._abilities = trial.abilities(self._team.topology, no_mpi, tried, refusal)


def _close(held: ExitStack) -> Findings:
    held.close()
    yield from ()
