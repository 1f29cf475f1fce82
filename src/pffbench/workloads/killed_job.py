"""Jobs of the workload `survival` that are killed, and what a separate process reads afterwards.

A job is started by mpiexec, or is one process for one rank. Its ranks write steps as the measured
job does, and end themselves by SIGKILL when one more step has begun, or are ended by a timer of the
kernel at a moment of this step: no library, no MPI and no Python cleans up.
``python -m pffbench.workloads.killed_job JOB`` is a rank.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from pffbench.backends.registry import backend_class
from pffbench.case import Case
from pffbench.data import Source, make_source
from pffbench.job.launcher import start_ranks, without_launcher
from pffbench.mpi.topology import Team
from pffbench.observe.clock import PhaseClock
from pffbench.storage.scratch import Scratch
from pffbench.workloads import survivors
from pffbench.workloads.base import Impossible
from pffbench.workloads.repetition import Place, Repetition, Request, Subject

if TYPE_CHECKING:
    from pffbench.backends.array_spec import ArraySpec
    from pffbench.workloads.survival import SurvivalParameters

#: Seconds that a job, or a reader, may run for.
_LONGEST = 120.0
#: Bytes of the buffers of a rank.
_MEMORY = 2**28
#: What the job that measures is allowed already: more ranks than cores, and to be root's.
_ALLOWED = {
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}
#: Characters at the end of the id of a run that are its own; paths of sockets must be short.
_UNIQUE = 22
#: Directory of files that live in memory.
_IN_MEMORY = Path("/dev/shm")


class Job(msgspec.Struct, frozen=True):
    """A job that is to be killed."""

    #: The case.
    parameters: dict[str, Any]
    options: dict[str, Any]
    #: Where it writes.
    scratch: str
    run_id: str
    directory: str
    #: Number of steps that it finishes, at least.
    after: int
    #: When it is killed in the next step, as a part of the time of the last one; before it if None.
    moment: float | None
    #: Its name among the jobs of a case.
    name: str

    @property
    def store_suffix(self) -> str:
        """Suffix of the names of its files."""
        return f".killed-{self.name}"

    def begun(self, rank: int) -> Path:
        """Return the file with a byte for each step that a rank has begun, from its end on."""
        return Path(self.scratch, self.directory, f"begun-{rank}")


class Outcome(NamedTuple):
    """What is left of a killed job."""

    #: Number of steps that it had finished.
    finished: int
    #: Number of first steps that are right in all files.
    kept: int
    #: Largest number of steps that a file has.
    shown: int
    #: How the files open: index in `survivors.WAYS`; the last one is for not at all.
    opens: int


def without_launch(ranks: int) -> str | None:
    """Return why so many ranks cannot be started, or None."""
    if ranks == 1 or _mpiexec():
        return None
    return Impossible(
        f"a job of {ranks} ranks that is killed needs mpiexec, which is not in PATH; "
        "PFFBENCH_MPIEXEC may name it"
    )


def _mpiexec() -> str | None:
    return os.environ.get("PFFBENCH_MPIEXEC") or shutil.which("mpiexec")


def kill_jobs(repetition: Repetition, p: SurvivalParameters) -> None:
    """Start the jobs, which are killed, and count the steps left; collective, rank 0 acts."""
    place = repetition.place
    draws = Random(f"{place.scratch.run_id}/{place.directory}")  # others in each run
    jobs: list[tuple[str, int, float | None]] = [
        *((f"after_{after}", after, None) for after in p.killed_after),
        *((f"within_{n}", draws.randint(1, max(1, p.steps - 2)), draws.random())
          for n in range(p.kills_within)),
    ]  # fmt: skip
    for job in jobs:
        with repetition.step("killed job"):
            if place.team.is_root:
                for what, number in zip(Outcome._fields, _killed(repetition, *job), strict=True):
                    repetition.observed.count("write", f"{what}_{job[0]}", number)


def _killed(repetition: Repetition, name: str, after: int, moment: float | None) -> Outcome:
    """Start a job on the node of rank 0, with its ranks, and read the files that it leaves."""
    case, scratch = repetition.subject.case, repetition.place.scratch
    ranks = repetition.place.team.topology.ranks_per_node[0]
    p, options = (msgspec.to_builtins(x, enc_hook=int) for x in (case.parameters, case.options))
    place = scratch.directory, scratch.run_id, repetition.place.directory
    job = Job(p, options, *place, after, moment, name)
    arrays = repetition.subject.workload.arrays(case.parameters, ranks)
    unique = scratch.run_id[-_UNIQUE:]
    with tempfile.TemporaryDirectory(prefix=f"{unique}-", dir=_directory_in_memory()) as left:
        variables = _environment(left)
        finished = _run_killed(job, ranks, variables)
        groups = case.parameters.groups(ranks)
        outcomes = []
        for index in range(groups.files):
            stem = case.parameters.file_stem(index) + job.store_suffix
            path = scratch.path(job.directory, stem + repetition.subject.backend.suffix)
            group = groups.group(index)
            specs, steps = arrays.specs(group.start), min(finished[rank] for rank in group)
            outcomes.append(_read(path, specs, _source(job), steps, variables))
            scratch.remove(path)
    fewest = min(one.finished for one in outcomes)
    lost = max(one.finished - one.kept for one in outcomes)
    shown, opens = (max(getattr(one, name) for one in outcomes) for name in ("shown", "opens"))
    return Outcome(fewest, max(0, fewest - lost), shown, opens)


def _directory_in_memory() -> Path | None:
    """Return where killed ranks may leave shared memory and sockets: in memory, if possible."""
    return _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK | os.X_OK) else None


def _environment(left: str) -> dict[str, str]:
    """Return the environment of a job, all of whose remains are in one directory."""
    return (
        without_launcher(os.environ)
        | _ALLOWED
        | {
            "TMPDIR": left,
            "OMPI_MCA_btl_vader_backing_directory": left,
            "OMPI_MCA_btl_sm_backing_directory": left,
            "OMPI_MCA_ess_singleton_isolated": "1",
        }
    )


def _run_killed(job: Job, ranks: int, variables: dict[str, str]) -> list[int]:
    """Run a job until it is killed; return the number of steps that each rank has finished.

    Raises
    ------
    ChildProcessError
        It ended in another way.
    """
    launcher = [str(_mpiexec()), "-n", str(ranks)] if ranks > 1 else []
    told = msgspec.json.encode(job).decode()
    status, text = _run([*launcher, sys.executable, "-P", "-m", __name__, told], variables)
    begun = [job.begun(rank) for rank in range(ranks)]
    if not all(path.exists() for path in begun):
        raise ChildProcessError(f"the job to be killed ended with status {status} before: {text}")
    finished = [job.after + path.stat().st_size - 1 for path in begun]
    for path in begun:
        path.unlink()
    return finished


def _run(command: Sequence[str], variables: dict[str, str]) -> tuple[int, str]:
    """Run a program; return its exit status, and its output or the end of its errors."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=variables, text=True, errors="replace",
    )  # fmt: skip
    try:
        told, errors = process.communicate(timeout=_LONGEST)
    except subprocess.TimeoutExpired:
        process.terminate()  # mpiexec ends its ranks
        told, errors = process.communicate()
    return process.returncode, told.strip() or errors.strip()[-1000:]


