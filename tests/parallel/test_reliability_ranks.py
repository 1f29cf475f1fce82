"""A rank that raises, lies, starves, crashes or is killed: what becomes of the run."""

import os
import re
import signal

import pytest

from faults import SLAB, completes, finished, no_process_is_left, run_faulty
from launch import (
    lines_of,
    only_with_open_mpi,
    run_experiment,
    sampled,
    start_experiment,
    wait_until,
    with_open_mpi,
)
from sharing import keys_of, word_of

pytestmark = pytest.mark.parallel

RANKS = 3
VERBS = ("create", "define", "write", "flush", "close", "open", "arrays", "read")
PHASES = dict(zip(VERBS, (*VERBS[:6], "open_array", "read"), strict=True))
LAYOUTS = ("one-shared", "one-per_rank", "per_rank")
#: What a workload needs beside these to run with the backend that does nothing.
WORKLOADS = {
    "chunk_cache": {"shape": [4, 8], "granules": 3},
    "datasets": {"shape": [6, 4], "datasets_per_rank": 1},
    "hyperslab": {"shape_per_rank": [4, 4]},
    "slices": {"shape": [6, 6, 6], "axis": 0},
    "updates": {"shape": [4, 8]},
}
#: Seconds after which what is waited for does not come.
LIMIT = 200


@pytest.fixture(scope="module")
def raised(tmp_path_factory):
    """Every workload with all files and arrays, once for each call of a backend that can fail."""
    null = {"backend": "null", "durability": "flush", **keys_of(LAYOUTS)}
    cases = [
        {"workload": name, **null, **more, "null": {"fail": list(VERBS), "fail_rank": 1}}
        for name, more in WORKLOADS.items()
    ]
    good = [{"workload": name, **null, **more} for name, more in WORKLOADS.items()]
    return run_experiment(tmp_path_factory.mktemp("raised"), 2, cases=cases + good)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_rank_that_raises_in_any_phase_ends_its_case_only(raised, workload, layout):
    assert raised.status == 1, raised.said
    entries = [
        entry for entry in raised.record["cases"].values()
        if (entry["parameters"]["workload"], word_of(entry["parameters"])) == (workload, layout)
    ]  # fmt: skip
    told = {entry["options"]["fail"]: entry["failure"] for entry in entries}
    assert told.pop(None) is None
    first = {"arrays": "reopen_array"} if workload == "updates" else {}
    assert {verb: (f["phase"], f["rank"], f["ranks_failed"]) for verb, f in told.items()} == {
        verb: (phase, 1, 1) for verb, phase in (PHASES | first).items()
    }


def test_all_cases_that_do_not_fail_are_recorded(raised):
    good = [name for name, e in raised.record["cases"].items() if not e["failure"]]
    assert len(good) == len(WORKLOADS) * len(LAYOUTS)
    assert set(finished(raised)) == {(name, 0) for name in good}
    assert not list((raised.out.parent / "scratch").iterdir())


def test_a_writer_that_raises_in_any_phase_ends_its_case_only(tmp_path):
    """Of three ranks two have the store open, and the third waits for them in the exchanges."""
    through = {"backend": "null", "rearranger": "box", "writers": {"count": 2},
               "durability": "flush"}  # fmt: skip
    cases = [
        {"workload": name, **through, **more, "null": {"fail": [*VERBS, None], "fail_rank": rank}}
        for name, more in WORKLOADS.items()
        for rank in (0, 1)
    ]
    done = run_experiment(tmp_path, RANKS, cases=cases, hang_timeout="60 s", timeout=LIMIT)
    assert done.status == 1, done.said
    found = {}
    for entry in done.record["cases"].values():
        failure, options = entry["failure"], entry["options"]
        place = entry["parameters"]["workload"], options["fail_rank"], options["fail"]
        found[place] = failure and (failure["rank"], failure["ranks_failed"])
    assert len(found) == len(WORKLOADS) * 2 * (len(VERBS) + 1)
    assert {v for (_, _, verb), v in found.items() if verb is None} == {None}
    for rank in (0, 1):
        told = {v for (_, failing, verb), v in found.items() if failing == rank and verb}
        assert told == {(rank, 1)}


