"""`results.json` fits its schema for every shipped experiment, and says what the summary says."""

from __future__ import annotations

import copy
import json
from types import SimpleNamespace

import jsonschema
import pytest

from drawn_runs import USUAL, a_case, a_run, timed_run
from launch import SHIPPED, pffbench_here, sampled
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import load_experiment
from pffbench.mpi.topology import Topology
from pffbench.observe.clock import Floor
from pffbench.record.run_json import FailureEntry, Startup
from pffbench.results.document import results_schema, write_results
from pffbench.results.summary import summarise
from pffbench.run.recording import new_record

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
    record = new_record(spec, str(tmp_path), topology, Floor(1e-7, 1e-7, 1e-8), Startup(), None)
    cases = dict(list(record.cases.items())[:_MOST_CASES])
    a_run(tmp_path / "run", cases.items(), repetitions=2, experiment=record.experiment,
          left_out=record.left_out)  # fmt: skip
    data = write_document(tmp_path / "run")
    validator.validate(data)
    assert {case["case"] for case in data["cases"]} == set(cases)
    assert all(case["phases"] for case in data["cases"])


def test_the_document_has_the_comparisons_of_the_answer(tmp_path, validator):
    formats = (("hdf5", 0.1), ("zarr", 0.3), ("mpiio", 0.09))
    cases = [a_case(backend) for backend, _ in formats]
    seconds = {
        name: ([s * (1 + 0.001 * i) for i in range(10)], [s / 2 + 1e-4 * i for i in range(10)])
        for (name, _), (_, s) in zip(cases, formats, strict=True)
    }
    run = timed_run(tmp_path / "run", seconds, cases)
    data = write_document(run)
    validator.validate(data)
    assert data["answer"]["word"] == "USE"
    assert data["answer"]["way"] == {"backend": "hdf5"}
    writing, reading = data["comparisons"]
    assert (writing["value"], writing["base"], writing["word"]) == ("zarr", "hdf5", "slower")
    assert writing["low"] < writing["ratio"] < writing["high"]
    assert writing["ratio"] == pytest.approx(3, rel=0.01)
    assert (writing["purpose"], reading["purpose"]) == ("write to disk", "read, page cache")
    assert [case["raw"] for case in data["cases"]] == [False, False, True]


def test_a_run_without_a_verdict_or_with_a_failure_fits_the_schema(tmp_path, validator):
    cases = copy.deepcopy(dict(USUAL))
    failure = FailureEntry("write", 0, "a", "no space", "", 1, repetition=2)
    cases[USUAL[0][0]].failure = failure
    run = a_run(tmp_path / "run", cases.items(), status="interrupted", valid=None)
    data = write_document(run)
    validator.validate(data)
    assert data["valid"] is None
    assert "no space" in data["cases"][0]["invalid"]


def test_a_document_that_lacks_a_key_or_has_a_text_for_a_number_does_not_fit(tmp_path, validator):
    data = write_document(a_run(tmp_path / "run", USUAL))
    assert not validator.is_valid({k: v for k, v in data.items() if k != "cases"})
    assert not validator.is_valid(data | {"ranks": "four"})
    assert not validator.is_valid(data | {"version": 99})


def test_every_key_of_the_schema_is_explained():
    for name, definition in results_schema()["$defs"].items():
        for key, of_key in definition["properties"].items():
            assert of_key.get("description"), f"{name}.{key}"


def test_the_schema_is_printed(tmp_path):
    told = json.loads(pffbench_here("keys", "--schema", "results").stdout)
    assert told == json.loads(json.dumps(results_schema()))  # a default of () is [] in JSON
