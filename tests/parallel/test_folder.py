"""A folder of experiments: run one after another, and all looked at before the first."""

from __future__ import annotations

import json

import pytest

from launch import pffbench_here, run

pytestmark = pytest.mark.parallel

EXPERIMENT = """
name: {name}
common: {{workload: datasets, files: per_rank, datasets_per_rank: 3}}
cases:
  - {{backend: [hdf5, zarr], shape: [{length}]}}
"""


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "configuration_files"
    place.mkdir()
    for number, length in (("1", 8), ("2", 16)):
        (place / f"{number}.yaml").write_text(EXPERIMENT.format(name="same_name", length=length))
    (tmp_path / "scratch").mkdir()
    return place


def run_folder(folder, *arguments, ranks):
    told = ["--set", "repetitions=1", "--set", "warmup=0", "--scratch", folder.parent / "scratch"]
    command = ["-m", "pffbench", "run", folder, *told, *arguments]
    return run(command, ranks=ranks, cwd=folder.parent, timeout=120)


@pytest.mark.parametrize("ranks", [1, 2])
def test_each_has_its_results_below_one_directory_named_after_the_folder_or_as_told(folder, ranks):
    told = folder.parent / "all"
    done = run_folder(folder, *(["--out", told] if ranks == 1 else []), ranks=ranks)
    assert done.status == 0, done.said
    (place,) = [told] if ranks == 1 else (folder.parent / "pffbench-results").iterdir()
    assert place.name.startswith("all" if ranks == 1 else "configuration_files-")
    assert sorted(path.name for path in place.iterdir()) == ["1", "2"]
    for number, length in (("1", 8), ("2", 16)):
        record = json.loads((place / number / "run.json").read_text())
        assert record["valid"] is True
        assert {tuple(c["parameters"]["shape"]) for c in record["cases"].values()} == {(length,)}
    assert done.stdout.count("\nVALID: every byte verified, ") == 2
    assert "experiment 2 of 2: " in done.stdout
    assert not any((folder.parent / "scratch").iterdir())


def test_nothing_is_made_where_one_of_them_is_wrong(folder):
    (folder / "2.yaml").write_text(EXPERIMENT.format(name="b", length=0))
    done = run_folder(folder, "--out", folder.parent / "all", ranks=None)
    assert done.status == 2
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("pffbench:")]
    assert "2.yaml: cases[0].shape[0]: " in line
    assert not (folder.parent / "all").exists()
    assert not any((folder.parent / "scratch").iterdir())


def test_a_plan_shows_all_of_them(folder):
    done = pffbench_here("plan", folder, "--ranks", "2", cwd=folder.parent)
    assert done.status == 0, done.said
    assert done.stdout.count("3 cases on 2 ranks") == 2
    assert done.stdout.index("1.yaml") < done.stdout.index("2.yaml")