@pytest.mark.parametrize("backend", sampled(["hdf5", "zarr"], "hdf5"))
def test_a_real_library_that_fails_on_one_rank(tmp_path, backend):
    """In a file of its own: where ranks call together the others wait, until the watchdog acts."""
    shapes = [[4, 4 * n] for n in range(1, len(VERBS) + 2)]
    cases = [SLAB | {"backend": backend, "files": "per_rank", "durability": "flush",
                     "shape_per_rank": shape} for shape in shapes]  # fmt: skip
    fault = {"verb": "each", "kind": "fail", "rank": 1, "backend": backend}
    done = run_faulty(tmp_path, 2, fault=fault, cases=cases, repetitions=1)
    assert done.status == 1, done.said
    entries = done.record["cases"].values()
    failures = [entry["failure"] for entry in entries if entry["failure"]]
    assert sorted(failure["phase"] for failure in failures) == sorted(PHASES.values())
    assert {failure["rank"] for failure in failures} == {1}
    assert len(failures) == len(entries) - 1
    assert not list((tmp_path / "scratch").iterdir())
    no_process_is_left(tmp_path)


@pytest.mark.parametrize(
    "verb",
    sampled(["prepare define", "prepare arrays", "wrap", "attributes"], "prepare define", "wrap"),
)
def test_a_rank_that_fails_off_the_timer_ends_its_case_only(tmp_path, verb):
    """In one file that all ranks define, with an array of which some hold nothing."""
    case = {"workload": "datasets", "datasets": 2, "shape": [2, 4], "files": "one",
            "attributes": 1, "backend": ["hdf5", "netcdf4"]}  # fmt: skip
    done = run_faulty(tmp_path, RANKS, fault={"verb": verb, "kind": "fail", "rank": 1, "after": 0},
                      cases=[case], repetitions=1)  # fmt: skip
    assert done.status == 1, done.said
    failure = done.record["cases"][done.case(backend="hdf5")]["failure"]
    assert (failure["phase"], failure["rank"], failure["ranks_failed"]) == ("preparation", 1, 1)
    assert not done.record["cases"][done.case(backend="netcdf4")]["failure"]
    assert not list((tmp_path / "scratch").iterdir())


COLLECTIVE = [SLAB | {"backend": "null"}, SLAB | {"backend": "hdf5", "transfer": "collective"}]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        pytest.param("die", "", marks=pytest.mark.full),
        ("overflow", "Segmentation fault"),
    ],
)
def test_a_rank_that_dies_in_a_collective_write_ends_the_job(tmp_path, kind, said):
    fault = {"verb": "write", "kind": kind, "rank": 1, "after": 2}
    done = run_faulty(tmp_path, RANKS, fault=fault, cases=COLLECTIVE)
    assert done.status not in (0, 2, 3), done.said
    assert said in done.stderr
    if kind == "overflow":
        assert "in deeper" in done.stderr  # the stack says where it was
    assert done.record["status"] == "running"
    assert len(finished(done)) >= 4
    no_process_is_left(tmp_path)
    completes(done, RANKS)


GROUPED = {"files": {"count": 2}}


@pytest.mark.full  # in a file of all ranks above
def test_a_rank_that_dies_in_one_of_two_groups_ends_the_job_and_the_run_goes_on(tmp_path):
    fault = {"verb": "write", "kind": "die", "rank": 3, "after": 2}
    cases = [SLAB | GROUPED | {"backend": "null"},
             SLAB | GROUPED | {"backend": "hdf5", "transfer": "collective"}]  # fmt: skip
    done = run_faulty(tmp_path, 4, fault=fault, cases=cases)
    assert done.status not in (0, 2, 3), done.said
    assert done.record["status"] == "running"
    assert len(finished(done)) >= 4
    no_process_is_left(tmp_path)
    completes(done, 4)


