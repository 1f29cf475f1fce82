"""The tables of published numbers are whole and true, and experiments name their study."""

from __future__ import annotations

import csv
import math
import re
from importlib.resources import files
from itertools import combinations
from pathlib import Path

import pytest

from pffbench.errors import UserError
from pffbench.experiment.load import load_experiment
from pffbench.experiment.schema import json_schema, study_names
from pffbench.results.judge import FEWEST
from pffbench_studies.published import STUDIES, published_frame, published_values
from pffbench_studies.published.values import given

ROOT = Path(__file__).parents[2]
DATA = files("pffbench_studies.published") / "data"
STUDY = "file-format-testing"

# The tables


def numbers(study, **parameters):
    """Return the numbers with these parameters, `quantity` among them."""
    return [
        value
        for value in published_values(study)
        if all(
            str({**value.parameters, "quantity": value.quantity}[key]) == str(wanted)
            for key, wanted in parameters.items()
        )
    ]


def the_number(study, **parameters):
    (value,) = numbers(study, **parameters)
    return value.value


def test_experiments_name_the_studies_that_have_tables():
    assert sorted(STUDIES) == study_names()
    assert {path.name for path in DATA.iterdir()} == {f"{name}.csv" for name in STUDIES} | {
        "README.md", "claims.csv", "reasons.csv", "studies.csv",
    }  # fmt: skip


@pytest.mark.parametrize("study", STUDIES)
def test_what_make_study_runs_can_decide_an_order_in_ten_minutes(study):
    found = load_experiment(str(ROOT / "configs" / "studies" / f"{study}.yaml")).experiment
    assert found.time_budget < 600
    assert found.repetitions >= FEWEST


@pytest.mark.parametrize("study", STUDIES)
def test_every_number_has_its_source_and_unit(study):
    values = published_values(study)
    for value in values:
        assert value.study == study
        assert value.source
        assert re.match(r"https?://\S+$", value.url)
        assert value.quantity
        assert (
            value.unit
            or value.quantity.split()[0] in ("compression", "configurations")
            or ("over" in value.quantity)
        )
        known = [x for x in (value.value, value.low, value.high) if not math.isnan(x)]
        assert known
        assert all(x >= 0 for x in known)
        assert not value.low > value.high
        assert value.approximate or not math.isnan(value.value)
        assert value.reading != "figure" or value.approximate


@pytest.mark.parametrize("study", STUDIES)
def test_no_number_is_there_twice(study):
    seen = {}
    for value in published_values(study):
        key = (value.source, value.quantity, value.statistic, value.unit, value.note,
               *value.parameters.values())  # fmt: skip
        assert key not in seen, f"{value} and {seen.get(key)}"
        seen[key] = value


@pytest.mark.parametrize("study", STUDIES)
def test_the_description_names_every_column_and_counts_the_numbers(study):
    text = (DATA / "README.md").read_text(encoding="utf-8")
    section = text.split(f"\n## `{study}`\n")[1].split("\n## ")[0]
    common = text.split("\n## Columns of all tables\n")[1].split("\n## ")[0]
    first = published_values(study)[0]
    for column in first.parameters:
        assert f"`{column}`" in section, column
    for column in set(first.__struct_fields__) - {"parameters"}:
        assert f"`{column}`" in common, column
    assert re.search(rf"^\| `{study}\.csv` .*\| {len(published_values(study))} \|", text, re.M)


def test_numbers_of_each_study_are_those_that_were_published():
    one = {"edition": "original", "datasets": 2048, "shape": "128x128"}
    assert the_number(STUDY, format="Zarr", operation="read", **one) == 0.48046
    assert the_number(STUDY, format="netCDF4", operation="write", datasets=8192) == 10.647
    two = {"codec": "gzip", "access": "row", "cache_bytes": 2**20, "chunk": "4x30x9x717"}
    assert {v.value for v in numbers("hdf5-compression-tuning", **two)} == {345, 360}
    slowest = {"format": "memmap", "slice": "x", "quantity": "elapsed time of the process"}
    assert the_number("chunking-vs-memmap", **slowest) == 3 * 3600 + 35 * 60 + 26.85
    four = {"dataset": "sparse", "codec": "zstd", "level": 19, "operation": "read"}
    edge = {"chunk": "128x128x128"}
    assert [(v.value, v.sd) for v in numbers("zarr-benchmarks", **four, **edge)] == [
        (0.45675, 0.004), (0.47605, 0.012), (0.11442, 0.0029),
    ]  # fmt: skip
    five = {"test": "large_fraction_constant_sparse", "versions": 5000, "chunk": 4096,
            "codec": "none", "quantity": "size of the file"}  # fmt: skip
    assert [(v.value, v.unit) for v in numbers("versioned-hdf5", **five)] == [
        (252.79, "MiB"), (0.57133, "MiB"), (252, "MB"),
    ]  # fmt: skip


