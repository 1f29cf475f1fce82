"""What `pffbench recommend` prints: the answer for a purpose, a program, and the time it needs."""

from __future__ import annotations

import json

import numpy as np
import pytest

from drawn_runs import a_case, a_run, timed_run
from launch import pffbench_here
from pffbench.cli import main
from pffbench.errors import UserError
from pffbench_analysis.recommend import advise
from sharing import keys_of

ONCE = {"write": 1.0, "read": 1.0}
ROUNDS = 20
SHAPES = {"shape_per_rank": [512, 1024], "chunks": [64, 1024]}


def a_contest(directory, factors, **record):
    """Write a run whose ways take these times to write and to read."""
    rng = np.random.default_rng(1)
    cases = [a_case(backend, **keys_of(layout), **SHAPES) for backend, layout in factors]
    times = {
        name: [0.1 * f * np.exp(0.02 * rng.standard_normal(ROUNDS)) for f in both]
        for (name, _), both in zip(cases, factors.values(), strict=True)
    }
    return timed_run(directory, times, cases, **record)


FORMATS = {("hdf5", "one-shared"): (1, 1), ("zarr", "one-shared"): (3, 0.5)}


@pytest.fixture(scope="module")
def contest(tmp_path_factory):
    """HDF5 is faster to write, Zarr to read."""
    return a_contest(tmp_path_factory.mktemp("contest"), FORMATS)


def test_the_purpose_decides(contest):
    assert advise(contest, ONCE, {}, 0.25).answer.way == {"backend": "hdf5"}
    assert advise(contest, {"write": 1.0, "read": 10.0}, {}, 0.25).answer.way == {"backend": "zarr"}
    assert advise(contest, {"read": 1.0}, {}, 0.25).answer.way == {"backend": "zarr"}


def test_the_program_is_of_the_way_to_use(contest):
    found = advise(contest, ONCE, {}, 0.25)
    assert "import h5py" in found.program
    assert "(64, 1024)" in found.program
    lines = list(found.lines())
    assert lines[0].startswith("USE HDF5: ")
    assert found.program.splitlines()[0] in lines


@pytest.mark.parametrize("api", ["low_level", "high_level"])
def test_the_program_makes_the_calls_that_were_measured(tmp_path, api):
    name, entry = a_case("hdf5", **SHAPES)
    entry.options = {"api": api}
    run = a_run(tmp_path, [(name, entry)], repetitions=10)
    program = advise(run, ONCE, {}, 0.25).program
    assert ("dset.id.write" in program) == (api == "low_level")


def test_only_ways_with_the_values_are_chosen_from(tmp_path):
    run = a_contest(tmp_path, FORMATS | {("netcdf4", "one-per_rank"): (0.5, 0.5)})
    assert advise(run, ONCE, {}, 0.25).answer.way["backend"] == "netcdf4"
    only = advise(run, ONCE, {"files": ["one"]}, 0.25).answer
    assert only.way == {"backend": "hdf5"}
    alone = advise(run, ONCE, {"backend": ["zarr"]}, 0.25)
    assert alone.answer.word == "MEASURED"
    assert alone.answer.headline.startswith("--only backend=zarr leaves one way")
    assert not alone.answer.command  # which would compare with what was left out
    assert "import zarr" in alone.program
    with pytest.raises(UserError, match="--only backend=npy: the run has hdf5, netcdf4, zarr"):
        advise(run, ONCE, {"backend": ["npy"]}, 0.25)
    with pytest.raises(UserError, match="no way of the run is left"):
        advise(run, ONCE, {"backend": ["hdf5"], "files": ["one per_rank"]}, 0.25)


