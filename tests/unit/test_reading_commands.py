"""Commands that read results need neither MPI nor a library that draws."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from drawn_runs import a_case, a_run

pytest.importorskip("pandas")

#: Refuses MPI and everything that draws, then runs the command line.
PROGRAM = """
import sys
for name in ("mpi4py", "mpi4py.MPI", "matplotlib", "vl_convert", "altair", "PIL"):
    sys.modules[name] = None
from pffbench.cli import main
main(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    cases = [a_case("hdf5"), a_case("netcdf4"), a_case("zarr"), a_case("posix")]
    return [str(a_run(place / name, cases, repetitions=8)) for name in ("base", "new")]


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare", "BASE", "NEW"],
        ["compare", "BASE", "NEW", "--json"],
        ["recommend", "BASE"],
        ["recommend", "BASE", "--json"],
        ["scaling", "BASE", "--json"],
        ["report", "--fom", "BASE"],
    ],
    ids=" ".join,
)
def test_it_runs_where_neither_is_installed(runs, arguments):
    given = [{"BASE": runs[0], "NEW": runs[1]}.get(word, word) for word in arguments]
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *given], capture_output=True, text=True, timeout=120,
        check=False, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout
