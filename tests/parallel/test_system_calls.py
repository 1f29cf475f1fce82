"""`counters: calls`, and `pffbench compare --counts`: counts are exact, also on a busy machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import contextmanager

import psutil
import pytest

from faults import run_on_small_disks
from launch import (
    Finished,
    mpiexec,
    pffbench_here,
    run_experiment,
    sampled,
    start_experiment,
    wait_until,
    write_experiment,
)
from pffbench.experiment.schema import MOST_TRACED
from pffbench.observe.system_calls import TracingMeter, count_calls
from pffbench.phases import READ_PHASES
from pffbench.record.run import MeasuredRun
from pffbench.results.judge import FEWEST
from pffbench.results.summary import summarise
from pffbench_analysis.compare.counts import counts_of
from planted import run_first

pytestmark = pytest.mark.parallel

#: Four chunks of each rank.
CASE = {
    "workload": "hyperslab", "shape_per_rank": [[64, 64]], "chunks": [[16, 64]],
    "files": ["one", "per_rank"],
}  # fmt: skip
COUNTS = {"counters": "calls", "repetitions": 1, "warmup": 0, "roofline": False}
#: A version of Zarr that asks for the state of the directory before it writes a chunk.
ONE_STAT_MORE = """
import os
from zarr.storage import LocalStore
as_it_was = LocalStore.set
async def set(self, key, value, *more, **given):
    if "/c/" in key:
        os.stat(self.root)
    return await as_it_was(self, key, value, *more, **given)
LocalStore.set = set
"""

#: A version of Zarr whose ranks all find that a directory is missing before one of them makes it.
EVERY_RACE_LOST = """
import os, time
as_it_was = os.mkdir
def mkdir(path, *more, **given):
    try:
        return as_it_was(path, *more, **given)
    except FileNotFoundError:
        time.sleep(0.5)
        raise
os.mkdir = mkdir
"""
#: A program that keeps a processor busy for 10 ms, and again after 10 ms.
SPIN = """
import time
while True:
    end = time.monotonic() + 0.01
    while time.monotonic() < end:
        pass
    time.sleep(0.01)
"""
#: pffbench whose backends open the file once more on each rank that opens it to read.
ONE_OPEN_MORE = """
import os, sys
from pffbench.backends.registry import backend_class
def plant(kind):
    as_it_was = kind.open
    def open(self, path, comm):
        os.close(os.open(path, os.O_RDONLY))
        return as_it_was(self, path, comm)
    kind.open = open
for name in ("hdf5", "netcdf4", "zarr", "mpiio"):
    plant(backend_class(name))
