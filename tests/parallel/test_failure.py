"""A rank that fails makes all ranks leave the phase together; the other cases go on."""

import pytest

from launch import PROGRAMS, run, run_experiment, sampled, start_experiment

pytestmark = pytest.mark.parallel

RANKS = 3
NULL = {"workload": "hyperslab", "backend": "null", "shape_per_rank": [4, 4]}
#: The phase in which each verb of a backend is called.
PHASE_OF = {"create": "create", "define": "define", "write": "write", "flush": "flush",
            "close": "close", "open": "open", "arrays": "open_array", "read": "read"}  # fmt: skip


@pytest.fixture(scope="module")
def failing(tmp_path_factory):
    """A case for every verb that can fail, on the last rank, and two cases that do not."""
    cases = [
        NULL | {"durability": "flush", "null": {"fail": list(PHASE_OF), "fail_rank": 2}},
        NULL | {"files": "per_rank"},
        NULL | {"backend": "hdf5"},
    ]
    return run_experiment(tmp_path_factory.mktemp("failing"), RANKS, repetitions=2, cases=cases)


def test_the_run_is_not_valid(failing):
    assert failing.status == 1, failing.said
    assert failing.record["valid"] is False
    assert failing.record["status"] == "finished"
    assert "\nINVALID: " in failing.stdout


@pytest.mark.parametrize("verb", PHASE_OF)
def test_the_failure_names_phase_rank_host_and_error(failing, verb):
    name = failing.case(fail=verb)
    failure = failing.record["cases"][name]["failure"]
    assert failure["phase"] == PHASE_OF[verb]
    assert failure["rank"] == 2
    assert failure["host"] == failing.record["topology"]["hosts"][2]
    assert failure["error"] == f"OSError: {verb} was told to fail on this rank"
    assert "Traceback" in failure["traceback"]
    assert "null.py" in failure["traceback"]
    assert failure["ranks_failed"] == 1
    assert failure["repetition"] == 0
    assert any(r.startswith(f"{name} repetition 0: ") for r in failing.record["reasons"])


def test_a_failed_case_has_no_rows_and_is_not_run_again(failing):
    for verb in PHASE_OF:
        assert failing.phases(failing.case(fail=verb)) == {}
    assert len(failing.record["reasons"]) == len(PHASE_OF)


def test_the_other_cases_run_to_their_end(failing):
    for name in (failing.case(files="per_rank"), failing.case(backend="hdf5")):
        phases = failing.phases(name)
        assert {len(rows) for rows in phases.values()} == {2}
        assert "remove" in phases


@pytest.mark.full
def test_ranks_that_leave_an_open_store_end_with_the_status_each_time(tmp_path):
    """MPICH's mpiexec may kill those that leave after the first, and end with the signal."""
    cases = [NULL | {"null": {"fail": "write", "fail_rank": 2}}]
    for number in range(10):
        (tmp_path / f"{number}").mkdir()
        done = run_experiment(tmp_path / f"{number}", RANKS, cases=cases)
        assert done.status == 1, done.said


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    """Run cases whose files are longer than a file may be, and one that has none."""
    big = {"workload": "hyperslab", "shape_per_rank": [512, 1024]}  # 2 MiB for each rank
    steps = {"workload": "hyperslab", "shape_per_rank": [100, 1024], "steps": 3}
    cases = [
        big | {"backend": ["posix", "mpiio", "hdf5", "netcdf4"], "files": "per_rank"},
        big | {"backend": "npy", "files": "one", "arrays": ["shared", "per_rank"]},
        steps | {"backend": ["posix", "mpiio"], "files": "per_rank"},
        NULL,
    ]
    directory, program = tmp_path_factory.mktemp("limited"), (PROGRAMS / "limited.py",)
    return start_experiment(directory, 2, program=program, cases=cases).finish()


def failures(run, **wanted):
    """Return the failures of the cases with some parameters, by backend."""
    found = {}
    for entry in run.record["cases"].values():
        p = entry["parameters"]
        if wanted.items() <= p.items() and p["backend"] != "null":
            found[p["backend"]] = entry["failure"]
    return found


def test_files_that_cannot_grow_fail_their_cases_only(limited):
    assert limited.status == 1, limited.said
    found = failures(limited, files="per_rank", steps=None)
    assert found.keys() == {"posix", "mpiio", "hdf5", "netcdf4"}
    assert {failure["phase"] for failure in found.values()} <= {"write", "close"}
    assert {failure["ranks_failed"] for failure in found.values()} == {2}
    assert limited.phases(limited.case(backend="null"))["remove"]
    assert limited.record["status"] == "finished"
    assert list((limited.out.parent / "scratch").iterdir()) == []


