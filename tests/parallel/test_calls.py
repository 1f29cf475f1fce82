"""What does not fit into one call or into memory is cut, and nothing is lost on the way."""

import pytest

from launch import PROGRAMS, run, run_experiment

pytestmark = pytest.mark.parallel

RANKS = 3
TOGETHER = ["hdf5", "netcdf4", "mpiio"]
SMALL = (PROGRAMS / "small_calls.py",)
#: 3 + 3 + 3 + 1 rows of 600 bytes: the ranks need different numbers of calls of 1000 bytes.
UNEVEN = {"workload": "hyperslab", "shape": [10, 150]}


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    """Cases on four ranks whose libraries take 1000 bytes in a call."""
    long = UNEVEN | {"backend": TOGETHER, "transfer": ["collective", "independent"],
                     "files": "one", "arrays": ["shared", "per_rank"]}  # fmt: skip
    boxes = {"workload": "hyperslab", "shape": [6, 50, 5], "backend": TOGETHER,
             "decomposition": "block", "transfer": "collective", "steps": 2}  # fmt: skip
    views = {"workload": "hyperslab", "shape": [7, 150], "backend": "mpiio",
             "decomposition": "block"}  # fmt: skip
    directory = tmp_path_factory.mktemp("split")
    done = run_experiment(directory, 4, program=SMALL, cases=[long, boxes, views])
    assert done.status == 0, done.said
    return done


def test_long_calls_and_those_of_boxes_that_are_not_contiguous_are_split(split):
    """Ranks make different numbers of calls; independent ones must not wait for each other."""
    several = {name: entry for name, entry in split.record["cases"].items()
               if entry["parameters"]["shape"] != [7, 150]}  # fmt: skip
    assert len(several) == 3 * 2 * 2 + 3
    for name, entry in several.items():
        assert not entry["failure"]
        moved = [split.phases(name)[phase][0] for phase in ("write", "read")]
        nbytes, calls = ([int(row[key]) for row in moved] for key in ("bytes", "operations"))
        if entry["parameters"]["steps"]:
            assert nbytes == [2 * 6000] * 2, name
            assert calls[0] > 2 * 4, name
        else:
            assert (nbytes, calls) == ([6000] * 2, [10] * 2), name


def test_long_independent_calls_of_mpiio_through_views_are_split(split):
    """Two ranks need two calls, two need one; setting a view is collective in MPI-IO."""
    write = split.phases(split.case(shape=(7, 150)))["write"][0]
    assert (int(write["bytes"]), int(write["operations"])) == (4200, 6)


@pytest.mark.full
def test_views_leave_nothing_in_memory(tmp_path):
    done = run([PROGRAMS / "views.py", tmp_path / "x.raw"], ranks=2, timeout=240)
    assert done.status == 0, done.said
    assert int(done.stdout) < 20  # MiB; 45 types of 32 768 places each take more than 50


@pytest.fixture(scope="module")
def batched(tmp_path_factory):
    """The same cases with memory for everything and for almost nothing."""
    cases = [
        {"workload": "datasets", "datasets": 7, "shape": [16, 16], "files": "one",
         "arrays": ["per_rank", "shared"],
         "backend": [*TOGETHER, "zarr"], "transfer": ["independent", "collective"]},
        {"workload": "datasets", "datasets": 7, "shape": [16, 16], "files": "per_rank",
         "backend": "posix"},
        {"workload": "hyperslab", "shape": [9, 40], "steps": 5, "backend": TOGETHER},
    ]  # fmt: skip
    return [
        run_experiment(tmp_path_factory.mktemp("batched"), RANKS, cases=cases, memory=memory)
        for memory in ("64 MiB", "1 KiB")
    ]


@pytest.mark.full
def test_little_memory_gives_the_same_valid_result(batched):
    ample, little = batched
    assert ample.status == little.status == 0, ample.said + little.said
    kept = [
        [(r["case"], r["phase"], r["bytes"], r["operations"]) for r in done.rows]
        for done in batched
    ]
    assert kept[0] == kept[1]


@pytest.mark.full
def test_batches_and_pieces_cover_everything_once_on_all_ranks():
    done = run([PROGRAMS / "check_batches.py"], ranks=RANKS)
    assert done.status == 0, done.said
    assert "checked 200" in done.stdout
    assert int(done.stdout.split()[-2]) > 5


def test_raw_transfers_move_at_most_what_a_call_may_and_read_their_header_first(tmp_path):
    """Those that are added to cold reads of chunks of 64 KiB."""
    case = {"workload": "hyperslab", "shape_per_rank": [5, 64, 128], "backend": "hdf5",
            "files": ["per_rank", "one"], "arrays": ["per_rank", "shared"], "chunks": [2, 64, 128],
            "cache": "dropped"}  # fmt: skip
    done = run_experiment(tmp_path, 2, cases=[case], counters=True, roofline=True)
    assert done.status == 0, done.said
    raw = [name for name, entry in done.record["cases"].items() if entry["roofline"]]
    assert {name.partition(".")[0] for name in raw} == {"posix", "mpiio"}
    for name in raw:
        phases = done.phases(name)
        # 160 KiB of each rank: 64 + 64 + 32.
        assert [int(phases[p][0]["operations"]) for p in ("write", "read")] == [6, 6]
        opened = {
            row["counter"]: float(row["total"]) for row in done.counts
            if (row["case"], row["phase"]) == (name, "open")
        }  # fmt: skip
        assert opened["read_bytes"] >= 2 * 4096