from pffbench.cli import main
main(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Return the environment of a program whose Zarr has one stat more for each chunk."""
    return run_first(tmp_path_factory.mktemp("planted") / "first", ONE_STAT_MORE)


@contextmanager
def load():
    """Take two processors away from the ranks again and again, for half of the time."""
    spin = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(2)]
    try:
        yield
    finally:
        for one in spin:
            one.kill()
            one.wait()


def run(directory, backend, ranks=2, *, busy=False, **more):
    directory.mkdir()
    cases = [CASE | {"backend": backend}]
    started = start_experiment(directory, ranks, cases=cases, **COUNTS | more)
    if busy:
        wait_until(lambda: (started.out / "run.json").exists())  # nothing is counted before
        assert started.process.poll() is None, started.finish().said
        with load():
            done = started.finish()
    else:
        done = started.finish()
    assert done.status == 0, done.said
    return done


def compared(*runs, options=()):
    return pffbench_here("compare", "--counts", *options, *(str(r) for r in runs))


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """Return a run of raw files on three ranks."""
    return run(tmp_path_factory.mktemp("raw") / "run", "posix", 3)


@pytest.mark.parametrize("ranks", sampled([1, 3], 3))
def test_calls_and_bytes_of_raw_files_are_those_of_the_program(tmp_path, raw, ranks):
    done = raw if ranks == 3 else run(tmp_path / "raw", "posix", ranks)
    counts = counts_of(MeasuredRun.load(done.out))
    (case,) = [name for name in counts if "per_rank" in name]
    assert counts[case]["write", "call_pwrite64"] == [ranks]
    assert counts[case]["write", "bytes_pwrite64"] == [ranks * 64 * 64 * 4]
    assert sum(n for (phase, name), (n,) in counts[case].items()
               if phase == "read" and name.startswith("bytes_")) == ranks * 64 * 64 * 4  # fmt: skip
    assert counts[case]["create", "call_openat"] == [ranks]
    said = " ".join(done.stdout.replace("\\\n", " ").split())  # a long command is in two lines
    assert "COUNTED: " in said
    assert said.endswith("--set counters=false --set repetitions=7")
    scaling = pffbench_here("scaling", done.out, "--out", tmp_path / "scaling")
    assert scaling.status == 2
    assert "so its times show nothing; leave it out" in scaling.stderr


BACKENDS = ["hdf5", "netcdf4", "zarr", "mpiio"]


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """Return a run of all backends."""
    return run(tmp_path_factory.mktemp("counted") / "run", BACKENDS)


@pytest.mark.parametrize("backends", sampled([["hdf5", "zarr"], BACKENDS], ["hdf5", "zarr"]))
def test_equal_runs_have_equal_counts_on_a_busy_machine(tmp_path, counted, backends):
    new = run(tmp_path / "new", backends, busy=True)
    (found,) = json.loads(compared(counted.out, new.out, options=["--json"]).stdout)["comparisons"]
    assert (found["cases"], found["differences"]) == (2 * len(backends), [])


def test_runs_of_equal_counts_pass(counted):
    done = compared(counted.out, counted.out, options=["--fail-if-more"])
    assert done.stdout.splitlines()[0] == "PASSED: no count is larger"
    assert "of 8 cases were compared; none differs" in done.stdout
    assert counted.stdout.count("COUNTED: fewest system calls: ") == 1
    assert done.status == 0


@pytest.fixture(scope="module")
def more(tmp_path_factory, planted):
    """Return a run with an open more in all backends, and a stat more in Zarr."""
    place = tmp_path_factory.mktemp("more") / "run"
    return run(place, BACKENDS, program=["-c", ONE_OPEN_MORE], env=planted)


def test_one_open_more_on_each_rank_is_named(counted, more):
    done = compared(counted.out, more.out, options=["--fail-if-more", "--json"])
    assert done.status == 1
    (found,) = json.loads(done.stdout)["comparisons"]
    assert (found["cases"], found["alone"]) == (8, [])
    opens = [d for d in found["differences"] if d["phase"] != "write"]
    assert len({d["case"] for d in opens}) == len(opens) == 8
    for d in opens:
        assert (d["verdict"], d["phase"], d["counter"]) == ("more", "open", "call_openat"), d
        assert d["new"][0] - d["base"][0] == 2, d


def test_calls_of_ranks_that_lose_a_race_for_a_directory_are_counted_apart(tmp_path, counted):
    late = run_first(tmp_path / "first", EVERY_RACE_LOST)
    new = run(tmp_path / "new", "zarr", env=late)
    done = compared(counted.out, new.out, options=["--fail-if-more", "--json"])
    (found,) = json.loads(done.stdout)["comparisons"]
    assert found["differences"] == []
    assert found["raced"] == 3
    said = " ".join(new.stdout.split())
    assert "Zarr, one shared file made up to 3 more calls to write, which depend on timing" in said


def see_stats(base, new):
    """See that a stat for each chunk is all that a run writes more than another one."""
    done = compared(base.out, new.out, options=["--fail-if-more", "--json"])
    assert done.status == 1
    (found,) = json.loads(done.stdout)["comparisons"]
    differences = [d for d in found["differences"] if d["phase"] != "open"]
    cases = {d["case"].removesuffix(", chunks 16×64") for d in differences}
    assert cases == {"Zarr, one shared file", "Zarr, one file per rank"}
    for d in differences:
        assert (d["verdict"], d["phase"], d["unit"], d["units"]) == ("more", "write", "chunk", 8)
        assert d["counter"] in ("call_newfstatat", "call_stat", "call_statx")
        assert d["new"][0] - d["base"][0] == 8
    text = compared(base.out, new.out).stdout
    assert re.search("more: Zarr, one shared file[^:]*: write: calls of", text)
    assert "for each chunk)" in text


def test_one_stat_more_for_each_chunk_is_named(counted, more):
    see_stats(counted, more)


@pytest.mark.full
def test_one_stat_more_for_each_chunk_is_named_on_a_busy_machine(tmp_path, planted):
    base = run(tmp_path / "base", "zarr", busy=True)
    see_stats(base, run(tmp_path / "new", "zarr", busy=True, env=planted))


def test_the_answer_has_the_counts_and_names_what_moves_more_than_is_wanted(tmp_path):
    sliced = {
        "workload": "slices", "shape": [32, 32, 32], "axis": 2, "chunks": [8, 32, 32],
        "files": "per_rank", "backend": ["posix", "hdf5", "zarr"],
        "settings": "matched",
    }  # fmt: skip
    cases = [sliced, sliced | {"backend": "netcdf3"}]  # which has no chunks
    done = run_experiment(tmp_path, 2, cases=cases, unsupported="skip", **COUNTS)
    assert done.status == 0, done.said
    answer = summarise(done.out).answer
    assert answer.word == "COUNTED"
    assert any(n.startswith("Not measured: 1 case of netCDF-3, because ") for n in answer.notes)
    assert answer.columns == ("write", "opens", "read", "opens", "files")
    rows = {row[0]: [int(text.replace(",", "")) for text in row[1:]] for row in answer.rows}
    counts = counts_of(MeasuredRun.load(done.out))
    for case, of in counts.items():
        label = {"posix": "posix", "hdf5": "HDF5", "zarr": "Zarr"}[case.split(".")[0]]
        read = sum(
            n for (phase, name), (n,) in of.items()
            if phase in READ_PHASES and name.startswith("call_") and "O_CREAT" not in name
        )  # fmt: skip
        assert 0 <= rows[label][2] - read <= 20  # calls of close are counted too
    # A plane across the fast axis touches all chunks, of 32 times its bytes.
    assert re.search(r"Zarr .*reads [\d.]+ KiB, to read 8 KiB\.", " ".join(answer.notes))
    summary = (done.out / "summary.md").read_text()
    assert "| case | write: calls | write: opens | write: bytes | write: × |" in summary


def test_cases_of_one_run_are_compared_by_a_key(counted):
    done = counted
    text = compared(done.out, options=["--by", "backend"]).stdout
    netcdf, zarr = text.split("backend hdf5 → backend ")[1:]
    assert netcdf.startswith("netcdf4\n")
    assert zarr.startswith("zarr\n")
    assert "more: one file per rank: create: calls of mkdir 0 → " in zarr
    assert "counts of 2 cases were compared" in zarr
    text = compared(done.out, options=["--by", "files"]).stdout
    assert text.startswith("files one → files per_rank\n")
    refused = compared(done.out, options=["--by", "codec"])
    assert refused.status == 2
    assert "no two cases of" in refused.stderr
    assert "cases differ in backend, files" in refused.stderr
    assert "name one results directory" in compared(
        done.out, done.out, options=["--by", "backend"]).stderr  # fmt: skip


@pytest.mark.full
def test_environments_are_compared_in_one_run(tmp_path, planted):
    other = f"env PYTHONPATH={planted['PYTHONPATH']} {sys.executable}"
    done = run_experiment(
        tmp_path, None, cases=[CASE | {"backend": "zarr"}], launcher=" ".join(mpiexec(2)),
        environments=[{"name": "now", "python": sys.executable},
                      {"name": "next", "command": other}],
        step_repetitions=1, **COUNTS,
    )  # fmt: skip
    assert done.status == 0, done.said
    text = compared(done.out).stdout
    assert text.startswith("now → next\n")
    assert "\nmore: Zarr, " in text
    assert text.count("more: ") == 2
    assert "for each chunk)" in text


def test_lines_of_threads_that_interrupt_each_other_are_counted_once():
    trace = """\
7 access("pffbench-phase-begins:write", F_OK) = -1 ENOENT (No such file or directory)
7 pwrite64(5</s/run-1/a>, ""..., 10, 0 <unfinished ...>
8 openat(AT_FDCWD</>, "/s/run-1/b", O_RDONLY) = 6</s/run-1/b>
7 <... pwrite64 resumed>) = 10
8 write(1</elsewhere>, ""..., 5) = 5
8 pwrite64(6</s/run-1/b>, ""..., 8, 0) = -1 EBADF (Bad file descriptor)
7 faccessat(AT_FDCWD</>, "pffbench-phase-ends", F_OK) = -1 ENOENT (No such file or directory)
7 close(5</s/run-1/a>) = 0
"""
    found = count_calls(trace.splitlines(keepends=True), "/run-1")
    assert found == {
        ("write", "call_pwrite64"): 2,
        ("write", "bytes_pwrite64"): 10,
        ("write", "call_openat"): 1,
    }


#: What a thread does to write below directories that are missing (pathlib, and TensorStore), if it
#: is alone; then if another one makes each directory just before; and the calls of the race.
ALONE = """\
mkdir("/s/run-1/a/c/0", 0777) = -1 ENOENT (No such file or directory)
mkdir("/s/run-1/a/c", 0777) = 0
mkdir("/s/run-1/a/c/0", 0777) = 0
mkdir("/s/run-1/a/c/0", 0777) = -1 EEXIST (File exists)
newfstatat(AT_FDCWD</>, "/s/run-1/a/c/0", {st_mode=S_IFDIR|0755, ...}, 0) = 0
"""
LOST = """\
mkdir("/s/run-1/a/c/1", 0777) = -1 ENOENT (No such file or directory)
mkdir("/s/run-1/a/c", 0777) = -1 EEXIST (File exists)
newfstatat(AT_FDCWD</>, "/s/run-1/a/c", {st_mode=S_IFDIR|0755, ...}, 0) = 0
mkdir("/s/run-1/a/c/1", 0777) = 0
"""
LATE = """\
mkdir("/s/run-1/a/c/1", 0777) = 0
"""
TENSORSTORE_LOST = """\
openat(AT_FDCWD</>, "/s/run-1/a/c/1", O_RDONLY|O_DIRECTORY) = -1 ENOENT (No such file or directory)
openat(AT_FDCWD</>, "/s/run-1/a/c", O_RDONLY|O_DIRECTORY) = -1 ENOENT (No such file or directory)
openat(AT_FDCWD</>, "/s/run-1/a", O_RDONLY|O_DIRECTORY) = 5</s/run-1/a>
mkdir("/s/run-1/a/c", 0777) = -1 EEXIST (File exists)
openat(AT_FDCWD</>, "/s/run-1/a/c", O_RDONLY|O_DIRECTORY) = 6</s/run-1/a/c>
mkdir("/s/run-1/a/c/1", 0777) = 0
"""
TENSORSTORE_LATE = """\
openat(AT_FDCWD</>, "/s/run-1/a/c/1", O_RDONLY|O_DIRECTORY) = -1 ENOENT (No such file or directory)
openat(AT_FDCWD</>, "/s/run-1/a/c", O_RDONLY|O_DIRECTORY) = 6</s/run-1/a/c>
mkdir("/s/run-1/a/c/1", 0777) = 0
"""


def counted_in(calls, interrupted=False):
    """Count the calls of one thread in phase write; all of them return in a line of their own."""
    lines = ['7 access("pffbench-phase-begins:write", F_OK) = -1 ENOENT (No such file)\n']
    for call in calls.splitlines():
        if interrupted:
            told, _, returned = call.rpartition(") = ")
            name = told.partition("(")[0]
            lines += [f"7 {told} <unfinished ...>\n", f"7 <... {name} resumed>) = {returned}\n"]
        else:
            lines.append(f"7 {call}\n")
    found = count_calls(lines, "/run-1")
    own = {name: n for (_, name), n in found.items() if name.startswith("call_")}
    return own, {name: n for (_, name), n in found.items() if name.startswith("raced_")}


@pytest.mark.parametrize("interrupted", [False, True])
@pytest.mark.parametrize(
    ("lost", "late", "raced"),
    [(LOST, LATE, {"raced_mkdir": 2, "raced_newfstatat": 1}),
     (TENSORSTORE_LOST, TENSORSTORE_LATE, {"raced_openat": 2, "raced_mkdir": 1})],
)  # fmt: skip
def test_a_thread_that_loses_a_race_for_a_directory_has_the_counts_of_a_late_one(
    lost, late, raced, interrupted
):
    assert counted_in(lost, interrupted) == (counted_in(late)[0], raced)


def test_calls_that_fail_without_a_race_are_counted():
    own, raced = counted_in(ALONE)
    assert own == {"call_mkdir": 4, "call_newfstatat": 1}
    assert raced == {}


def test_traced_runs_have_too_few_repetitions_to_judge_times():
    assert MOST_TRACED < FEWEST


@pytest.mark.parametrize("repetitions", ["auto", FEWEST])
def test_many_repetitions_are_refused(tmp_path, repetitions):
    content = COUNTS | {"cases": [CASE | {"backend": "posix"}], "repetitions": repetitions}
    done = pffbench_here("plan", write_experiment(tmp_path, **content))
    assert done.status == 2
    assert "counters: calls" in done.stderr
    assert "(allowed: 1 to 6; --set repetitions=1)" in done.stderr


def test_without_strace_the_reason_is_given(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    meter = TracingMeter(str(tmp_path))
    with pytest.raises(FileNotFoundError, match="needs strace, which is not installed here"):
        meter.start()
    assert not meter.stop()


def test_runs_that_cannot_be_compared_say_why(tmp_path, raw):
    one = run(tmp_path / "one", "posix", 1)
    times = run(tmp_path / "times", "posix", 1, counters=False)
    for runs, words in (
        ((one.out, raw.out), "has 1 rank"),
        ((one.out, times.out), "--set counters=calls"),
        ((one.out,), "is not a run of several environments"),
    ):
        done = compared(*runs)
        assert done.status == 2
        assert words in done.stderr
    for options in (["--allow-missing"], ["--fail-if-slower", "5%"]):
        done = compared(one.out, one.out, options=options)
        assert done.status == 2
        assert "leave it out with --counts" in done.stderr


def test_calls_that_strace_did_not_see_are_no_count(tmp_path):
    meter = TracingMeter(str(tmp_path))
    meter.start()
    (tracer,) = [one for one in psutil.Process().children() if one.name() == "strace"]
    tracer.kill()
    tracer.wait()
    with pytest.raises(ChildProcessError, match="strace ended during the repetition"):
        meter.stop()
    meter.start()
    assert not meter.stop()


def test_a_tracer_that_is_killed_ends_its_case_only(tmp_path):
    cases = [CASE | {"backend": "posix", "files": "per_rank"}, CASE | {"backend": "npy"}]
    program = ["-c", KILLS_TRACER]
    done = start_experiment(tmp_path, 2, program=program, cases=cases, **COUNTS).finish()
    assert done.status == 1, done.said
    failures = [entry["failure"] for entry in done.record["cases"].values() if entry["failure"]]
    (failure,) = failures
    found = (failure["phase"], failure["rank"])
    assert found == ("counting", 1), failure
    assert "strace ended during the repetition" in failure["error"]


def test_calls_that_do_not_fit_into_the_directory_of_temporary_files_are_no_count(tmp_path):
    cases = [CASE | {"backend": "zarr", "files": "per_rank"}]
    path, out = write_experiment(tmp_path, cases=cases, **COUNTS), tmp_path / "o"
    (small := tmp_path / "small").mkdir()
    (tmp_path / "scratch").mkdir()
    command = [sys.executable, "-m", "pffbench", "run", path, "--out", out, "--scratch",
               tmp_path / "scratch"]  # fmt: skip
    # Open MPI itself starts only with room for its files.
    env = {"TMPDIR": str(small), "OMPI_MCA_orte_tmpdir_base": "/tmp"}
    (done,) = run_on_small_disks(tmp_path, {small: "24k"}, (command, env, {}))
    assert done.status == 1, done.said
    (entry,) = Finished(1, "", "", out).record["cases"].values()
    assert f"could not write all calls; is {small} full?" in entry["failure"]["error"]


#: pffbench whose rank 1 loses its tracer in the first repetition.
KILLS_TRACER = """
import sys
from mpi4py import MPI
from pffbench.observe.system_calls import TracingMeter
stop = TracingMeter.stop
def lose(self):
    if MPI.COMM_WORLD.rank == 1 and self._strace is not None and not hasattr(TracingMeter, "lost"):
        TracingMeter.lost = True
        self._strace.kill()
        self._strace.wait()
    return stop(self)
TracingMeter.stop = lose
from pffbench.cli import main
main(sys.argv[1:])
"""
