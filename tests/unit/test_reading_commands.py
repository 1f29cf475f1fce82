"""Commands that read results need neither MPI nor a library that draws."""

from __future__ import annotations

import json

import pytest

from drawn_runs import a_case, a_run
from launch import pffbench_here, pffbench_in_turn, run, sampled
from pffbench.record.run_json import RunRecord
from pffbench.storage.ownership import OwnerProcess

#: Refuses MPI and everything that draws.
REFUSES = """
import sys
for name in ("mpi4py", "mpi4py.MPI", "matplotlib", "altair", "PIL"):
    sys.modules[name] = None
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    cases = [a_case("hdf5"), a_case("netcdf4"), a_case("zarr"), a_case("posix")]
    return [str(a_run(place / name, cases, repetitions=8)) for name in ("base", "new")]


def test_they_run_where_neither_is_installed(runs):
    base, new = runs
    commands = (
        ["compare", base, new],
        ["compare", base, new, "--json"],
        ["recommend", base],
        ["recommend", base, "--json"],
        ["scaling", base, "--json"],
    )
    for command, done in pffbench_in_turn(*commands, before=REFUSES).items():
        assert done.status == 0, (command, done.said)
        assert done.stdout, command


@pytest.fixture(scope="module")
def a_process():
    """Return the facts of a process that has ended."""
    code = (
        "import json; from pffbench.storage.ownership import OwnerProcess;"
        "print(json.dumps(OwnerProcess.me().facts()))"
    )
    return json.loads(run(["-c", code]).stdout)


READING = (["report", "RUN"], ["compare", "RUN", "OTHER"],
           ["scaling", "RUN", "OTHER"], ["recommend", "RUN"])  # fmt: skip


@pytest.mark.parametrize("arguments", sampled(READING, READING[1]), ids=" ".join)
def test_a_killed_run_is_named_with_the_command_that_goes_on(tmp_path, runs, a_process, arguments):
    place = a_run(tmp_path / "run", [a_case("hdf5"), a_case("zarr")], status="running", valid=None)
    (tmp_path / "run" / "run.lock").write_text(json.dumps(a_process))
    names = {"RUN": str(place), "OTHER": runs[0]}
    done = pffbench_here(*(names.get(a, a) for a in arguments), cwd=tmp_path)
    told = f"{place}: the run was killed (its process is gone); go on with: mpiexec -n 2 python -m"
    assert done.stderr.count(f"{told} pffbench run --resume {place}\n") == 1, done.said


def test_a_run_that_goes_on_or_has_ended_is_not_called_killed(tmp_path, a_process):
    mine = OwnerProcess.me().facts()
    for status, lock in (("running", mine), ("running", None), ("finished", a_process)):
        place = tmp_path / f"{status}-{lock is None}"
        a_run(place, [a_case("hdf5")], status=status)
        if lock:
            (place / "run.lock").write_text(json.dumps(lock))
        assert RunRecord.load(place).status == status
        assert pffbench_here("report", place).stderr == ""
