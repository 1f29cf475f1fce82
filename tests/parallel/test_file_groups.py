"""A file for each group of ranks: what is written and read, by which ranks, in how many files."""

import subprocess

import numpy as np
import pytest
import zarr

from capable import ALL, COLLECTIVE, FORMATS, KINDS
from launch import PROGRAMS, pffbench_cli, run, run_experiment, sampled

pytestmark = pytest.mark.parallel

BOTH = ["independent", "collective"]
GROUPS = {
    "workload": "hyperslab",
}
#: With 5 ranks in slabs of 3 rows the last but one has 2 rows and the last one none.
UNEVEN = GROUPS | {"shape": [11, 5]}


def some_counts(ranks):
    """Return one file, uneven groups, and a file for each rank."""
    return [{"count": n} for n in sorted({1, min(3, ranks), ranks})]


WAYS = ["shared", "per_rank"]
#: Ranks, files, and arrays of several steps. One file for all ranks and one for each are other
#: values of `files`.
COUNTS = [(3, {"count": 2}, "shared"),
          *((ranks, some_counts(ranks), WAYS) for ranks in (1, 3, 4, 5, 7, 16))]  # fmt: skip


@pytest.mark.parametrize(("ranks", "files", "of_steps"), sampled(COUNTS, COUNTS[0]))
def test_every_format_is_valid_in_files_of_uneven_groups_as_many_as_planned(
    tmp_path, ranks, files, of_steps
):
    common = {"files": files, "arrays": WAYS, "transfer": BOTH}
    done = run_experiment(
        tmp_path, ranks, timeout=1200,
        cases=[
            GROUPS | common | {"backend": ALL, "shape_per_rank": [2, 3]},
            UNEVEN | common | {"backend": FORMATS, "settings": "defaults", "steps": 2,
                               "datasets": 2, "arrays": "per_rank"},
            UNEVEN | common | {"backend": COLLECTIVE, "steps": 2, "arrays": of_steps,
                               "distribution": "balanced"},
        ],
    )  # fmt: skip
    assert done.status == 0, done.said
    assert done.record["valid"] is True
    for case, entry in done.record["cases"].items():
        p, kind = entry["parameters"], KINDS[entry["parameters"]["backend"]]
        assert not entry["failure"], case
        assert all(row["valid"] == "true" for row in done.rows if row["case"] == case)
        # Where each array is a file the plan counts the directory of the store too.
        stores = p["files"]["count"] if kind.file_per == "array" else 0
        if kind.file_per == "store" or p["settings"] == "matched":
            assert entry["disk"]["files"] + stores == entry["cost"]["files"], (case, p)
    for left in done.record["left_out"]:
        assert "cannot do transfer collective" in left["reason"] or (
            "cannot do arrays: shared in files that ranks share" in left["reason"]
        ), left
    if ranks >= 5:
        assert len(done.record["cases"]) > 80


#: What other workloads do in files of groups: several arrays, parts changed and appended, units of
#: chunks, planes and boxes of a volume, and parts that other ranks of the file wrote.
PATTERNS = [
    {"workload": "datasets", "shape": [7, 3], "datasets": 5, "attributes": 1},
    {"workload": "updates", "shape": [4, 11], "change": ["every_second_element", "append"],
     "rows": 2},
    {"workload": "chunk_cache", "shape": [4, 5], "granules": 7, "chunks": [4, 5], "read": "chunks"},
    {"workload": "slices", "shape": [5, 11, 6], "axis": 1, "count": 2},
    {"workload": "slices", "shape": [5, 11, 6], "box": [2, 3, 4], "position": "random", "count": 3},
    {"workload": "hyperslab", "shape": [9, 8], "read_start": [1, 2], "read_shape": [5, 4]},
    {"workload": "hyperslab", "shape": [9, 8], "read_decomposition": "block",
     "arrays": "shared"},
]  # fmt: skip
#: What differs from these in the way of reading.
MORE = [
    {"workload": "chunk_cache", "shape": [4, 5], "granules": 7, "chunks": [4, 5], "read": "rows"},
    {"workload": "slices", "shape": [5, 11, 6], "axis": [0, 2], "count": 2},
]