def test_a_rank_that_raises_in_one_of_two_groups_ends_the_case_on_all(tmp_path):
    null = SLAB | GROUPED | {"backend": "null", "durability": "flush"}
    cases = [null | {"null": {"fail": list(VERBS), "fail_rank": 2}}, null]
    done = run_experiment(tmp_path, 4, cases=cases)
    assert done.status == 1, done.said
    *failed, good = done.record["cases"].values()
    assert [entry["failure"]["phase"] for entry in failed] == list(PHASES.values())
    assert {entry["failure"]["rank"] for entry in failed} == {2}
    assert not good["failure"]
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.full  # test_reliability_hang.py sees that the ranks of one file end
def test_a_group_whose_rank_waits_for_ever_ends_the_job_in_time(tmp_path):
    """Rank 3 fails before a collective write; rank 2 is in it, the other group at the barrier."""
    fault = {"verb": "write", "kind": "fail", "rank": 3, "after": 1}
    cases = [SLAB | GROUPED | {"backend": "hdf5", "transfer": "collective"}]
    done = run_faulty(tmp_path, 4, "--set", "hang_timeout=5 s", fault=fault, cases=cases)
    assert done.status not in (0, 2, 3), done.said
    (line,) = re.findall(r"^pffbench: .*nothing has come to an end .*$", done.stderr, re.MULTILINE)
    assert "write; ranks" in line
    assert "rank 3" in done.stderr
    no_process_is_left(tmp_path)


def test_a_rank_without_memory_ends_its_case_only(tmp_path):
    only_with_open_mpi("MPICH itself ends all ranks when it gets no memory")
    large = {"workload": "hyperslab", "shape_per_rank": [4096, 8192], "backend": "hdf5"}
    fault = {"verb": "create", "kind": "starve", "rank": 1}  # before it takes its 128 MiB
    done = run_faulty(tmp_path, 2, fault=fault, repetitions=1,
                      cases=[large, SLAB | {"backend": "null"}])  # fmt: skip
    assert done.status == 1, done.said
    failure = done.record["cases"][done.case(backend="hdf5")]["failure"]
    assert failure["rank"] == 1
    assert "MemoryError" in failure["error"]
    assert not done.record["cases"][done.case(backend="null")]["failure"]
    assert not list((tmp_path / "scratch").iterdir())
    no_process_is_left(tmp_path)


def test_a_library_that_returns_wrong_bytes_makes_the_run_not_valid(tmp_path):
    fault = {"verb": "read", "kind": "lie", "rank": 1}
    done = run_faulty(tmp_path, 2, fault=fault, repetitions=1, cases=COLLECTIVE)
    assert done.status == 1, done.said
    (reason,) = done.record["reasons"]
    assert reason.startswith(f"{done.case(backend='hdf5')} repetition 0: rank 1: ")
    assert {row["valid"] for row in done.rows if row["backend"] == "hdf5"} == {"false"}


SLOW = [SLAB | {"backend": "null", "null": {"delays": {"write": 0.4}}}]


@pytest.mark.parametrize(
    "number",
    sampled([signal.SIGTERM, signal.SIGUSR1, signal.SIGKILL]),
)  # test_printed_commands_of_runs.py kills one too
def test_a_signal_to_the_launcher(tmp_path, number):
    """SIGUSR1 ends the run after the repetition in hand, and nothing survives a killed launcher.

    So does SIGTERM, but the mpiexec of Open MPI gives ranks a second only before it kills them.
    That of MPICH ends with 0 after a signal, whatever its ranks ended with: the record tells.
    """
    env = {"PFFBENCH_TEST_TAG": str(tmp_path)}
    run = start_experiment(tmp_path, 2, repetitions=8, warmup=0, cases=SLOW, env=env)
    wait_until(lambda: (run.out / "repetitions.jsonl").exists() and lines_of(run.out))
    os.kill(run.process.pid, number)
    done = run.finish()
    no_process_is_left(tmp_path)
    if number == signal.SIGUSR1:
        assert done.record["status"] == "interrupted", done.said
        assert done.status == 3 or not with_open_mpi()
    assert done.status != 0 or (number != signal.SIGKILL and not with_open_mpi())
    assert 1 <= len(finished(done)) < 8
    completes(done, 2, repetitions=8)
