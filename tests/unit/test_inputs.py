"""Input files are known by size and contents."""

import json
import os
from types import SimpleNamespace

import numpy as np
import pytest
import zarr

from pffbench.provenance.inputs import changed_inputs, input_facts
from pffbench.workloads.hyperslab import HyperslabParameters
from pffbench.workloads.irregular import MapFile

MIB = 2**20


def facts(path):
    case = SimpleNamespace(
        parameters=HyperslabParameters(backend="null", source="file", file=str(path), shape=(4,))
    )
    return input_facts([case])


def change(path, at):
    with path.open("r+b") as file:
        file.seek(at, os.SEEK_END if at < 0 else os.SEEK_SET)
        file.write(b"x")


@pytest.mark.parametrize(("size", "at"), [(3, 1), (64 * MIB, 40 * MIB), (65 * MIB, 5),
                                          (65 * MIB, -5)])  # fmt: skip
def test_a_file_that_was_changed_is_noticed(tmp_path, size, at):
    file = tmp_path / "data.npy"
    with file.open("wb") as new:
        new.truncate(size)
    before = facts(file)
    assert before == facts(file)
    assert before[str(file)]["bytes"] == size
    change(file, at)
    told = list(changed_inputs({"inputs": before}, {"inputs": facts(file)}))
    assert told == [f"the file {file} has other contents than when the run began"]
    json.dumps(before)


def test_a_zarr_store_is_known_by_its_files_and_their_sizes(tmp_path):
    store = tmp_path / "data.zarr"
    made = zarr.create_array(store, shape=(8,), chunks=(4,), dtype="f8", compressors=None)
    made[:4] = np.arange(1, 5)
    before = facts(store)
    assert before == facts(store)
    made[4:] = 1
    assert facts(store) != before


def test_a_file_that_is_gone_is_told_and_is_a_change(tmp_path):
    file = tmp_path / "data.npy"
    file.write_bytes(b"abc")
    before = facts(file)
    file.unlink()
    now = facts(file)
    assert now == {str(file): "cannot be read: No such file or directory"}
    assert list(changed_inputs({"inputs": before}, {"inputs": now}))


def test_a_map_is_an_input_too(tmp_path):
    file = tmp_path / "map.npz"
    file.write_bytes(b"abc")
    p = HyperslabParameters(backend="null", decomposition=MapFile(file=str(file)))
    assert list(input_facts([SimpleNamespace(parameters=p)])) == [str(file)]


def test_runs_of_before_have_no_inputs_and_are_not_refused(tmp_path):
    file = tmp_path / "data.npy"
    file.write_bytes(b"abc")
    assert list(changed_inputs({}, {"inputs": facts(file)})) == []
