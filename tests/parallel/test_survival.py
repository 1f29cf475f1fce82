"""Workload `survival`: jobs are killed, and plain libraries read the steps that they left."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import h5py
import pytest

from launch import (
    cannot_run,
    entries_below,
    environment,
    pffbench_here,
    run_experiment,
    write_experiment,
)
from pffbench.record.run import MeasuredRun
from pffbench.results.cells import cells_of
from pffbench.results.load import LoadSummary
from pffbench.results.summary import summarise
from pffbench.results.survival import EXPLAINED, notes, rows, survivors_of
from planted import run_first

pytestmark = pytest.mark.parallel

#: Jobs are killed after 1 and 5 of 6 steps.
COMMON = {"workload": "survival", "shape_per_rank": [4, 8], "steps": 6, "kills": 2}
SWMR = {"hdf5.libver": "latest", "hdf5.swmr": True}
#: Ways to write steps with those kept, how the files open, and the steps that are synced.
WAYS = [
    ({"backend": "hdf5", "files": "per_rank", "hdf5.libver": "latest", "flush": "step"},
     "all", "h5clear", "none"),
    ({"backend": "hdf5", "files": "per_rank", "hdf5.libver": "latest", "flush": "none"},
     "none", "no", "none"),
    ({"backend": "hdf5", "files": "per_rank", "hdf5.libver": "earliest", "flush": "step"},
     "all", "yes", "none"),
    ({"backend": "hdf5", "files": "per_rank", "hdf5.libver": "earliest", "flush": "none"},
     "none", "no", "none"),
    ({"backend": "netcdf4", "transfer": "collective", "flush": "step"}, "all", "yes", "all"),
    ({"backend": "netcdf4", "transfer": "collective", "flush": "none"}, "none", "yes", "none"),
    ({"backend": "netcdf4", "files": "per_rank", "flush": "step"}, "all", "yes", "none"),
    ({"backend": "netcdf4", "files": "per_rank", "flush": "none"}, "none", "yes", "none"),
    ({"backend": "zarr"}, "all", "yes", "none"),
    ({"backend": "zarr", "files": "per_rank"}, "all", "yes", "none"),
    ({"backend": "hdf5", "flush": "step"}, "all", "yes", "all"),
    ({"backend": "hdf5", "arrays": "per_rank", "flush": "step"}, "all", "yes", "all"),
]  # fmt: skip
FORMATS = {"hdf5": "HDF5", "netcdf4": "netCDF-4", "zarr": "Zarr"}
FILES = {(None, None): "one", (None, "per_rank"): "one, own", ("per_rank", None): "per rank"}
#: A version of Zarr that writes nothing but zeros in the third step, in a job that is killed.
ZEROS = """
import sys
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import LocalStore
as_it_was = LocalStore.set
async def set(self, key, value, *more, **given):
    if "c/2/" in key and any("killed_job" in word for word in sys.orig_argv):
        value = default_buffer_prototype().buffer.from_bytes(bytes(len(value)))
    return await as_it_was(self, key, value, *more, **given)
LocalStore.set = set
"""
#: A version of Zarr that names each chunk of a killed job while it is written, which needs more
#: time in each further step.
NAMED = """
import asyncio, os, sys
from pathlib import Path
from zarr.storage import LocalStore
as_it_was = LocalStore.set
async def set(self, key, value, *more, **given):
    if not ("/c/" in key and any("killed_job" in word for word in sys.orig_argv)):
        return await as_it_was(self, key, value, *more, **given)
    inside = Path(os.environ["INSIDE"], f"{self.root.name}-{key.replace('/', '-')}")
    inside.touch()
    await asyncio.sleep(0.1 * (1 + int(key.split("/c/")[1].split("/")[0])))
    await as_it_was(self, key, value, *more, **given)
    inside.unlink()
LocalStore.set = set
"""
#: A job of Zarr that is to be killed, and that ends by itself.
ENDS = """
import os, sys
if any('"backend":"zarr"' in word for word in sys.orig_argv):
    os.write(2, b"no licence")
    os._exit(1)
"""
#: A program that writes steps with h5py alone, flushes each, and is killed in the fourth one.
PLAIN = """
import os, signal, sys
import h5py
with h5py.File(sys.argv[1], "w", libver=sys.argv[2]) as file:
    steps = file.create_dataset("steps", (0, 8), "f4", maxshape=(None, 8), chunks=(1, 8))
    for number in range(4):
        steps.resize(number + 1, 0)
        if number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        steps[number] = number
        if sys.argv[3] == "step":
            file.flush()