@pytest.mark.parametrize("text", ["gzip", "gzip 4", "gzip 4 byte", "gzip 4 with byte shuffle"])
def test_a_codec_is_chosen_by_its_name_with_or_without_its_settings(tmp_path, text):
    codecs = [
        {"codec": "gzip", "level": 4, "shuffle": "byte"},
        {"codec": "zstd", "level": 3},
        {"codec": "none"},
    ]
    cases = [a_case("hdf5", **SHAPES, **codec) for codec in codecs]
    times = {
        name: [np.full(ROUNDS, 0.1 * f)] * 2 for (name, _), f in zip(cases, (3, 2, 1), strict=True)
    }
    run = timed_run(tmp_path, times, cases)
    assert "no compression" in advise(run, ONCE, {}, 0.25).answer.headline
    chosen = advise(run, ONCE, {"codec": [text]}, 0.25)
    assert chosen.answer.headline.startswith(f"--only codec={text} leaves one way")
    both = advise(run, ONCE, {"codec": [text, "zstd"]}, 0.25).answer
    assert both.headline.startswith("HDF5, zstd 3")
    with pytest.raises(UserError, match="--only codec=gz: the run has gzip 4 byte, none, zstd 3"):
        advise(run, ONCE, {"codec": ["gz"]}, 0.25)


def test_above_the_highest_price_there_is_no_decision(tmp_path):
    run = a_contest(tmp_path, {("hdf5", "one-shared"): (1, 1), ("zarr", "one-shared"): (1, 1)})
    found = advise(run, ONCE, {}, 0.001)
    assert found.answer.word == "NO DECISION"
    assert found.program == ""
    assert advise(run, ONCE, {}, 0.25).program


def test_nothing_follows_from_a_run_that_is_not_valid(tmp_path):
    found = advise(a_contest(tmp_path, FORMATS, valid=False, reasons=["a bit"]), ONCE, {}, 0.25)
    assert next(found.lines()) == "INVALID: a bit."
    assert found.program == ""


def test_a_time_is_given_for_sizes_near_those_that_were_measured(contest):
    """8 MiB are written and read in 0.2 s; of 80 times as much nothing is said."""
    near = advise(contest, ONCE, {}, 0.25, nbytes=8 * 2**20, steps=100)
    assert near.time.startswith("100 steps of 8.389 MB need about 20 s")
    far = advise(contest, ONCE, {}, 0.25, nbytes=600 * 10**9)
    assert far.time.startswith("No time is given for 1 step of 600 GB")
    assert far.measure.endswith(" --set scale=7153")
    assert "  mpiexec -n 2 python -m pffbench run some.yaml --set scale=7153" in list(far.lines())
    most = advise(contest, ONCE, {}, 0.25, nbytes=600 * 10**15)
    assert most.time.endswith("at least a tenth of a step.")
    assert most.measure == ""


def test_json_has_the_content_of_the_text(contest):
    done = pffbench_here("recommend", contest, "--json")
    (data,) = json.loads(done.stdout)["runs"]
    assert data["answer"]["way"] == {"backend": "hdf5"}
    assert "import h5py" in data["program"]


def test_a_case_of_an_environment_has_a_program(tmp_path):
    name, entry = a_case("hdf5", **SHAPES, environment="old")
    run = a_run(tmp_path, [(f"{name}@old", entry)], repetitions=10)
    assert "import h5py" in advise(run, ONCE, {}, 0.25).program


@pytest.mark.parametrize(
    "words",
    [
        *(["--weight", told] for told in ("2", "1:2:3", "0:0", "-1:1", "a:b", "1:inf", "nan:1")),
        ["--only", "shared"], ["--price", "-1"], ["--bytes", "x"], ["--steps", "3"],
    ],
)  # fmt: skip
def test_words_that_make_no_sense_are_refused(capsys, contest, words):
    with pytest.raises(SystemExit) as ended:
        main(["recommend", str(contest), *words])
    assert ended.value.code == 2
    assert words[0] in capsys.readouterr().err


@pytest.mark.parametrize(("told", "nbytes"), [("6M", "6 MB"), ("6Mi", "6.291 MB"), ("6MB", "6 MB")])
def test_units_of_the_bytes_of_a_step_are_those_that_people_write(contest, capsys, told, nbytes):
    with pytest.raises(SystemExit):
        main(["recommend", str(contest), "--bytes", told])
    assert f"1 step of {nbytes} " in capsys.readouterr().out