#: One format of each library.
SOME = ["hdf5", "netcdf4", "zarr"]


@pytest.mark.parametrize(
    ("ranks", "transfer", "backends", "patterns"),
    # The test above has all formats in files of groups.
    [(3, "independent", ["hdf5"], PATTERNS),
     *sampled([(ranks, BOTH, FORMATS, PATTERNS + MORE) for ranks in (1, 3, 7)])],
)  # fmt: skip
def test_every_workload_that_cuts_arrays_is_valid_in_files_of_groups(
    tmp_path, ranks, transfer, backends, patterns
):
    common = {"files": [{"count": min(2, ranks)}], "arrays": ["shared", "per_rank"],
              "transfer": transfer, "backend": backends}  # fmt: skip
    done = run_experiment(tmp_path, ranks, cases=[common | pattern for pattern in patterns])
    assert done.status == 0, done.said
    assert done.record["valid"] is True
    ran = [entry["parameters"] for entry in done.record["cases"].values()]
    for workload in ("datasets", "updates", "chunk_cache", "slices", "hyperslab"):
        for backend in set(SOME) & set(backends):
            some = {
                p["arrays"] for p in ran if (p["workload"], p["backend"]) == (workload, backend)
            }
            assert some == {"shared", "per_rank"}, (workload, backend)


@pytest.mark.full
def test_a_rank_reads_what_a_rank_of_another_group_wrote(tmp_path):
    cases = [UNEVEN | {"backend": ALL, "files": {"count": 3}, "arrays": ["shared", "per_rank"],
                       "transfer": BOTH, "cache": "shifted"}]  # fmt: skip
    done = run_experiment(tmp_path, 5, cases=cases, program=(PROGRAMS / "two_nodes.py",))
    assert done.status == 0, done.said
    assert done.record["valid"] is True


def test_a_group_that_reads_the_file_of_another_one_is_found(tmp_path):
    cases = [GROUPS | {"backend": ["hdf5", "netcdf4", "mpiio"], "files": {"count": 2},
                       "arrays": "shared", "shape_per_rank": [8, 8]}]  # fmt: skip
    done = run_experiment(tmp_path, 4, cases=cases, program=(PROGRAMS / "other_group.py",))
    assert done.status == 1, done.said
    assert done.record["valid"] is False
    assert {row["valid"] for row in done.rows} == {"false"}, done.said
    for case in done.record["cases"]:
        found = [reason for reason in done.record["reasons"] if reason.startswith(case)]
        assert found[0].endswith("64 elements in all"), found


def stored(path):
    """Return the arrays of a store in the order of their names, by a program that is not ours."""
    if path.suffix == ".zarr":
        group = zarr.open_group(path, mode="r")
        return [group[name][...] for name in sorted(group.array_keys())]
    if path.suffix == ".h5":
        raw = path.with_suffix(".bin")
        names = subprocess.run(["h5ls", path], capture_output=True, text=True, check=True).stdout
        found = []
        for name in sorted(line.split()[0] for line in names.splitlines()):
            command = ["h5dump", "-d", name, "-b", "LE", "-o", raw, path]
            subprocess.run(command, capture_output=True, check=True)
            found.append(np.fromfile(raw, "<f4").reshape(-1, 5))
        return found
    text = subprocess.run(
        ["ncdump", "-p", "9,17", path], capture_output=True, text=True, check=True
    ).stdout.partition("data:")[2]
    parts = [part.partition("=")[2] for part in text.rstrip("} \n").split(";") if "=" in part]
    return [np.array(part.split(","), "f4").reshape(-1, 5) for part in parts]


