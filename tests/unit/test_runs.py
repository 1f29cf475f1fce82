"""Runs as values: which rows count, and in what two runs differ."""

from __future__ import annotations

import copy

import pytest

pytest.importorskip("pandas")

from pffbench.errors import UserError
from pffbench.phases import totals_of
from pffbench.record.run import MeasuredRun
from pffbench.record.run_json import RunRecord
from pffbench.record.samples import Sample, SamplesLog
from pffbench_analysis.runs import ABSENT, Run, differences

PROVENANCE = {
    "inputs": {"map": {"bytes": 3, "sha256": "ab"}},
    "software": {
        "python": {"version": "3.12", "executable": "/a/python"},
        "libraries": {
            "h5py": {"version": "3.16", "imported": True, "path": "/a/h5py", "hdf5": "1.14.6"},
            "zarr": {"version": "3.1", "imported": False},
        },
        "loaded": {"libhdf5": ["/a/libhdf5.so.310"]},
    },
    "mpi_io": {"component": "ompio", "hints": {"cb_nodes": "2"}},
    "filesystem": {"type": "lustre", "path": "/s/1", "free_bytes": 5, "striping": "/s/1 count: 4"},
    "hosts": [
        {"host": "n1", "cpu_model": "X", "memory_bytes": 2**34 + 5, "vm": {"dirty_ratio": 20}},
        {"host": "n2", "cpu_model": "X", "memory_bytes": 2**34, "vm": {"dirty_ratio": 20}},
    ],
    "ranks": [{"host": "n1", "pid": 7, "affinity": "0", "cpus": 1}],
    "environment": {
        "HDF5_USE_FILE_LOCKING": "FALSE", "OMPI_MCA_io": "ompio", "SLURM_JOB_ID": "1",
        "OMPI_MCA_ess_base_jobid": "9", "PMIX_RANK": "0",
    },
    "slurm": {"job_id": "1", "cluster_name": "c", "job_partition": "p"},
}  # fmt: skip


def a_sample(repetition, phase):
    return Sample(
        case="one", repetition=repetition, warmup=repetition == 0, position=0, phase=phase,
        backend="hdf5", workload="hyperslab", layout="shared", transfer="independent",
        settings="matched", group="g", ranks=2, nodes=2, arrays=1, operations=1, bytes=8,
        own_max=1.0, own_median=1.0, own_min=1.0, synced_max=1.0, slowest_rank=0, slowest_host="n1",
        below_resolution=False, cache="", resident=None, verified_bytes=None, peak_memory=1,
        disk_bytes=None, disk_files=None, valid=True, started="2026-01-01T12:00:00.000+00:00",
        seconds=1.0,
    )  # fmt: skip


def a_run(directory, rows, **record):
    directory.mkdir(parents=True)
    given = {
        "run_id": "r", "name": "some", "question": "", "command": [], "ranks": 2,
        "started": "2026-01-01T12:00:00+00:00", "experiment": {"name": "some", "seed": 1},
        "experiment_file": "", "left_out": [], "scratch": "", "startup": {},
        "cases": {"one": {"parameters": {"durability": "close"}}},
        "topology": {"hosts": ["n1", "n2"], "nodes": [0, 1], "ranks_per_node": [1, 1]},
        "floor": {"barrier": 1e-7, "tick": 1e-8}, "provenance": copy.deepcopy(PROVENANCE),
    }  # fmt: skip
    RunRecord(**(given | record)).save(directory)
    SamplesLog(str(directory / "samples.csv")).append(a_sample(*row) for row in rows)
    return directory


WHOLE = [(n, phase) for n in (0, 1) for phase in ("write", "close", "read", "remove")]


def test_totals_are_of_repetitions_with_all_their_phases(tmp_path):
    run = MeasuredRun.load(a_run(tmp_path / "a", WHOLE))
    assert run.seconds["one"]["write_total"] == {1: 2.0}
    assert run.seconds["one"]["read_total"] == {1: 1.0}
    assert set(run.rows["one"]) == {"write", "close", "read", "remove"}
    lacking = totals_of({"write": {1: 1.0, 2: 2.0}, "close": {2: 3.0}})
    assert lacking == {"write_total": {2: 5.0}}


def test_the_coarser_clock_of_two_stages_is_the_resolution(tmp_path):
    reading = {"floor": {"own": 3e-6, "tick": 1e-8}}
    one = a_run(tmp_path / "a", WHOLE, floor={"own": 1e-6, "tick": 1e-8})
    both = a_run(tmp_path / "b", WHOLE, floor={"own": 1e-6, "tick": 1e-8}, reading=reading)
    assert MeasuredRun.load(one).resolution == pytest.approx(1e-4)
    assert MeasuredRun.load(both).resolution == pytest.approx(3e-4)