"""


def run(directory, ranks, cases, *options, **how):
    return run_experiment(directory, ranks, *options, cases=cases, common=COMMON, **how)


def table(out):
    """Return files, flush, steps kept and how files open, by format."""
    answer = summarise(out).answer
    assert answer.word == "KEPT"
    return [(one[0], *one[1:5]) for one in answer.rows]


def _named(case):
    """Return the first columns of a case: its format with its option, files and flush."""
    label = " ".join(filter(None, [FORMATS[case["backend"]], case.get("hdf5.libver")]))
    return label, FILES[case.get("files"), case.get("arrays")], case.get("flush", "none")


def left_by(done):
    """Return what killed jobs of a run left in memory and in its scratch, and their processes."""
    run_id = done.record["run_id"][-20:]
    places = [place for place in Path("/dev/shm").iterdir() if run_id in place.name]
    commands = [path for path in Path("/proc").glob("[0-9]*/cmdline") if run_id in _text(path)]
    return [*places, *commands, *entries_below(done.out.parent / "scratch")]


def _text(path):
    try:
        return path.read_text(errors="replace")
    except OSError:  # it has ended
        return ""


@pytest.mark.parametrize(
    "wanted", [pytest.param((0, 4), id="some"),
               pytest.param(range(12), id="all", marks=pytest.mark.full)]
)  # fmt: skip
def test_steps_of_killed_jobs_of_two_ranks_are_kept_by_what_reached_the_system(tmp_path, wanted):
    ways = [WAYS[number] for number in wanted]
    done = run(tmp_path, 2, [case for case, *_ in ways], unsupported="refuse")
    assert done.status == 0, done.said
    answer = summarise(done.out).answer
    assert answer.word == "KEPT"
    expected = [(*_named(case), *outcome) for case, *outcome in ways]
    assert sorted(one[:6] for one in answer.rows) == sorted(expected)
    safe = sum(one[3:5] == ("all", "yes") for one in expected)
    assert answer.headline.startswith(f"{safe} of {len(ways)} ways keep every finished step")
    assert any("not a loss of power" in note for note in answer.notes)
    assert done.record["valid"] is True
    assert left_by(done) == []
    assert pffbench_here("report", done.out).status == 0
    assert "SIGKILL" in (done.out / "report.html").read_text()


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Return the table of jobs of one rank; a step of Zarr is wrong."""
    directory = tmp_path_factory.mktemp("alone")
    swmr = {"backend": "hdf5", "flush": "step", "files": "per_rank", "kills": 1, **SWMR}
    env = run_first(directory / "first", ZEROS)
    done = run(directory, None, [{"backend": "zarr"}, swmr], env=env)
    assert done.status == 0, done.said
    return table(done.out)


def test_a_step_that_a_plain_reader_finds_wrong_is_not_kept_nor_are_those_behind_it(alone):
    assert [one[3] for one in alone if one[0] == "Zarr"] == ["1, 2"]


def test_a_timer_kills_jobs_inside_calls_and_finished_steps_are_kept_as_between_steps(tmp_path):
    (inside := tmp_path / "inside").mkdir()
    env = run_first(tmp_path / "first", NAMED) | {"INSIDE": str(inside)}
    case = {"backend": "zarr", "kills": 1, "kills_within": 2}
    done = run(tmp_path, None, [case], env=env)
    assert done.status == 0, done.said
    answer = summarise(done.out).answer
    assert (answer.columns[-1], answer.rows[0][-1]) == ("within", "2 of 2")
    assert any(note.startswith("Within: of the jobs killed at a random") for note in answer.notes)
    named = [path.name for path in inside.iterdir()]
    assert all("killed-within" in name for name in named)
    assert named  # a draw may be the very first moment
    assert left_by(done) == []


@pytest.mark.full
def test_jobs_killed_inside_calls_keep_no_more_than_the_others(tmp_path):
    cases = [{"backend": "hdf5", "files": "per_rank", "kills": 1, "kills_within": 2},
             {"backend": "zarr", "kills": 1}]  # fmt: skip
    done = run(tmp_path, 2, cases)
    assert done.status == 0, done.said
    assert [one[-1] for one in summarise(done.out).answer.rows] == ["0 of 2", ""]
    assert left_by(done) == []


def test_a_file_with_a_single_writer_opens_for_readers_of_such_files(alone):
    ((*found,),) = (one for one in alone if one[0] != "Zarr")
    assert found == ["HDF5 latest swmr", "per rank", "step", "all", "swmr"]


