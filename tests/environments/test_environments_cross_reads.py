"""Environments read each other's files: each error is found, told and stops nothing else."""

from __future__ import annotations

import json
import sys

import pytest

from launch import REPOSITORY, entries_below, mpiexec, run_experiment
from pffbench.errors import UserError
from pffbench.experiment.load import from_data

pytestmark = pytest.mark.parallel

SOURCE = REPOSITORY / "src"
CASE = {"workload": "datasets", "backend": ["hdf5", "npy", "zarr"], "datasets": 4,
        "shape": [[16]], "layout": "file_per_process"}  # fmt: skip
#: The second environment: it cannot open HDF5 files of the first one, dies of its .npy files, and
#: writes .npy files with a wrong byte when others are to read them.
DIFFERS = """
import os, sys
from pathlib import Path
if "pffbench_environments.cross_read_ranks" in sys.orig_argv:
    from pffbench.backends.hdf5 import Hdf5
    from pffbench.backends.npy import Npy
    import pffbench_environments.cross_read_ranks as ranks

    def changed(kind, fail):
        opened = kind.open
        def open_(self, path, comm):
            if "-one-by-" in str(path):
                fail()
            return opened(self, path, comm)
        kind.open = open_

    def refuse():
        raise OSError("unable to open file (bad superblock version number)")

    changed(Hdf5, refuse)
    changed(Npy, lambda: os._exit(7))
    trouble_with = ranks._Worker.trouble_with
    def spoil(self, case, writer, reader):
        told = trouble_with(self, case, writer, reader)
        if not reader and case.parameters.backend == "npy":
            own = Path(self._scratch.directory).glob(f"{case.id.rpartition('.')[2]}-{writer}/*")
            (store,) = (path for path in own if f"{self._team.rank:06d}" in path.name)
            file = max(p for p in store.rglob("*") if p.is_file())
            data = bytearray(file.read_bytes())
            data[-1] ^= 1
            file.write_bytes(data)
        return told
    ranks._Worker.trouble_with = spoil
    # The program is run as another module, __main__.
    code = ranks.main()
    sys.stdout.flush()
    os._exit(code)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("cross")
    (directory / "sitecustomize.py").write_text(DIFFERS)
    differing = f"env PYTHONPATH={directory}:{SOURCE} {sys.executable}"
    return run_experiment(
        directory, None, launcher=" ".join(mpiexec(2)), cases=[CASE], cross_reads=True,
        environments=[{"name": "one", "python": sys.executable},
                      {"name": "two", "command": differing}],
    )  # fmt: skip


def outcomes_of(run):
    return {
        (one["backend"], one["writer"], one["reader"]): (one["result"], one["error"])
        for one in run.record["cross_reads"]
    }


@pytest.mark.full
def test_who_reads_whose_files_is_found_and_errors_stop_nothing(run):
    assert run.status == 0, run.said  # the measurements are valid
    found = outcomes_of(run)
    assert len(found) == len(run.record["cross_reads"]) == 12
    failed = {key: error for key, (result, error) in found.items() if result == "FAILED"}
    assert {result for key, (result, _) in found.items() if key not in failed} == {"VALID"}
    assert set(failed) == {
        ("hdf5", "one", "two"), ("npy", "one", "two"), ("npy", "two", "one"), ("npy", "two", "two"),
    }  # fmt: skip
    assert "bad superblock version number" in failed["hdf5", "one", "two"]
    assert "7" in failed["npy", "one", "two"]
    for reader in ("one", "two"):
        assert failed["npy", "two", reader].startswith("wrong data: array ")
    assert {one["case"] for one in run.record["cross_reads"]} == {
        entry["same_case"] for entry in run.record["cases"].values()
    }
    assert entries_below(run.out.parent / "scratch") == []
    assert not (run.out / ".steps").exists()


@pytest.mark.full
def test_all_documents_tell_who_reads_whose_files(run):
    assert "Who reads whose files: 8 of 12 reads VALID" in run.stdout
    assert "two does not read files of one with hdf5: open: OSError: " in run.stdout
    assert "two does not read its own files with npy: wrong data" in run.stdout
    results = json.loads((run.out / "results.json").read_text())
    assert results["cross_reads"] == run.record["cross_reads"]
    summary = (run.out / "summary.md").read_text()
    assert "## Who reads whose files" in summary
    cells = [line.strip("| ").split() for line in summary.splitlines() if line.startswith("| hdf5")]
    assert ["hdf5", "|", "one", "|", "VALID", "|", "FAILED"] in cells


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "only environments read each other's files"),
        ({"environments": [{"name": "a", "python": "x"}], "node_local": True}, "with node_local"),
    ],
)
def test_where_nothing_can_be_read_across_it_is_refused(changes, sentence):
    told = {"name": "a", "cross_reads": True, "cases": [CASE], **changes}
    with pytest.raises(UserError, match=sentence):
        from_data(told, "a.yaml")
