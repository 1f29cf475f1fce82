"""Experiments that somebody or something has spoilt: refused with file and key, nothing else."""

import copy
import datetime
import re
from functools import cache
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pffbench.errors import UserError
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import load_experiment
from pffbench.experiment.plan import cost_of
from pffbench.experiment.schema import json_schema
from pffbench.run.prepare import check_scratch
from pffbench.workloads.registry import workload_names

FILE = "experiment.yaml"
LARGE = {"hdf5": {"alignment": "1 MiB"}, "zarr": {"format": 3}, "settings": ["matched", "defaults"]}
#: An entry of each workload that nothing is wrong with.
ENTRIES = {
    "chunk_cache": {"backend": "hdf5", "shape": [4, 8], "granules": 2, "files": "one",
                    "arrays": "per_rank"},
    "datasets": {"backend": "hdf5", "shape": [4, 4], "datasets_per_rank": 2, "files": "one",
                 "arrays": "per_rank"},
    "hyperslab": {"backend": ["hdf5", "zarr"], "shape": [8, 8], "chunks": [4, 4],
                  "cut_unit": [[4, 4]], "decomposition": "slab"},
    "slices": {"backend": "zarr", "shape": [8, 8, 8], "axis": 0, "count": 2, "chunks": [4, 4, 4]},
    "versions": {"backend": "hdf5", "kind": "mostly_appends_dense", "versions": 3, "chunks": [64],
                 "dtype": "float64", "files": "per_rank"},
}  # fmt: skip
if "versions" not in workload_names():  # it comes with the package of the studies
    del ENTRIES["versions"]
HUGE = [10**12, 2**63, 2**64, 10**30, 10**400]
JUNK = [
    None, True, -1, 0, *HUGE, -(10**30), 1.5, -0.5, float("nan"), float("inf"), "", " ", "x", "0",
    "../../etc/passwd", "/etc/passwd", "a/b", "a\0b".replace("\0", "\\0"), "ä😀\n\t", "%s{0}", "~",
    "hdf5", "null", "64 MiX", "1e999 s", "-5 s", "nan", [], {}, [[]], [{}], [None], [-1], [0],
    ["x"], [[1, 2], [3]], [1] * 9, [10**30], {"": ""}, {"x": 1}, {1: 2}, {True: None},
    {"fail": "write"}, {"concurrency": 10**30}, datetime.date(2001, 1, 1), [[["x"]]], "x" * 5000,
    list(range(500)),
]  # fmt: skip
BITS = [
    "", "{", "}", "[", "]", ":", ": ", "-", "&a ", "*a", "!!x ", "!!python/name:os ", "|", "'", '"',
    "#", "\t", "\n", "\0", "? ", "%", "@", "<<: ", "ä", "\ud800", "9" * 5000, "- " * 50, "0b_", "=",
    "2001-99-99", "1:2:3", "!!binary x", "!!set {a}", "[" * 200,
]  # fmt: skip
NO_KEYS = ["", "__class__", "cases[0]", "a.b", "<<", "workload", "x" * 300]


@cache
def keys():
    """Return all keys, which take too long to make in each process that only collects tests."""
    top = json_schema()["$defs"]["Experiment"]["properties"]
    return sorted({*top, *(k for e in top["cases"]["items"]["anyOf"] for k in e["properties"])})


@pytest.fixture(scope="module", autouse=True)
def _elsewhere(tmp_path_factory):
    """Be in an empty directory, where everything that is made would be seen."""
    place = tmp_path_factory.mktemp("fuzz")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        yield


def complaint_of(text):
    """Plan an experiment; return what was complained of, None when there was nothing."""
    Path(FILE).write_text(text, encoding="utf-8", errors="surrogatepass")
    before = {FILE}
    try:
        plan = make_plan(load_experiment(FILE), ranks=2)
        check_scratch(plan, ".", 2**33)
        for case in plan.cases:
            cost_of(case, 2, int(plan.experiment.memory))
    except UserError as error:
        told = str(error)
    else:
        return None
    finally:
        assert {path.name for path in Path().iterdir()} == before
    assert told.strip()
    assert "Traceback" not in told
    assert len(told) < 3000
    assert told.isprintable(), told
    return told


def names_the_place(told):
    """Whether a complaint names the file, or the case by its name, and a key or a line."""
    no_experiment = rf"{FILE}: (line \d+: )?(not valid YAML|an experiment is)"
    if re.match(no_experiment, told, re.DOTALL):
        return True
    whose = told.startswith(f"{FILE}:") or re.match(r"\w+\.\w+\.\w+\.", told)
    return bool(whose and re.search(rf"\b({'|'.join(keys())})\b", told))


@st.composite
def experiments(draw):
    names = draw(st.lists(st.sampled_from(sorted(ENTRIES)), min_size=1, max_size=3))
    cases = [{"workload": name, **copy.deepcopy(ENTRIES[name])} for name in names]
    data = {"name": "fuzz", "repetitions": 2, "unsupported": "skip", "roofline": False}
    data["cases"] = cases
    if draw(st.booleans()):
        data["common"] = copy.deepcopy(LARGE)
    return data


def places(data, path=()):
    """Yield the path of everything in nested data."""
    pairs = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in pairs:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


@st.composite
def spoilt(draw):
    data = draw(experiments())
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(list(places(data)) or [("name",)]))
        target = data
        for step in path[:-1]:
            target = target[step]
        how = draw(st.sampled_from(["replace", "replace", "add", "remove"]))
        if how == "replace" or not isinstance(target, dict):
            target[path[-1]] = copy.deepcopy(draw(st.sampled_from(JUNK)))
        elif how == "add":
            key = draw(st.sampled_from([*keys(), *NO_KEYS]))
            target[key] = copy.deepcopy(draw(st.sampled_from(JUNK)))
        else:
            del target[path[-1]]
    return data


def test_the_entries_are_good_and_of_all_workloads():
    assert set(ENTRIES) <= set(workload_names())
    for name, entry in ENTRIES.items():
        data = {"name": "fuzz", "roofline": False, "cases": [{"workload": name, **entry}]}
        assert complaint_of(yaml.safe_dump(data)) is None


@settings(max_examples=2 * settings().max_examples, suppress_health_check=list(HealthCheck))
@given(spoilt(), st.booleans(), st.data())
def test_a_spoilt_experiment_is_refused_with_file_and_key(data, in_text, draw):
    """Keys and values replaced, or characters put in and taken out."""
    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
    if in_text:
        at = draw.draw(st.integers(0, len(text)))
        put = draw.draw(st.sampled_from(BITS))
        text = text[:at] + put + text[at + draw.draw(st.integers(0, 5)) :]
    told = complaint_of(text)
    assert told is None or names_the_place(told), told
