"""Scratch and results on file systems that are full, read-only or gone: what becomes of the run."""

import json
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from faults import SLAB, no_process_is_left, run_faulty, run_on_small_disks
from launch import PROGRAMS, Finished, lines_of, mpiexec, write_experiment

pytestmark = pytest.mark.parallel

RANKS = 2
NULL = SLAB | {"backend": "null"}
#: 512 KiB for each rank, in one chunk that HDF5 keeps back until it has to write.
HALF = {"workload": "hyperslab", "files": "per_rank", "shape_per_rank": [256, 512]}


def command(directory, *arguments, program=("-m", "pffbench")):
    return [*mpiexec(RANKS), sys.executable, *program, "run", *arguments, "--scratch",
            directory / "scratch"]  # fmt: skip


def fault(kind, place, after=0):
    told = {"backend": "null", "verb": "write", "kind": kind, "rank": 0, "after": after}
    return {"FAULT": json.dumps(told), "FAULT_PLACE": str(place), "PFFBENCH_TEST_TAG": str(place)}


def faulty(directory, name, *arguments, **content):
    """Return a command that runs an experiment with a fault, with its results in a place."""
    for place in ("scratch", "results"):
        (directory / place).mkdir()
    path = write_experiment(directory, **{"warmup": 0, **content})
    return command(directory, path, "--out", directory / name, *arguments,
                   program=(PROGRAMS / "faulty.py",))  # fmt: skip


def kept_path(directory, number, *names):
    return Path(directory, "kept", str(number), *names)


def failures(done):
    return {
        (e["parameters"]["backend"], e["parameters"]["durability"]): e["failure"]["phase"]
        for e in done.record["cases"].values()
        if e["failure"]
    }


def test_a_full_scratch_fails_the_cases_that_write(tmp_path):
    """In write, in flush and in close: `null` fills it, at the latest in the first round."""
    scratch = tmp_path / "scratch"
    larger = {"shape_per_rank": [256, 768]}
    cases = [
        NULL,
        HALF | larger | {"backend": "posix"},
        HALF | {"backend": "hdf5", "durability": ["flush", "close"]},
    ]
    run = faulty(tmp_path, "results/a", cases=cases, repetitions=2)
    (done,) = run_on_small_disks(tmp_path, {scratch: "8m"}, (run, fault("fill", scratch), {}))
    done = Finished(done.status, done.stdout, done.stderr, tmp_path / "results/a")
    assert done.status == 1, done.said
    assert failures(done) == {
        ("posix", "close"): "write", ("hdf5", "flush"): "flush", ("hdf5", "close"): "close",
    }  # fmt: skip
    for entry in done.record["cases"].values():
        if entry["failure"]:
            assert "No space left on device" in entry["failure"]["error"], entry["failure"]
    assert (done.record["status"], done.record["valid"]) == ("finished", False)
    assert Counter(r["backend"] for r in done.rows if r["phase"] == "remove")["null"] == 2
    assert not list(kept_path(tmp_path, 0, "scratch").iterdir())
    assert "Segmentation fault" not in done.stderr
    no_process_is_left(scratch)


def test_a_full_results_directory_ends_the_run_which_goes_on_when_there_is_room(tmp_path):
    results = tmp_path / "results"
    run = faulty(tmp_path, "results/a", cases=[NULL], repetitions=6)
    resume = command(tmp_path, "--resume", results / "a")
    room = {str(results): {"remove": ["filler"]}}
    ended, rest = run_on_small_disks(
        tmp_path, {results: "8m"}, (run, fault("fill", results, after=3), {}), (resume, {}, room)
    )
    assert ended.status == 3, ended.said
    assert f"results cannot be written to {results / 'a'} any more: record" in ended.stderr
    assert "No space left on device" in ended.stderr
    resume = f"mpiexec -n {RANKS} python -m pffbench run --resume {results / 'a'}"
    assert f"go on with: {resume}" in ended.stderr
    assert "Traceback" not in ended.stderr
    before = recorded(kept_path(tmp_path, 0, "results", "a"))
    assert before == Counter(range(3))
    assert not kept_path(tmp_path, 0, "results", "a", "run.lock").exists()
    assert rest.status == 0, rest.said
    assert recorded(kept_path(tmp_path, 1, "results", "a")) == Counter(range(6))
    record = json.loads(kept_path(tmp_path, 1, "results", "a", "run.json").read_text())
    assert (record["status"], record["valid"]) == ("finished", True)
    assert not list((tmp_path / "scratch").iterdir())
    no_process_is_left(results)