def test_only_repetitions_that_ended_are_there(tmp_path):
    run = Run.load(a_run(tmp_path / "a", [*WHOLE, (2, "write"), (2, "close")]))
    assert set(run.samples["repetition"]) == {0, 1}
    assert list(run.counted["phase"]) == ["write", "close", "read", "remove"]
    assert (run.ranks, run.nodes) == (2, 2)


def test_of_two_stages_what_is_written_is_there(tmp_path):
    rows = [*WHOLE, (2, "write"), (2, "close"), (3, "write")]
    run = Run.load(a_run(tmp_path / "a", rows, stage="write"))
    assert set(run.samples["repetition"]) == {0, 1, 2}


def test_runs_without_results_are_refused(tmp_path):
    with pytest.raises(UserError, match="no results directory"):
        Run.load(tmp_path / "none")
    with pytest.raises(UserError, match="no repetition that counts"):
        Run.load(a_run(tmp_path / "a", [(0, "remove"), (1, "write")]))


def provenance_with(**places):
    found = copy.deepcopy(PROVENANCE)
    for place, value in places.items():
        *above, last = place.split("__")
        target = found
        for key in above:
            target = target[int(key) if isinstance(target, list) else key]
        target[last] = value
    return found


@pytest.mark.parametrize(
    ("provenance", "told"),
    [
        (provenance_with(software__libraries__h5py__hdf5="1.10.8"),
         ["software.libraries.h5py.hdf5: 1.14.6 / 1.10.8"]),
        (provenance_with(software__loaded={"libhdf5": ["/b/libhdf5.so.200"]}),
         ["software.loaded.libhdf5: libhdf5.so.310 / libhdf5.so.200"]),
        (provenance_with(mpi_io__hints={}), [f"mpi_io.hints.cb_nodes: 2 / {ABSENT}"]),
        (provenance_with(filesystem__striping="/s/1 count: 8"),
         ["filesystem.striping: PATH count: 4 / PATH count: 8"]),
        (provenance_with(hosts__1__cpu_model="Y"), ["hosts.cpu_model: X / X | Y"]),
        (provenance_with(inputs__map={"bytes": 3, "sha256": "cd"}), ["inputs.map.sha256: ab / cd"]),
        (provenance_with(ranks__0__cpus=2), ["binding.cpus: 1 / 2"]),
        (provenance_with(environment__OMPI_MCA_io="romio341"),
         ["environment.OMPI_MCA_io: ompio / romio341"]),
        (provenance_with(slurm__job_partition="q"), ["slurm.job_partition: p / q"]),
    ],
)  # fmt: skip
def test_what_matters_is_told(tmp_path, provenance, told):
    a = Run.load(a_run(tmp_path / "a", WHOLE))
    b = Run.load(a_run(tmp_path / "b", WHOLE, provenance=provenance))
    assert [str(found) for found in differences(a, b)] == told
    assert [str(found) for found in differences(a, a)] == []


def test_what_only_numbers_a_job_is_not_told(tmp_path):
    a = Run.load(a_run(tmp_path / "a", WHOLE))
    found = provenance_with(
        software__python={"version": "3.12", "executable": "/b/python"},
        software__libraries__h5py__path="/b/h5py",
        software__libraries__zarr={"version": "3.2", "imported": True},
        filesystem__path="/s/2", filesystem__striping="/s/2 count: 4", filesystem__free_bytes=1,
        hosts__0__host="n9", hosts__0__memory_bytes=2**34 - 9, ranks__0__pid=8,
        environment__SLURM_JOB_ID="2", environment__OMPI_MCA_ess_base_jobid="8",
        environment__OMPI_MCA_num_procs="16",
        slurm__job_id="2",
    )  # fmt: skip
    b = Run.load(a_run(tmp_path / "b", WHOLE, provenance=found, run_id="other", started="2027"))
    assert differences(a, b) == []


def test_sizes_and_experiments_are_told(tmp_path):
    a = Run.load(a_run(tmp_path / "a", WHOLE))
    more = {"ranks": 4, "experiment": {"name": "some", "seed": 2},
            "topology": {"nodes": [0, 0, 1, 1], "ranks_per_node": [2, 2]}}  # fmt: skip
    found = differences(a, Run.load(a_run(tmp_path / "b", WHOLE, **more)))
    assert [(d.area, d.key, d.a, d.b) for d in found] == [
        ("size", "size.ranks", "2", "4"),
        ("size", "size.ranks_per_node", "1", "2"),
        ("experiment", "experiment.seed", "1", "2"),
    ]
