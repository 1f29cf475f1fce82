"""Attributes of datasets: set and read by all that must, and there for independent readers."""

import json
import re
import subprocess
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from launch import pffbench_here, run_experiment, sampled, write_experiment
from pffbench.workloads.attributes import Attributes
from sharing import keys_of

pytestmark = pytest.mark.parallel

FORMATS = ["hdf5", "netcdf4", "zarr"]
MANY = {"workload": "datasets", "shape": [4, 2], "datasets": 5, "attributes": 3}


@pytest.mark.parametrize("ranks", sampled([1, 3], 3))
def test_each_format_sets_and_reads_them_in_each_layout(tmp_path, ranks):
    """Of the five datasets three ranks have one, two and two."""
    layouts = ["one-per_rank", "one-shared", "per_rank"]
    done = run_experiment(
        tmp_path, ranks, roofline=True, cases=[MANY | {"backend": FORMATS, **keys_of(layouts)}]
    )
    assert done.status == 0, done.said
    assert done.record["valid"] is True
    for case, entry in done.record["cases"].items():
        phases = done.phases(case)
        if entry["raw"]:  # raw bytes have none, and are compared with nevertheless
            assert not {"set_attributes", "get_attributes"} & phases.keys()
            continue
        for phase in ("set_attributes", "get_attributes"):
            (row,) = phases[phase]
            assert int(row["operations"]) == 15, (case, phase)
    summary = (done.out / "summary.md").read_text()
    assert "set µs" in summary
    assert "get µs" in summary


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The files of each format, by their endings."""
    directory = tmp_path_factory.mktemp("attributes")
    case = MANY | {"backend": FORMATS, "files": "one", "arrays": "per_rank", "cache": "separate"}
    done = run_experiment(directory, 2, "--stage", "write", cases=[case])
    assert done.status == 0, done.said
    found = list((directory / "scratch").glob("*/*/shared.*"))
    assert len(found) == len(FORMATS)
    return {path.suffix: path for path in found}


@pytest.mark.parametrize("backend", FORMATS)
def test_an_independent_reader_finds_them(written, backend):
    file = written[{"hdf5": ".h5", "netcdf4": ".nc", "zarr": ".zarr"}[backend]]
    if backend == "zarr":
        array = json.loads((file / "dataset_000004" / "zarr.json").read_text())
        assert array["attributes"] == {
            "attribute_000": 12, "attribute_001": 13, "attribute_002": 14,
        }  # fmt: skip
        return
    command = ["ncdump", "-h"] if backend == "netcdf4" else ["h5dump", "-A"]
    text = subprocess.run([*command, file], capture_output=True, text=True, check=True).stdout
    pattern = {
        "netcdf4": r"dataset_000004:attribute_002 = 14LL? ;",
        "hdf5": r'DATASET "dataset_000004".*ATTRIBUTE "attribute_002" \{[^}]*\{[^}]*\(0\): 14',
    }[backend]
    assert re.search(pattern, text, re.DOTALL), text[-2000:]


@pytest.mark.parametrize("wrong", [8, "seven", None])
def test_a_wrong_value_is_a_mismatch(wrong):
    class Store:
        def attribute_readers(self, names):
            return [lambda n=name: 6 if n.endswith("0") else wrong for _, name in names]

        def attribute_writers(self, values):
            raise NotImplementedError

    observed = SimpleNamespace(mismatches=[])
    repetition = SimpleNamespace(
        step=nullcontext, observed=observed,
        place=SimpleNamespace(clock=SimpleNamespace(phase=lambda *_, **__: nullcontext())),
    )  # fmt: skip
    specs = [SimpleNamespace(name="x", number=3, owner=0)]
    Attributes(2).read(repetition, Store(), {"x": None}, specs, described=1)
    (mismatch,) = observed.mismatches
    assert (mismatch.array, mismatch.index, mismatch.got) == (3, (1,), str(wrong))


def test_a_format_without_them_is_refused(tmp_path):
    case = MANY | {"backend": "npy", "files": "one", "arrays": "per_rank"}
    path = write_experiment(tmp_path, unsupported="refuse", cases=[case])
    done = pffbench_here("plan", path, cwd=tmp_path)
    assert done.status == 2
    assert "npy stores no attributes; leave attributes out" in done.stderr