def recorded(directory):
    return Counter(one["round"] for one in lines_of(directory))


def test_results_that_cannot_begin_leave_nothing(tmp_path):
    run = faulty(tmp_path, "results/a", cases=[NULL])
    nothing = {**fault("fill", tmp_path / "results"), "PFFBENCH_TEST_TAG": str(tmp_path)}
    (done,) = run_on_small_disks(tmp_path, {tmp_path / "results": "16k"}, (run, nothing, {}))
    assert done.status == 2, done.said
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(kept_path(tmp_path, 0, "results").iterdir())
    assert not list((tmp_path / "scratch").iterdir())


def test_a_scratch_that_becomes_read_only_fails_all_cases(tmp_path):
    scratch = tmp_path / "scratch"
    cases = [NULL, SLAB | {"backend": "hdf5"}]
    run = faulty(tmp_path, "results/a", cases=cases, repetitions=3)
    (done,) = run_on_small_disks(
        tmp_path, {scratch: "8m"}, (run, fault("freeze", scratch, after=1), {})
    )
    done = Finished(done.status, done.stdout, done.stderr, tmp_path / "results/a")
    assert done.status == 1, done.said
    assert "Traceback" not in done.stderr
    reasons = [e["failure"]["error"] for e in done.record["cases"].values()]
    assert all("Read-only file system" in reason for reason in reasons)
    assert [r for r in done.record["remarks"] if r.startswith("could not remove")]
    finished = Counter(r["backend"] for r in done.rows if r["phase"] == "remove")
    assert finished["null"] == 1
    assert finished["hdf5"] in (1, 2)  # the order of the second round is drawn


def test_a_scratch_that_is_removed_under_the_run_fails_all_cases(tmp_path):
    told = {"backend": "null", "verb": "write", "kind": "remove_scratch", "rank": 0, "after": 1}
    done = run_faulty(tmp_path, RANKS, fault=told, repetitions=3,
                      cases=[NULL, SLAB | {"backend": "hdf5"}])  # fmt: skip
    assert done.status == 1, done.said
    assert "Traceback" not in done.stderr
    assert done.record["status"] == "finished"
    assert all(e["failure"] for e in done.record["cases"].values())
    assert not (tmp_path / "scratch").exists()
    no_process_is_left(tmp_path)


def test_a_scratch_that_one_node_does_not_see_is_refused(tmp_path):
    """Rank 1 has a file system of its own there, as where each node has a local disk."""
    (tmp_path / "scratch").mkdir()
    path = write_experiment(tmp_path, cases=[NULL])
    alone = ("-c", "import os, sys; rank = os.environ.get('OMPI_COMM_WORLD_RANK', "
             "os.environ.get('PMI_RANK')); command = [sys.executable, '-m', 'pffbench', "
             "*sys.argv[1:]]; os.execvp(*((command[0], command) if rank == '0' else ('unshare', "
             "['unshare', '--mount', 'sh', '-c', 'mount -t tmpfs own \"$0\" && exec \"$@\"', "
             "sys.argv[-1], *command])))")  # fmt: skip
    run = [*mpiexec(RANKS), sys.executable, *alone, "run", path, "--out", tmp_path / "results",
           "--scratch", tmp_path / "scratch"]  # fmt: skip
    (done,) = run_on_small_disks(tmp_path, {}, (run, {}, {}))
    assert done.status == 2, done.said
    assert "scratch: not the same directory on" in done.stderr
    assert not (tmp_path / "results").exists()
    assert not list((tmp_path / "scratch").iterdir())


