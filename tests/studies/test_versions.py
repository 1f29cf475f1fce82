"""The workload `versions` on several ranks: valid, counted, read back; refused in one sentence."""

import h5py
import numpy as np
import pytest

from launch import cannot_run, pffbench_here, run_experiment, sampled, write_experiment

pytestmark = pytest.mark.parallel

COMMON = {
    "workload": "versions", "files": "per_rank", "dtype": "float64", "versions": 5,
    "kind": "small_fraction_changes_sparse", "chunks": [2048],
}  # fmt: skip
WAYS = [
    {"backend": "hdf5", "keep": ["last", "copies", "chunks"]},
    {"backend": "zarr", "keep": ["last", "copies", "chunks"]},
]


def counters_of(run, case):
    """Return the counters of a case, over all ranks, by phase and name."""
    return {(row["phase"], row["counter"]): row for row in run.counts if row["case"] == case}


def total(run, case, phase, counter):
    return float(counters_of(run, case)[phase, counter]["total"])


@pytest.fixture(scope="module", params=sampled([1, 2, 4], 2))
def everything(request, tmp_path_factory):
    run = run_experiment(
        tmp_path_factory.mktemp("versions"), request.param, common=COMMON, cases=WAYS
    )
    return request.param, run


def test_all_ways_are_valid_with_any_number_of_ranks(everything):
    ranks, run = everything
    assert run.status == 0, run.said
    assert run.record["valid"]
    assert run.record["ranks"] == ranks
    assert len(run.record["cases"]) == 6


def test_every_version_is_a_part_of_the_phases(everything):
    ranks, run = everything
    for case, entry in run.record["cases"].items():
        phases = run.phases(case)
        for phase in ("write", "commit", "flush"):
            assert len(phases[phase]) == 1
            tenths = [total(run, case, phase, f"tenth_{i:02d}_seconds") for i in range(1, 11)]
            assert sum(tenths) <= ranks * float(phases[phase][0]["own_max"]) * 1.0001
        keeps_all = entry["parameters"]["keep"] != "last"
        assert ("read_all" in phases) == keeps_all
        if keeps_all:
            each = {name: int(phases[name][0]["bytes"]) for name in ("read_first", "read")}
            assert int(phases["read_all"][0]["bytes"]) > 5 * each["read_first"]
            assert each["read"] > each["read_first"] == ranks * 5000 * 24


def test_all_that_is_read_is_verified(everything):
    _, run = everything
    for case in run.record["cases"]:
        rows = [row for row in run.rows if row["case"] == case]
        read = sum(int(row["bytes"]) for row in rows if row["phase"].split("_")[0] == "read")
        (verified,) = (int(row["verified_bytes"]) for row in rows if row["phase"] == "read")
        assert verified == read > 0


def test_rows_and_chunks_are_counted_alike_in_all_ways(everything):
    ranks, run = everything
    cases = {
        (e["parameters"]["backend"], e["parameters"]["keep"]): c
        for c, e in run.record["cases"].items()
    }
    for counter in ("changed", "inserted", "deleted", "appended", "final_rows"):
        assert len({total(run, case, "version", counter) for case in cases.values()}) == 1
    one = cases["hdf5", "chunks"]
    came, gone, more = (total(run, one, "version", c) for c in ("inserted", "deleted", "appended"))
    assert total(run, one, "version", "final_rows") == ranks * 5000 + came - gone + more
    for counter in ("chunks_stored", "chunks_reused", "chunks_referenced"):
        both = {total(run, cases[b, "chunks"], "close", counter) for b in ("hdf5", "zarr")}
        assert len(both) == 1
    stored, reused = (total(run, one, "close", f"chunks_{w}") for w in ("stored", "reused"))
    assert stored > 0 < reused
    assert total(run, cases["hdf5", "copies"], "close", "chunks_reused") == 0
    sizes = {w: total(run, cases["hdf5", w], "close", "file_bytes") for w in ("last", "copies")}
    assert sizes["copies"] > 5 * sizes["last"]


def test_libraries_that_keep_versions_are_valid_too(tmp_path):
    pytest.importorskip("versioned_hdf5", exc_type=ImportError)
    pytest.importorskip("icechunk")
    run = run_experiment(
        tmp_path, 2, common=COMMON,
        cases=[{"backend": "hdf5", "keep": "versioned_hdf5"},
               {"backend": "zarr", "keep": "icechunk"}],
    )  # fmt: skip
    assert run.status == 0, run.said
    assert len(run.record["cases"]) == 2


def test_a_dropped_cache_is_proved_and_shifted_ranks_read_others(tmp_path):
    run = run_experiment(
        tmp_path, 3, common=COMMON | {"durability": "sync", "cache": ["dropped", "shifted"]},
        cases=[{"backend": "hdf5", "keep": "chunks"}],
    )  # fmt: skip
    if "dropped" in run.said and "resident before reading" in run.said:
        cannot_run("this file system does not drop pages")
    assert run.status == 0, run.said
    assert {row["cache"] for row in run.rows if row["phase"] == "read"} == {"dropped", "shifted"}


def test_the_plain_file_holds_the_last_version(tmp_path):
    """Kept by a job that only writes, and looked at with h5py alone."""
    run = run_experiment(
        tmp_path, 2, "--stage", "write", common=COMMON | {"cache": "separate"},
        cases=[{"backend": "hdf5", "keep": ["last", "chunks"]}],
    )  # fmt: skip
    assert run.status == 0, run.said
    files = sorted((tmp_path / "scratch").rglob("rank-*.h5"))
    assert len(files) == 4
    tables = {}
    for path in files:
        with h5py.File(path) as file:
            if "val" in file:
                tables[path.name] = file["val"][:]
    for path in files:
        with h5py.File(path) as file:
            if "pool" in file:
                begin, rows = file["shapes/val"][5]
                places = file["places/val"][begin : begin + -(-rows // 2048)]
                found = np.concatenate([file["pool/val"][i] for i in places])[:rows]
                np.testing.assert_array_equal(found, tables[path.name])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"files": "one"}, "in its own file; use files: per_rank"),
        ({"dtype": "float32"}, "dtype float32 is not possible"),
        ({"source": "constant"}, "source constant is not possible"),
        ({"chunks": [8, 8]}, "chunks must be one length"),
        ({"chunks": "auto"}, "chunks must be one length"),
        ({"keep": "icechunk"}, "backend hdf5 cannot keep icechunk (ways that it can: last"),
        ({"backend": "netcdf4"}, "backend netcdf4 cannot keep last (ways that it can: none)"),
        ({"versions": 0}, "versions"),
        ({"kind": "nothing_changes"}, "kind"),
    ],
)
def test_what_is_impossible_is_refused_before_anything_is_made(tmp_path, change, said):
    case = COMMON | {"backend": "hdf5", "keep": "last"} | change
    path = write_experiment(tmp_path, unsupported="refuse", cases=[case])
    run = pffbench_here("plan", path, cwd=tmp_path)
    assert run.status == 2, run.said
    assert said in run.said.replace("\n", " ")
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_is_refused_as_a_source_since_the_tables_have_no_shape_to_fill_in(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((4, 5)))
    case = COMMON | {"backend": "hdf5", "keep": "last", "source": "file", "file": "a.npy"}
    path = write_experiment(tmp_path, unsupported="refuse", cases=[case])
    run = pffbench_here("plan", path, cwd=tmp_path)
    assert run.status == 2, run.said
    assert "source file is not possible: values are random" in run.said.replace("\n", " ")