def test_programs_that_know_nothing_of_groups_find_the_parts_of_one_array(tmp_path):
    """Files of groups, in their order, hold what one shared array holds."""
    # Groups of 2, 1 and 1 ranks; the ranks have 2, 2, 1 and no rows.
    common = GROUPS | {"backend": SOME, "cache": "separate", "shape": [5, 5]}
    cases = [common | {"files": {"count": 3}, "arrays": WAYS}, common | {"files": "one"}]
    done = run_experiment(tmp_path, 4, "--stage", "write", cases=cases)
    assert done.status == 0, done.said
    (directory,) = (tmp_path / "scratch").iterdir()
    whole = {}
    for repetition in sorted(path for path in directory.iterdir() if path.is_dir()):
        files = sorted(p for p in repetition.iterdir() if p.suffix in (".h5", ".nc", ".zarr"))
        if files:
            found = [array for file in files for array in stored(file)]
            whole[repetition.name] = np.concatenate(found)
            grouped = "count_3" in repetition.name
            names = [f"group-{n:06d}" for n in range(3)] if grouped else ["shared"]
            assert [file.stem for file in files] == names
    assert len(whole) == 9
    first, *others = whole.values()
    assert first.shape == (5, 5)
    for other in others:
        np.testing.assert_array_equal(other, first)


def test_a_file_per_node_is_shared_by_the_ranks_of_a_node(tmp_path):
    program = (PROGRAMS / "blocks_of_nodes.py",)
    cases = [GROUPS | {"backend": "hdf5", "files": [{"per_node": 1}, {"per_node": 2}],
                       "shape_per_rank": [8, 8]}]  # fmt: skip
    done = run_experiment(tmp_path, 4, cases=cases, program=program)
    assert done.status == 0, done.said
    assert [entry["disk"]["files"] for entry in done.record["cases"].values()] == [2, 4]


@pytest.mark.full
def test_a_run_with_a_file_per_node_goes_on_only_where_it_makes_as_many_files(tmp_path):
    """Four ranks on two nodes begin; on one node they would share one file."""
    slow = GROUPS | {"backend": "null", "shape_per_rank": [8, 8],
                     "null": {"delays": {"write": 0.2}}}  # fmt: skip
    cases = [GROUPS | {"backend": "posix", "files": {"per_node": 1}, "shape_per_rank": [8, 8]},
             slow | {"files": {"count": 2}}]  # fmt: skip
    program = (PROGRAMS / "blocks_of_nodes.py",)
    how = {"cases": cases, "repetitions": 40, "program": program}
    done = run_experiment(tmp_path, 4, "--max-time", "2 s", **how)
    assert done.status == 3, done.said
    there = ["--scratch", tmp_path / "scratch"]
    # A job that goes on wherever its ranks are; --resume refuses another placement before.
    refused = pffbench_cli("run", "--batch", "--out", done.out, *there, ranks=4, out=done.out)
    assert refused.status == 2, refused.said
    assert "not the same run: 1 cases have another number of files on these nodes" in refused.stderr
    again = [*program, "run", "--resume", done.out, *there, "--max-time", "1 s"]
    rest = run(again, ranks=4, out=done.out)
    assert rest.status == 3, rest.said
    assert rest.record["reasons"] == []


@pytest.mark.parametrize(
    ("ranks", "program", "told"),
    [
        (3, "blocks_of_nodes.py", "equally many ranks on each node, and they are 1 to 2"),
        (4, "two_nodes.py", "files.per_node needs consecutive ranks on each node"),
    ],
)
def test_nodes_whose_ranks_make_no_equal_groups_are_refused(tmp_path, ranks, program, told):
    cases = [GROUPS | {"backend": "posix", "files": {"per_node": 1}, "shape": [8, 8]}]
    done = run_experiment(
        tmp_path, ranks, cases=cases, unsupported="refuse", program=(PROGRAMS / program,)
    )
    assert done.status == 2
    assert told in done.stderr
    assert list((tmp_path / "scratch").iterdir()) == []
    assert not (tmp_path / "results").exists()