# Files that ranks share through parallel HDF5

#: 8 MiB, behind which the library puts metadata that both ranks write.
SHARED = {"workload": "hyperslab", "files": "one", "arrays": "shared", "shape": [8, 256, 1024]}
PARALLEL = [
    SHARED | {"backend": "netcdf4", "transfer": ["collective", "independent"]},
    SHARED | {"backend": "hdf5", "files": "one", "arrays": "per_rank", "transfer": "collective"},
]


def test_shared_files_fail_their_cases_when_scratch_has_been_filled(tmp_path):
    """Filled in round 1: the library would have the ranks wait for each other for ever."""
    scratch = tmp_path / "scratch"
    run = faulty(tmp_path, "results/a", cases=[NULL, *PARALLEL], repetitions=3)
    told = {**fault("fill", scratch, after=1)}
    (done,) = run_on_small_disks(tmp_path, {scratch: "40m"}, (run, told, {}))
    done = Finished(done.status, done.stdout, done.stderr, tmp_path / "results/a")
    assert done.status == 1, done.said
    failed = {n: e["failure"] for n, e in done.record["cases"].items() if e["failure"]}
    assert [f["phase"] for f in failed.values()] == ["room for the file"] * 3
    assert all("No space left on device: the file needs" in f["error"] for f in failed.values())
    finished = Counter(one["case"] for one in done.repetitions)
    assert finished.pop(done.case(backend="null")) == 3
    assert finished == {name: f["repetition"] for name, f in failed.items()}
    assert set(finished.values()) <= {1, 2}  # before or after `null` in round 1
    assert done.record["status"] == "finished"
    assert not list(kept_path(tmp_path, 0, "scratch").iterdir())
    no_process_is_left(scratch)


def test_shared_files_fail_their_cases_at_a_limit_of_their_length(tmp_path):
    (tmp_path / "scratch").mkdir()
    path = write_experiment(tmp_path, cases=[NULL, *PARALLEL])
    limited = command(tmp_path, path, "--out", tmp_path / "a", program=(PROGRAMS / "limited.py",))
    (done,) = run_on_small_disks(tmp_path, {}, (limited, {}, {}))
    done = Finished(done.status, done.stdout, done.stderr, tmp_path / "a")
    assert done.status == 1, done.said
    failed = [e["failure"] for e in done.record["cases"].values() if e["failure"]]
    assert [f["phase"] for f in failed] == ["room for the file"] * 3
    assert all("are allowed (ulimit -f)" in f["error"] for f in failed)
    assert done.record["status"] == "finished"
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.full  # tests/unit/test_watchdog_process.py sees that nothing moves, without 15 s
def test_a_shared_file_whose_disk_fills_under_it_ends_the_job_soon(tmp_path):
    """There was room when it was begun, so nothing was refused, and the library does not return."""
    scratch = tmp_path / "scratch"
    run = faulty(tmp_path, "results/a", cases=PARALLEL[:1], repetitions=3)
    told = fault("fill_nearly", scratch, after=1)
    told["FAULT"] = json.dumps(json.loads(told["FAULT"]) | {"backend": "netcdf4", "verb": "define"})
    resume = command(tmp_path, "--resume", tmp_path / "results/a")
    room = {str(scratch): {"remove": ["filler"]}}
    ended, rest = run_on_small_disks(
        tmp_path, {scratch: "40m"}, (run, told, {}), (resume, {}, room)
    )
    assert ended.status not in (0, 2, 3), ended.said
    assert re.search(
        rf"{scratch}/\S+ is full and nothing has moved for 15 s, so the job is ended: the library "
        r"waits for a rank that found no room \(netcdf4\S+, repetition 0, define; ranks 0-1\)",
        ended.stderr,
    ), ended.said
    assert rest.status == 0, rest.said
    record = json.loads((tmp_path / "results/a" / "run.json").read_text())
    assert (record["status"], record["valid"]) == ("finished", True)
    no_process_is_left(scratch)
