"""`results.json` fits its schema for every shipped experiment, and says what the summary says."""

from __future__ import annotations

import json
from types import SimpleNamespace

import jsonschema
import numpy as np
import pytest

from drawn_runs import AUTO, USUAL, a_case, a_run, timed_run
from launch import SHIPPED, pffbench_cli, sampled
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import load_experiment
from pffbench.parallel.clock import Floor
from pffbench.parallel.topology import Topology
from pffbench.run.recording import new_record
from pffbench.summary.conclusions import verdict_lines
from pffbench.summary.results import results_schema, write_results
from pffbench.summary.summary import summarise

#: The full ones differ from the others in size alone.
CONFIGS = [config for config in SHIPPED if not config.stem.endswith("-full")]
#: More cases of an experiment have nothing that the first ones lack.
_MOST_CASES = 30


@pytest.fixture(scope="module")
def validator():
    schema = results_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def write_document(directory):
    """Write the document of a run and return it as other programs read it."""
    path = write_results(summarise(directory), directory)
    return json.loads(path.read_text(encoding="ascii"), parse_constant=pytest.fail)


#: `make test` takes the first of each folder, whose workloads are those of the others.
SAMPLE = [min(c for c in CONFIGS if c.parent == folder) for folder in {c.parent for c in CONFIGS}]


@pytest.mark.parametrize("config", sampled(CONFIGS, *SAMPLE), ids=lambda path: path.stem)
def test_the_results_of_every_shipped_experiment_fit_the_schema(config, tmp_path, validator):
    plan = make_plan(load_experiment(str(config)), 4)
    topology = Topology(["a"] * 4, [0] * 4)
    spec = SimpleNamespace(plan=plan, experiment_file=str(config), run_id="some-1")
    record = new_record(spec, str(tmp_path), topology, Floor(1e-7, 1e-7, 1e-8), {}, None)
    cases = dict(list(record.cases.items())[:_MOST_CASES])
    a_run(tmp_path / "run", cases.items(), repetitions=5, experiment=record.experiment,
          left_out=record.left_out)  # fmt: skip
    data = write_document(tmp_path / "run")
    validator.validate(data)
    assert {case["case"] for case in data["cases"]} == set(cases)
    assert all(case["phases"] for case in data["cases"])


def test_the_document_says_what_the_summary_says(tmp_path, validator):
    formats = (("hdf5", 0.1), ("zarr", 0.3), ("mpiio", 0.09))
    cases = [a_case(backend) for backend, _ in formats]
    seconds = {
        name: ([s * (1 + 0.001 * i) for i in range(10)], [s / 2 + 1e-4 * i for i in range(10)])
        for (name, _), (_, s) in zip(cases, formats, strict=True)
    }
    run = timed_run(tmp_path / "run", seconds, cases, experiment=AUTO)
    data = write_document(run)
    validator.validate(data)
    assert data["sentences"] == verdict_lines(summarise(run))
    assert data["recommendation"] == [
        {"total": "write_total", "take": ["hdf5"]}, {"total": "read_total", "take": ["hdf5"]}
    ]  # fmt: skip
    zarr = next(case for case in data["cases"] if case["parameters"]["backend"] == "zarr")
    total = next(phase for phase in zarr["phases"] if phase["phase"] == "write_total")
    assert total["ratio_low"] < total["ratio"] < total["ratio_high"]
    assert total["ratio"] == pytest.approx(3, rel=0.01)
    assert [case["raw"] for case in data["cases"]] == [False, False, True]


def test_what_is_not_decided_is_not_taken(tmp_path):
    """Writing of one layout is decided, that of the other is not; reading is equally fast."""
    ten = np.linspace(1, 1.1, 10)
    factors = {"hdf5": ten, "zarr": 3 * ten}
    cases = [a_case(b, layout=layout) for layout in ("shared", "own") for b in factors]
    seconds = {
        name: (factors[entry["parameters"]["backend"]], np.full(10, 1.0)) for name, entry in cases
    }
    open_ = next(name for name, entry in cases if name.startswith("zarr.hyperslab.own"))
    both = {"total": "read_total", "take": ["hdf5", "zarr"]}
    run = timed_run(tmp_path / "decided", seconds, cases, experiment=AUTO)
    taken = write_document(run)["recommendation"]
    assert taken == [{"total": "write_total", "take": ["hdf5"]}, both]
    seconds[open_] = (ten[::-1] * 1.08, np.full(10, 1.0))
    run = timed_run(tmp_path / "open", seconds, cases, experiment=AUTO)
    assert write_document(run)["recommendation"] == [{"total": "write_total", "take": []}, both]


def test_a_run_without_a_verdict_or_with_a_failure_fits_the_schema(tmp_path, validator):
    cases = dict(USUAL)
    cases[USUAL[0][0]] = cases[USUAL[0][0]] | {"failure": {"phase": "write", "error": "no space"}}
    run = a_run(tmp_path / "run", cases.items(), status="interrupted", valid=None)
    data = write_document(run)
    validator.validate(data)
    assert data["valid"] is None
    assert "no space" in data["cases"][0]["invalid"]


def test_a_document_that_lacks_a_key_or_has_a_text_for_a_number_does_not_fit(tmp_path, validator):
    data = write_document(a_run(tmp_path / "run", USUAL))
    assert not validator.is_valid({k: v for k, v in data.items() if k != "cases"})
    assert not validator.is_valid(data | {"ranks": "four"})
    assert not validator.is_valid(data | {"version": 1})


def test_every_key_of_the_schema_is_explained():
    for name, definition in results_schema()["$defs"].items():
        for key, of_key in definition["properties"].items():
            assert of_key.get("description"), f"{name}.{key}"


def test_the_schema_is_printed(tmp_path):
    told = json.loads(pffbench_cli("keys", "--schema", "results").stdout)
    assert told == json.loads(json.dumps(results_schema()))  # a default of () is [] in JSON