def test_numbers_have_the_digits_of_their_source():
    extended = {"edition": "extended", "datasets": 2048, "shape": 1048576}
    created = numbers(STUDY, operation="create", format="Zarr", loop="create-first", **extended)
    assert [value.value for value in created] == [0.49826]
    text = numbers(STUDY, operation="write", format="CSV", **extended)
    assert [value.value for value in text] == [2573.51]
    small = {"edition": "extended", "datasets": 64, "shape": 1024}
    (value,) = numbers(STUDY, operation="write", format="HDF5", **small)
    assert (value.value, value.sd) == (0.0887936286744661, 0.002555437233705726)


def test_what_a_study_does_not_tell_apart_is_no_order():
    """Error bars of the figures; rounds of the raw results; and words of the authors."""
    cases = {(2048, "128"), (2048, "128x128"), (2048, "128x128x128"), (2048, "256"),
             (4096, "256"), (8192, "256")}  # fmt: skip
    close = {
        (operation, *case)
        for operation in ("create", "open", "write", "read")
        for case in cases
        for a, b in combinations(
            numbers(STUDY, edition="original", operation=operation, datasets=case[0],
                    shape=case[1]), 2)
        if not a.differs_from(b)
    }  # fmt: skip
    deep = (2048, "128x128x128")
    assert close == {("open", *deep), *(("read", *case) for case in cases - {deep})}
    reads = {"operation": "read", "codec": "gzip", "quantity": "time of all reads"}
    slow, _, *remedies = numbers("hdf5-compression-tuning", **reads)
    assert [value.value for value in remedies] == [0.37, 0.36, 0.36]
    assert not any(a.differs_from(b) for a, b in combinations(remedies, 2))
    assert slow.differs_from(remedies[0])
    z, x = numbers("chunking-vs-memmap", format="HDF5", quantity="elapsed time of the process")
    assert not z.differs_from(x)
    rounds = numbers("zarr-benchmarks", quantity="time of the whole array")
    assert all(value.sd > 0 for value in rounds if value.reading == "computed")


def test_ratios_of_the_tables_agree_with_what_the_studies_say_of_themselves():
    """Sums and means over the tables come out as the studies' raw results gave them."""

    def ratio(dataset, operation, over, under):
        values = numbers("zarr-benchmarks", dataset=dataset, operation=operation, zarr_format=2,
                         chunk="128x128x128", experiment="read_write",
                         quantity="time of the whole array")  # fmt: skip
        by = {
            (v.parameters["library"].split()[0] + v.parameters["library"].split()[1][0],
             v.parameters["codec"], v.parameters["level"]): v.value
            for v in values
        }  # fmt: skip
        logs = [math.log(by[(over, *k[1:])] / x) for k, x in by.items() if k[0] == under]
        return math.exp(sum(logs) / len(logs))

    # Every second level is in the table, so the means need not be equal to the digit.
    assert ratio("heart", "read", "zarr-python3", "tensorstore0") == pytest.approx(2.48, rel=0.1)
    assert ratio("dense", "write", "zarr-python2", "tensorstore0") == pytest.approx(3.22, rel=0.1)


def test_a_frame_has_the_columns_of_the_table():
    frame = published_frame("chunking-vs-memmap")
    with (DATA / "chunking-vs-memmap.csv").open(encoding="utf-8") as file:
        columns, *rows = csv.reader(file)
    assert list(frame.columns) == columns
    assert len(frame) == len(rows)
    assert frame.value.dtype == "float64"
    assert frame.approximate.dtype == bool


def test_numbers_are_written_as_they_are_given():
    values = published_values("versioned-hdf5")
    texts = {given(value) for value in values if value.approximate}
    assert {"≈ 6–8", "≈ < 10", "≈ 252"} <= texts
    (value,) = numbers(STUDY, edition="original", format="Zarr", operation="read", shape=128)
    assert given(value) == "2.10619 ± 2"


# The experiment names its study


def test_the_experiments_of_the_paper_name_it(tmp_path):
    paths = sorted((ROOT / "configs" / "paper").glob("*.yaml"))
    assert len(paths) == 6
    for path in paths:
        loaded = load_experiment(str(path))
        assert loaded.experiment.study == STUDY
        # Each has its published numbers: all formats, all operations.
        case = loaded.cases[0][1].parameters
        shape = "x".join(map(str, case.shape))
        found = numbers(STUDY, edition="original", datasets=case.datasets, shape=shape)
        assert len(found) == 12


def test_another_name_is_refused_with_those_that_are_known(tmp_path):
    path = tmp_path / "some.yaml"
    path.write_text("name: some\nstudy: kington\ncases: [{workload: datasets}]\n")
    with pytest.raises(UserError, match=r"study.*versioned-hdf5|versioned-hdf5.*study"):
        load_experiment(str(path))
    enum = json_schema()["$defs"]["Experiment"]["properties"]["study"]["anyOf"]
    assert {name for kind in enum for name in kind.get("enum", ())} >= set(STUDIES)