def test_a_flush_has_the_price_of_the_same_case_without_one_but_none_on_a_busy_machine(tmp_path):
    case = {"backend": "hdf5", "files": "per_rank", "kills": 1, "flush": ["none", "step"]}
    done = run(tmp_path, None, [case], repetitions=7)
    assert done.status == 0, done.said
    measured = MeasuredRun.load(done.out)
    took = {"none": 1.0, "step": 2.0}
    cells = [
        cell._replace(seconds=dict.fromkeys(cell.seconds, took[cell.keys["flush"]]))
        for cell in cells_of(measured)
    ]
    idle, busy = LoadSummary(rounds=7), LoadSummary(rounds=7, busy=7, busy_others=0.5)
    priced = survivors_of(measured, cells, idle)
    prices = {one[2]: one[-1] for one in rows(priced)}
    assert prices["none"] == ""
    assert 100 <= int(prices["step"].split()[-2]) < 150
    assert not any("No prices" in note for note in notes(priced, idle))
    without = survivors_of(measured, cells, busy)
    assert {one[-1] for one in rows(without)} == {""}
    assert any("No prices: BUSY" in note for note in notes(without, busy))


def test_a_job_that_is_not_killed_fails_its_case_only(tmp_path):
    cases = [{"backend": ["zarr", "hdf5"], "files": "per_rank", "kills": 1}]
    done = run(tmp_path, None, cases, env=run_first(tmp_path / "first", ENDS))
    assert done.status == 1
    assert "the job to be killed ended with status 1 before: no licence" in done.said
    assert [bool(e["failure"]) for e in done.record["cases"].values()] == [True, False]
    assert left_by(done) == []


@pytest.mark.parametrize(("libver", "flush", "kept"), [
    ("earliest", "step", 3), ("earliest", "none", None),
])  # fmt: skip
def test_a_plain_program_that_is_killed_leaves_as_much(tmp_path, libver, flush, kept):
    path = tmp_path / "plain.h5"
    command = [sys.executable, "-c", PLAIN, str(path), libver, flush]
    done = subprocess.run(command, env=environment(), capture_output=True, timeout=120)
    assert done.returncode == -signal.SIGKILL
    if kept is None:
        with pytest.raises(OSError, match=r"open for write|truncated|signature"):
            h5py.File(path)
        return
    with h5py.File(path) as file:
        assert [step[0] for step in file["steps"][:kept]] == [0, 1, 2]


def test_a_file_that_opens_after_h5clear_does_after_the_printed_command(tmp_path):
    if shutil.which("h5clear") is None:
        cannot_run("the tools of HDF5 are not installed")
    (command,) = re.findall(r"only after (h5clear -s)$", EXPLAINED["h5clear"])
    path = tmp_path / "plain.h5"
    told = [sys.executable, "-c", PLAIN, str(path), "latest", "step"]
    done = subprocess.run(told, env=environment(), capture_output=True, timeout=120)
    assert done.returncode == -signal.SIGKILL
    with pytest.raises(OSError, match="open for write"):
        h5py.File(path)
    subprocess.run([*command.split(), str(path)], check=True, timeout=120)
    with h5py.File(path) as file:
        assert [step[0] for step in file["steps"][:3]] == [0, 1, 2]


@pytest.mark.parametrize(("case", "said"), [
    ({"backend": "hdf5", **SWMR}, "a file has a single writer, so files must be per_rank"),
    ({"backend": "hdf5", "files": "per_rank", "hdf5.swmr": True}, "hdf5.libver: latest"),
    ({"backend": "npy"}, "backend npy appends to no such file"),
    ({"backend": "zarr", "cache": "separate"}, "one job writes and reads"),
    ({"backend": "zarr", "files": {"count": 1}}, "one job writes and reads"),
    ({"backend": "zarr", "shape_per_rank": None}, "shape_per_rank is missing"),
    ({"backend": "zarr", "steps": 1}, "steps"),
    ({"backend": "zarr"}, "a job of 2 ranks that is killed needs mpiexec"),
])  # fmt: skip
def test_what_cannot_be_killed_or_read_is_refused_before_any_file_is_made(tmp_path, case, said):
    path = write_experiment(tmp_path, cases=[COMMON | case], unsupported="refuse")
    nowhere = {"PATH": str(tmp_path), "PFFBENCH_MPIEXEC": None} if "mpiexec" in said else {}
    done = pffbench_here("plan", path, "--ranks", 2, cwd=tmp_path, env=nowhere)
    assert done.status == 2
    assert said in " ".join(done.stderr.split())
    assert entries_below(tmp_path) == [str(path)]
