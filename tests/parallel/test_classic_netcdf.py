"""Classic netCDF: CDF-5 and CDF-2, alone and shared through PnetCDF."""

from __future__ import annotations

import subprocess

import pytest

from launch import entries_below, pffbench_here, run_experiment, sampled, write_experiment
from pffbench.record.run_json import RunRecord
from planted import run_first

pytestmark = pytest.mark.parallel

COMMON = {"backend": "netcdf3", "chunks": "contiguous"}
EVERYWHERE = {"files": ["one", "per_rank"], "arrays": ["shared", "per_rank"]}
BOTH = {"files": "one", "arrays": ["shared", "per_rank"], "transfer": ["independent", "collective"]}


@pytest.mark.parametrize("ranks", sampled([1, 3, 4], 3))
def test_every_layout_and_transfer_is_valid(tmp_path, ranks):
    cases = [
        COMMON | {"workload": "hyperslab", "shape": [7, 5, 3], "netcdf3.format": ["cdf5", "cdf2"]}
        | EVERYWHERE,
        COMMON | {"workload": "hyperslab", "shape": [2, 5, 3]} | BOTH,  # ranks without a row
        COMMON | {"workload": "datasets", "shape": [4], "datasets": 3, "attributes": 2}
        | {"files": ["one", "per_rank"], "arrays": "per_rank"},
        COMMON | {"workload": "updates", "shape": [6, 8], "change": "append", "rows": 2, "steps": 2}
        | {"files": ["one", "per_rank"], "transfer": "collective"},
        COMMON | {"workload": "updates", "shape": [6, 8], "change": "every_second_row",
                  "files": "one", "arrays": "shared"},
    ]  # fmt: skip
    done = run_experiment(tmp_path, ranks, cases=cases, unsupported="skip")
    assert done.status == 0, done.said
    record = RunRecord.load(done.out)
    assert record.valid is True
    assert len(record.cases) >= 12, done.said


def test_the_files_have_the_formats_that_were_asked_for(tmp_path):
    named = {"cdf5": "cdf5", "cdf2": "64-bit offset"}
    case = COMMON | {"workload": "hyperslab", "shape": [4, 4], "files": "one", "arrays": "shared",
                     "netcdf3.format": list(named), "cache": "separate"}  # fmt: skip
    done = run_experiment(tmp_path, 2, "--stage", "write", cases=[case], repetitions=1, warmup=0)
    assert done.status == 0, done.said
    for kind, name in named.items():
        (file,) = (tmp_path / "scratch").glob(f"*/*{done.case(format=kind)}/*.nc")
        shown = subprocess.run(["ncdump", "-k", file], capture_output=True, text=True, check=True)
        assert shown.stdout.strip() == name


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"chunks": [2, 4]}, "classic netCDF has no chunks"),
        ({"codec": "gzip"}, "cannot do codec gzip"),
        ({"dtype": "uint16", "netcdf3.format": "cdf2"}, "CDF-2 has no uint16; use netcdf3.format"),
        (
            {"dtype": "int8", "shape": [2**17, 2**16], "netcdf3.format": "cdf2"},
            "smaller than 4 GiB",
        ),
    ],
    ids=["chunks", "codec", "type", "size"],
)
def test_what_the_format_lacks_is_refused_by_the_plan(tmp_path, change, words):
    case = COMMON | {"workload": "hyperslab", "shape": [4, 4], "files": "per_rank"}
    path = write_experiment(tmp_path, cases=[case | change], unsupported="refuse")
    done = pffbench_here("plan", path, cwd=tmp_path)
    assert done.status == 2
    assert words in done.stderr
    assert entries_below(tmp_path) == [str(path)]


def test_without_pnetcdf_shared_files_are_left_out_with_the_reason(tmp_path):
    lacks = "import pffbench.backends.shared_files as files\nfiles.has_pnetcdf = lambda: False\n"
    case = COMMON | {"workload": "hyperslab", "shape": [4, 4]} | EVERYWHERE
    env = run_first(tmp_path / "first", lacks)
    done = run_experiment(tmp_path, 2, cases=[case], unsupported="skip", env=env)
    assert done.status == 0, done.said
    record = RunRecord.load(done.out)
    assert len(record.cases) == 1
    assert "need a netCDF-C with PnetCDF" in str(record.left_out)