def _read(
    path: str, specs: Sequence[ArraySpec], source: Source, finished: int, variables: dict[str, str]
) -> Outcome:
    """Read a file in a process of its own, and compare the steps."""
    names = [spec.name for spec in specs]
    command = [sys.executable, "-P", survivors.__file__, path, *names]
    status, text = _run(command, variables)
    if status > 0:
        raise ChildProcessError(f"the reader of {path} failed: {text}")
    if status:  # the library crashed
        return Outcome(finished, 0, 0, len(survivors.WAYS))
    found = msgspec.json.decode(text, type=survivors.Found)
    if found.way is None:
        return Outcome(finished, 0, 0, len(survivors.WAYS))
    kept = finished
    for spec in specs:
        digests = found.steps.get(spec.name, [])
        expected = _digests(spec, source, finished)
        right = [a == b for a, b in zip(digests, expected, strict=False)]
        kept = min(kept, [*right, False].index(False))
    shown = max((len(digests) for digests in found.steps.values()), default=0)
    return Outcome(finished, kept, shown, survivors.WAYS.index(found.way))


def _digests(spec: ArraySpec, source: Source, steps: int) -> Iterator[str]:
    """Yield a digest of each step of an array, as it was written."""
    step = np.empty((1, *spec.shape[1:]), source.dtype)
    for number in range(steps):
        start = (spec.origin[0] + number, *spec.origin[1:])
        source.fill(step, spec.number, start, spec.logical_shape)
        yield hashlib.sha256(step.tobytes()).hexdigest()


def _source(job: Job) -> Source:
    """Return the data of a job, which are other data after each number of steps."""
    told = job.parameters
    return make_source(told.get("source", "uniform"), told.get("dtype"), job.after)


def _repetition(job: Job, comm: Any) -> Repetition:
    """Return what a rank of the job writes."""
    from pffbench.workloads.survival import Survival, SurvivalParameters

    parameters = msgspec.convert(job.parameters, SurvivalParameters)
    kind = backend_class(parameters.backend)
    case = Case(parameters, msgspec.convert(job.options, kind.options_type))
    team, pattern = Team.of(comm), Survival()
    subject = Subject(
        case=case,
        workload=pattern,
        backend=kind(case.options, parameters.settings),
        source=_source(job),
        arrays=pattern.arrays(parameters, team.size),
        store_suffix=job.store_suffix,
    )
    scratch = Scratch(job.scratch, job.run_id)
    place = Place(team, scratch, job.directory, PhaseClock(comm), _MEMORY)
    return Repetition(place, subject, Request(inspect=False))


class _End:
    """Ends this rank when it begins a step: at once, or by a timer."""

    def __init__(self, job: Job, comm: Any) -> None:
        self._job, self._comm, self._began = job, comm, 0.0

    def __call__(self, number: int) -> None:
        """End the rank if it has finished so many steps."""
        job, now, last = self._job, monotonic(), self._began
        self._began = now
        if number < job.after:
            return
        if number == job.after:
            self._comm.Barrier()  # all have finished the steps before
        with job.begun(self._comm.rank).open("ab") as begun:
            begun.write(b".")
        if number == job.after:
            self._comm.Barrier()
        if number > job.after or job.moment is None:  # the step was shorter than the last one
            os.kill(os.getpid(), signal.SIGKILL)
        else:  # without a handler the kernel ends the process, wherever it is
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, max(1e-6, job.moment * (now - last)))


def main() -> None:
    """Write steps, and end by SIGKILL or a timer when one more has begun."""
    from pffbench.workloads.survival import write_steps

    job = msgspec.json.decode(sys.argv[1], type=Job)
    comm = start_ranks()
    write_steps(_repetition(job, comm), _End(job, comm))


if __name__ == "__main__":
    main()
