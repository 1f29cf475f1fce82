"""Runs as values, and in what two runs differ."""

from __future__ import annotations

import copy

import pytest
from msgspec.structs import replace

import drawn_runs
import pffbench
from drawn_runs import edit, rewrite
from pffbench.errors import UserError
from pffbench.record.repetitions import read_repetitions
from pffbench.record.run import MeasuredRun
from pffbench.record.run_json import FloorEntry, Reading, Startup, TopologyEntry
from pffbench_analysis.differences import ABSENT, differences

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


def a_run(directory, **record):
    return drawn_runs.a_run(directory, [drawn_runs.a_case("hdf5")], 2, **(USUAL | record))


USUAL = {
    "ranks": 2, "experiment": {"name": "some", "seed": 1}, "provenance": PROVENANCE,
    "topology": TopologyEntry(["n1", "n2"], [0, 1], [1, 1]),
}  # fmt: skip


def test_a_run_is_loaded_with_its_answer_its_cells_and_all_times(tmp_path):
    run = pffbench.load(a_run(tmp_path / "a"))
    assert run.answer.word == "NO ANSWER"
    assert {cell.keys["total"] for cell in run.cells} == {"write", "read"}
    pytest.importorskip("pandas")
    frame = run.to_pandas()
    assert set(frame["round"]) == {0, 1, 2}
    assert set(frame["backend"]) == {"hdf5"}
    assert frame.loc[frame.phase == "write_total", "seconds"].notna().all()
    assert run.counts().empty


def test_the_coarser_clock_of_two_stages_is_the_resolution(tmp_path):
    one, other = FloorEntry(1e-6, 1e-6, 1e-8), FloorEntry(3e-6, 3e-6, 1e-8)
    reading = Reading("", other, Startup(), USUAL["topology"], {})
    alone = a_run(tmp_path / "a", floor=one)
    both = a_run(tmp_path / "b", floor=one, reading=reading)
    assert MeasuredRun.load(alone).resolution == pytest.approx(1e-4)
    assert MeasuredRun.load(both).resolution == pytest.approx(3e-4)


def test_of_two_jobs_what_is_written_is_there(tmp_path):
    run = a_run(tmp_path / "a", stage="write")
    edit(run, lambda one: replace(one, part="write", read=None) if one.round == 2 else one)
    assert len(MeasuredRun.load(run).repetitions) == 3


def test_runs_without_results_are_refused(tmp_path):
    with pytest.raises(UserError, match="is not a results directory"):
        pffbench.load(tmp_path / "none")
    run = a_run(tmp_path / "a")
    rewrite(run, [one for one in read_repetitions(run) if one.warmup])
    with pytest.raises(UserError, match="no repetition that counts"):
        pffbench.load(run)


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
    a = MeasuredRun.load(a_run(tmp_path / "a"))
    b = MeasuredRun.load(a_run(tmp_path / "b", provenance=provenance))
    assert [str(found) for found in differences(a, b)] == told
    assert [str(found) for found in differences(a, a)] == []


def test_what_only_numbers_a_job_is_not_told(tmp_path):
    a = MeasuredRun.load(a_run(tmp_path / "a"))
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
    b = MeasuredRun.load(a_run(tmp_path / "b", provenance=found, run_id="other", started="2027"))
    assert differences(a, b) == []


def test_sizes_and_experiments_are_told(tmp_path):
    a = MeasuredRun.load(a_run(tmp_path / "a"))
    more = {"ranks": 4, "experiment": {"name": "some", "seed": 2},
            "topology": TopologyEntry(["n"] * 4, [0, 0, 1, 1], [2, 2])}  # fmt: skip
    found = differences(a, MeasuredRun.load(a_run(tmp_path / "b", **more)))
    assert [(d.area, d.key, d.a, d.b) for d in found] == [
        ("size", "size.ranks", "2", "4"),
        ("size", "size.ranks_per_node", "1", "2"),
        ("experiment", "experiment.seed", "1", "2"),
    ]
