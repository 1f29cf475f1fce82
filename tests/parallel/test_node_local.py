"""Ranks of several nodes that write to a directory of their node, as on a burst buffer."""

import pytest

from launch import PROGRAMS, run, run_experiment, sampled

pytestmark = pytest.mark.parallel

TWO_NODES = (PROGRAMS / "two_nodes.py",)
CASE = {"workload": "hyperslab", "shape_per_rank": [4, 16]}
OWN = CASE | {"backend": ["hdf5", "zarr"], "files": "per_rank"}


def run_on_nodes(
    directory, *nodes, ranks=4, scratch="local-$NODE", cases=(OWN,), program=TWO_NODES, **content
):  # fmt: skip
    for node in nodes:
        (directory / f"local-{node}").mkdir()
    return run_experiment(
        directory, ranks, "--scratch", directory / scratch, program=program,
        **{"node_local": True, "cases": list(cases)} | content,
    )  # fmt: skip


def names_left(directory):
    return sorted(p.name for node in directory.glob("local-*") for p in node.iterdir())


def test_each_node_writes_reads_and_cleans_its_own_directory(tmp_path):
    shared = CASE | {"backend": "hdf5", "files": "one", "arrays": "shared"}
    done = run_on_nodes(tmp_path, 0, 1, cases=[OWN, shared])
    assert done.status == 0, done.said
    assert names_left(tmp_path) == []
    paths = [host["scratch"]["path"] for host in done.record["provenance"]["hosts"]]
    assert {path.rpartition("/")[0] for path in paths} == {
        str(tmp_path / "local-0"), str(tmp_path / "local-1"),
    }  # fmt: skip
    disk = {done.record["cases"][case]["disk"]["files"] for case in done.record["cases"]}
    assert min(disk) == 4, "the files of both nodes are counted"
    ((out, reason),) = [(e["case"], e["reason"]) for e in done.record["left_out"]]
    assert "shared" in out
    assert "no file is shared between nodes (possible: files: per_rank, and " in reason
    assert "remark: each node had files of its own, on" in (done.out / "summary.md").read_text()


def test_the_ranks_of_a_node_share_files_in_its_own_directory(tmp_path):
    files = {"files": [{"per_node": 1}, {"count": 2}], "arrays": ["shared", "per_rank"]}
    cases = [CASE | {"backend": "hdf5"} | files]
    blocks = (PROGRAMS / "blocks_of_nodes.py",)
    done = run_on_nodes(tmp_path, 0, 1, cases=cases, program=blocks)
    assert done.status == 0, done.said
    assert done.record["valid"] is True
    groups = [entry["parameters"]["files"] for entry in done.record["cases"].values()]
    assert groups == [{"per_node": 1}] * 2
    assert len(done.record["left_out"]) == 2
    assert names_left(tmp_path) == []


@pytest.mark.parametrize(
    ("nodes", "how", "why"),
    [((0, 1), {"scratch": "local-0"}, "nodes share it"),
     ((0,), {}, "local-1"),
     *sampled([
         ((0, 1), {"scratch": "local-$NOWHERE"}, "the variable NOWHERE is not set"),
         ((0, 1), {"unsupported": "refuse", "cases": [OWN | {"files": "one",
                                                             "arrays": "per_rank"}]},
                                                             "per_rank"),
         ((0, 1), {"unsupported": "refuse", "cases": [OWN | {"cache": "shifted"}]}, "another node"),
     ])],
)  # fmt: skip
def test_what_cannot_lie_on_each_node_is_refused_and_nothing_stays(tmp_path, nodes, how, why):
    done = run_on_nodes(tmp_path, *nodes, ranks=2, **how)
    assert done.status == 2, done.said
    assert why in done.stderr
    assert "Traceback" not in done.said
    assert names_left(tmp_path) == []
    assert not done.out.exists()


def test_a_node_without_space_for_the_files_of_its_ranks_is_named_before_anything_is_made(tmp_path):
    large = OWN | {"shape_per_rank": [2**20, 2**20], "chunks": [1024, 1024], "backend": "hdf5"}
    done = run_on_nodes(tmp_path, 0, 1, cases=[large])
    assert done.status == 2, done.said
    assert f"in {tmp_path}/local-0, where" in done.stderr
    assert names_left(tmp_path) == []


@pytest.mark.full
def test_a_run_that_was_stopped_goes_on_on_its_nodes(tmp_path):
    for node in (0, 1):
        (tmp_path / f"local-{node}").mkdir()
    scratch = ("--scratch", tmp_path / "local-$NODE")
    stopped = run_experiment(
        tmp_path, 4, *scratch, "--max-time", "0.05 s", program=TWO_NODES, node_local=True,
        repetitions=20, cases=[OWN],
    )  # fmt: skip
    assert stopped.status == 3, stopped.said
    assert names_left(tmp_path) == []
    command = [*TWO_NODES, "run", "--resume", stopped.out, *scratch, "--max-time", "none"]
    done = run(command, ranks=4, cwd=tmp_path, out=stopped.out)
    assert done.status == 0, done.said
    assert done.record["valid"] is True
    assert names_left(tmp_path) == []
