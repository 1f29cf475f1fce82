"""Workload `startup`: who opens and reads is counted, and what arrives is verified on each rank."""

import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from launch import PROGRAMS, pffbench_cli, run_experiment
from planted import planted

pytestmark = pytest.mark.parallel

ARRAYS, SHAPE = 6, [10]
SMALL = {"workload": "startup", "shape": SHAPE, "datasets": ARRAYS}
DELIVERED = ["root_bcast", "node_leader_bcast", "node_leader_shared"]
TWO_NODES = (PROGRAMS / "two_nodes.py",)
#: Ranks that read, with three ranks on two nodes: 0 and 2 on the first one, 1 on the other.
READERS = {
    "every_rank": {0, 1, 2}, "collective": {0, 1, 2}, "root_bcast": {0},
    "node_leader_bcast": {0, 1}, "node_leader_shared": {0, 1},
}  # fmt: skip


def counters_of(done):
    """Return the counters by case, phase and name, summed over the ranks."""
    return {(r["case"], r["phase"], r["counter"]): float(r["total"]) for r in done.counts}


def readers_of(log):
    """Return the ranks that read files of a case, by the case's name."""
    found = defaultdict(set)
    for line in log.read_text().splitlines():
        rank, _, path = line.partition(" ")
        (directory,) = [part for part in Path(path).parts if part.startswith("0000-")]
        found[directory.removeprefix("0000-")].add(int(rank))
    return found


def test_opens_and_reads_are_those_of_the_strategy(tmp_path):
    log = tmp_path / "readers.txt"
    consolidated = {"consolidated": [False, True]}
    done = run_experiment(
        tmp_path, 3, program=TWO_NODES, env=planted("/0000-", readers=log),
        counters=True,
        cases=[
            SMALL | {"backend": ["hdf5", "posix"], "chunks": "contiguous",
                     "strategy": ["every_rank", *DELIVERED]},
            SMALL | {"backend": "netcdf4", "attributes": 2, "chunks": "contiguous",
                     "strategy": ["every_rank", "node_leader_bcast"]},
            SMALL | {"backend": ["hdf5", "netcdf4"], "attributes": 2, "strategy": "collective",
                     "transfer": "collective"},
            SMALL | {"backend": "zarr", "attributes": 2, "zarr": consolidated,
                     "strategy": ["every_rank", "node_leader_shared"]},
            SMALL | {"backend": ["npy", "tensorstore"], "strategy": "root_bcast"},
        ],
    )  # fmt: skip
    assert done.status == 0, done.said
    assert done.record["valid"] is True
    assert not done.record["left_out"]
    counts, who = counters_of(done), readers_of(log)
    for case, entry in done.record["cases"].items():
        p, phases = entry["parameters"], done.phases(case)
        readers = READERS[p["strategy"]]
        many, wanted = len(readers), ARRAYS * SHAPE[0] * 4
        calls = {name: int(phases[name][0]["operations"]) for name in ("open", "inquire", "read")}
        assert calls == {"open": many, "inquire": many * ARRAYS, "read": many * ARRAYS}, case
        assert who[case] == readers, case
        threads = p["backend"] in ("zarr", "tensorstore")
        assert ((case, "read", "threads") in counts) == threads, case
        if p["backend"] in ("hdf5", "netcdf4", "posix"):
            assert counts[case, "open", "descriptors"] == many, case
        assert int(phases["read"][0]["bytes"]) == many * wanted
        assert int(phases["read"][0]["verified_bytes"]) == 3 * wanted
        if p["strategy"] in DELIVERED:
            (row,) = phases["distribute"]
            assert (int(row["bytes"]), int(row["operations"])) == ((3 - many) * wanted, 3 - many)
        else:
            assert "distribute" not in phases
        if p["backend"] == "posix" or p["chunks"] == "contiguous":
            assert counts[case, "read", "read_bytes"] == many * wanted, case
            assert counts[case, "read", "read_calls"] == many * ARRAYS, case
    assert "distribute" in (done.out / "summary.md").read_text()


@pytest.mark.parametrize("program", ["unsent.py", None])
def test_a_rank_without_the_data_makes_the_run_invalid(tmp_path, program):
    """Rank 1 has what was there before: not sent, or its own reads moved nothing."""
    how = {"program": (PROGRAMS / program,)} if program else {
        "env": planted("rank-000000.raw", read="suppress", rank=1)
    }  # fmt: skip
    case = {"backend": "hdf5", "strategy": DELIVERED, "attributes": 1} if program else {
        "backend": "posix", "strategy": "every_rank"
    }  # fmt: skip
    done = run_experiment(tmp_path, 2, cases=[SMALL | case], **how)
    assert done.status == 1, done.said
    assert done.record["valid"] is False
    assert all("rank 1: " in entry["invalid"] for entry in done.record["cases"].values())


@pytest.mark.full
def test_one_process_delivers_to_itself_and_reads_cold(tmp_path):
    done = run_experiment(
        tmp_path, None, cases=[
            SMALL | {"backend": ["hdf5", "zarr"], "strategy": ["every_rank", *DELIVERED],
                     "cache": ["warm", "dropped"]},
        ],
    )  # fmt: skip
    assert done.status == 0, done.said
    assert done.record["valid"] is True
    states = Counter((row["phase"], row["cache"]) for row in done.rows if row["phase"] == "read")
    assert states["read", "dropped"] + states["read", "unproved"] == 8


def test_one_job_writes_and_another_one_reads(tmp_path):
    cases = [SMALL | {"backend": "hdf5", "strategy": ["every_rank", *DELIVERED],
                      "cache": "separate"}]  # fmt: skip
    done = run_experiment(tmp_path, 2, "--stage", "write", cases=cases)
    assert done.status == 0, done.said
    left = [path.name for path in (tmp_path / "scratch").rglob("*.h5")]
    assert left == ["rank-000000.h5"] * 4
    record = json.loads((done.out / "run.json").read_text())
    (done.out / "run.json").write_text(json.dumps(record | {"wrote_on": ["another-host"]}))
    told = ["run", "--resume", done.out, "--stage", "read"]
    read = pffbench_cli(*told, ranks=2, out=done.out, cwd=tmp_path)
    assert read.status == 0, read.said
    assert read.record["valid"] is True
    assert not list((tmp_path / "scratch").iterdir())
