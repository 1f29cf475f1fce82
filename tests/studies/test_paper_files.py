"""Configuration files of study 1 are experiments: they ask for what the study's program did."""

from __future__ import annotations

import pytest

from pffbench.errors import UserError
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import experiment_files, load_experiment

SOME = "FILE_NAME: 2048_Matrix\nNUMBER_DATASETS: 2048\nNUMBER_ELEMENTS:\n  - 128\n  - 64\n"


def load(tmp_path, text=SOME, *overrides):
    path = tmp_path / "1.yaml"
    path.write_text(text)
    return load_experiment(str(path), overrides)


def test_it_is_what_the_study_measured(tmp_path):
    loaded = load(tmp_path)
    experiment = loaded.experiment
    assert (experiment.name, experiment.study) == ("2048_Matrix", "file-format-testing")
    assert (experiment.repetitions, experiment.roofline) == (5, False)
    cases = {case.parameters.backend: case for _, case in loaded.cases}
    assert list(cases) == ["hdf5", "netcdf4", "zarr"]
    for case in cases.values():
        p = case.parameters
        assert (p.datasets, p.shape, p.files_word) == (2048, (128, 64), "per_rank")
        assert (p.settings, p.order, p.read_sink, p.read_copy) == (
            "defaults", "interleaved", "print", True,
        )  # fmt: skip
    assert cases["hdf5"].options.api == "high_level"
    assert cases["netcdf4"].options.dimensions == "unlimited_shared"
    assert cases["netcdf4"].options.enddef == "implicit"
    assert cases["zarr"].options.format == 2
    assert cases["zarr"].parameters.codec == "blosc"
    assert len(make_plan(loaded, 2).cases) == 3


def test_it_can_be_changed_from_the_command_line(tmp_path):
    loaded = load(tmp_path, SOME, "repetitions=2", "datasets=16")
    assert loaded.experiment.repetitions == 2
    assert {case.parameters.datasets for _, case in loaded.cases} == {16}


def test_keys_that_the_studys_program_ignores_are_ignored(tmp_path):
    loaded = load(tmp_path, SOME + "CHUNK_SIZE: 0\nMIN_DATA_VALUE: 1\n")
    assert len(loaded.cases) == 3


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (SOME.replace("2048\n", "0\n"), "NUMBER_DATASETS: Expected int >= 1; it is 0"),
        (SOME.replace("2048\n", "2048000\n"), "NUMBER_DATASETS: Expected int <= 1000000; it is"),
        (
            SOME.replace(": 2048\n", ": many\n"),
            "NUMBER_DATASETS: it must be a whole number; .*many",
        ),
        ("FILE_NAME: a\nNUMBER_ELEMENTS: [4]\n", "NUMBER_DATASETS is missing"),
        ("NUMBER_DATASETS: 4\nNUMBER_ELEMENTS: [4]\n", "FILE_NAME is missing"),
        (SOME.replace("- 64", "- -64"), r"NUMBER_ELEMENTS\[1\]: Expected int >= 1; it is -64"),
        (SOME + "  - 3\n  - 4\n", "NUMBER_ELEMENTS: Expected array of length <= 3"),
        (SOME + "repetitions: 3\n", r"repetitions: unknown key .*allowed: FILE_NAME"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(tmp_path, text, reason):
    with pytest.raises(UserError, match=reason) as refused:
        load(tmp_path, text)
    assert "\n" not in str(refused.value)
    assert "1.yaml" in str(refused.value)


@pytest.mark.parametrize(
    ("given", "name"),
    [("my file, new", "my-file-new"), ("../../x", "x"), ("-", "study-1"), ("a" * 99, "a" * 64)],
)
def test_any_file_name_becomes_the_name_of_an_experiment(tmp_path, given, name):
    loaded = load(tmp_path, SOME.replace("2048_Matrix", f"'{given}'"))
    assert loaded.experiment.name == name


def test_a_folder_is_its_experiments_in_the_order_of_names(tmp_path):
    for name in ("2.yaml", "10.yaml", "1.yml", "notes.txt"):
        (tmp_path / name).touch()
    names = [path.rpartition("/")[2] for path in experiment_files(str(tmp_path))]
    assert names == ["1.yml", "10.yaml", "2.yaml"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"no experiment \(\*\.yaml\) is in this folder"):
        experiment_files(str(tmp_path / "empty"))