@pytest.mark.parametrize(("arrays", "ranks"), [("shared", 1), ("per_rank", 2)])
def test_where_rank_0_makes_what_all_share_its_failure_ends_the_case_on_all(limited, arrays, ranks):
    """Of a .npy file the header tells the size; with arrays: per_rank each rank makes its file."""
    failure = failures(limited, files="one", arrays=arrays)["npy"]
    assert (failure["phase"], failure["rank"]) == ("define", 0)
    assert failure["ranks_failed"] == ranks
    assert "File too large" in failure["error"]


def test_a_transfer_that_ends_early_without_an_error_fails_its_case(limited):
    """The third of three arrays of 400 KiB, the last that is written, finds room for 224 KiB.

    Neither call says why it took a part; the failure does. ROMIO raises an error, and Open MPI 5
    one without a reason.
    """
    found = failures(limited, steps=3)
    assert {(f["phase"], f["ranks_failed"]) for f in found.values()} == {("write", 2)}
    took_a_part = "a call moved 229376 of 409600 bytes of "
    assert took_a_part in found["posix"]["error"]
    error = found["mpiio"]["error"]
    raised = ("ADIOI_GEN_WRITECONTIG", "MPI_ERR_OTHER")
    assert took_a_part in error or any(name in error for name in raised)
    assert all(f["error"].rstrip().endswith("File too large") for f in found.values()), found


def test_runs_side_by_side_keep_apart(tmp_path):
    """Two runs in one scratch directory at the same time: nobody removes the other's files."""
    case = NULL | {"backend": ["hdf5", "posix"], "files": "per_rank"}
    places = [tmp_path / "a", tmp_path / "b"]
    shared = tmp_path / "shared"
    shared.mkdir()
    for place in places:
        place.mkdir()
    started = [start_experiment(place, None, "--scratch", shared, repetitions=3, cases=[case])
               for place in places]  # fmt: skip
    done = [run.finish() for run in started]
    assert [run.status for run in done] == [0, 0], done[0].said + done[1].said
    assert done[0].record["run_id"] != done[1].record["run_id"]
    assert done[0].record["scratch"] != done[1].record["scratch"]
    assert list(shared.iterdir()) == []


def test_two_runs_never_share_a_results_directory(tmp_path):
    """Of two runs that are told the same --out at the same moment, one goes on."""
    case = NULL | {"null": {"delays": {"write": 0.3}}}
    started = [start_experiment(tmp_path, None, repetitions=3, cases=[case]) for _ in range(2)]
    done = [run.finish() for run in started]
    assert sorted(run.status for run in done) == [0, 2], done[0].said + done[1].said
    assert len(done[0].rows) == 3 * len(done[0].phases(done[0].case(backend="null")))


@pytest.mark.parametrize(
    ("failing", "found"),
    sampled(
        [
            (-1, "all well"),
            (0, "1 failed, rank 0: OSError: no room"),
            (2, "1 failed, rank 2: OSError: no room"),
        ],
        (2, "1 failed, rank 2: OSError: no room"),
    ),
)
def test_ranks_that_do_something_together_fail_together(failing, found):
    done = run([PROGRAMS / "together.py", failing], ranks=3)
    assert done.status == 0, done.said
    assert done.stdout.strip() == " | ".join([found] * 3)


@pytest.mark.parametrize("backend", sampled(["zarr", "tensorstore"], "zarr"))
def test_a_rank_that_does_not_find_an_array_that_grew_keeps_no_one_waiting(tmp_path, backend):
    """Another array grows after it, in which the failing rank takes no part."""
    done = run([PROGRAMS / "growing.py", tmp_path, backend, 1], ranks=3)
    assert done.status == 0, done.said
    assert done.stdout.strip() == " | ".join(["1 failed, rank 1: OSError: not found"] * 3)


def test_a_single_rank_that_fails_is_recorded(tmp_path):
    case = {"backend": "null", "workload": "hyperslab", "shape": [4], "null": {"fail": "write"}}
    done = run_experiment(tmp_path, 1, cases=[case])
    assert done.status == 1, done.said
    (entry,) = done.record["cases"].values()
    assert (entry["failure"]["phase"], entry["failure"]["ranks_failed"]) == ("write", 1)


def test_a_file_that_is_too_short_after_closing_is_data_lost_in_writing(tmp_path):
    """The last write of a rank moves nothing: as told by a failure of writing, not of reading."""
    program = (PROGRAMS / "lost_end.py",)
    case = NULL | {"backend": "posix", "files": "per_rank", "steps": 3}
    done = run_experiment(tmp_path, 1, program=program, cases=[case])
    assert done.status == 1, done.said
    (entry,) = done.record["cases"].values()
    assert entry["failure"]["phase"] == "files"
    assert (
        "the file has 128 bytes after closing, and writes reached to 192: data were lost"
        in (entry["failure"]["error"])
    )
