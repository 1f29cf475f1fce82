"""The standard experiment never changes, and its pages are what its files give."""

import json
import sys

import pytest
import yaml
from msgspec.structs import replace

from launch import REPOSITORY, pffbench_cli
from pffbench.experiment.load import load_experiment, to_plain
from pffbench.experiment.shipped import shipped_files
from pffbench.experiment.standard import STANDARDS, standard_of, work_digest

sys.path.insert(0, str(REPOSITORY / "docs" / "tools"))
sys.path.insert(0, str(REPOSITORY / "benchmarks"))

import board
import standard

pytestmark = pytest.mark.long

LIBRARIES = standard.PLACE / "libraries"


def plain(path, *overrides):
    return to_plain(load_experiment(str(path), list(overrides)).experiment)


def test_the_work_of_each_standard_has_the_digest_that_was_given_to_it():
    found = {
        int(name.partition(":")[2]): work_digest(plain(path))
        for name, path in shipped_files().items()
        if name.startswith("standard:")
    }
    assert found == STANDARDS, "changed work is the next standard: leave the file as it was"


@pytest.mark.parametrize(
    "override", ["counters=true", "repetitions=3", "time_budget=1 min", "roofline=false"]
)
def test_how_often_a_standard_runs_and_what_is_counted_leave_it_a_standard(override):
    assert standard_of(plain("standard:1", override)).version == 1


@pytest.mark.parametrize(
    "override", ["chunks=[4, 64, 64]", "cache=dropped", "seed=2", "warmup=0", "scale=2",
                 "backend=hdf5", "memory=1 MiB"],
)  # fmt: skip
def test_other_work_is_not_a_standard(override):
    assert standard_of(plain("standard:1", override)) is None


@pytest.mark.parallel
def test_a_result_names_the_standard_that_it_measured_and_changed_work_has_none(tmp_path):
    only = ["--set", "repetitions=1", "--scratch", tmp_path, "--json"]
    for more, wanted in (
        ([], {"version": 1, "digest": STANDARDS[1]}),
        (["--set", "backend=hdf5", "--set", "files=per_rank"], None),
    ):
        done = pffbench_cli("run", "standard:1", *only, *more, "--out", tmp_path / f"{len(more)}")
        assert done.status == 0, done.said
        told = json.loads(done.stdout)
        assert told["standard"] == wanted
        assert ("standard 1 (" in told["answer"]["evidence"]) is bool(wanted)


def test_the_pages_are_what_the_files_give():
    for path, text in standard.written().items():
        again = f"{path}: docs/tools/standard.py makes it again"
        assert path.read_text(encoding="utf-8") == text, again


def test_every_file_is_of_a_known_standard_and_small():
    for path in standard.PLACE.rglob("*.json"):
        entry = standard.load(path)
        assert STANDARDS[entry.standard] == entry.digest, path
        assert entry.cases
        assert path.stat().st_size < 5000


def test_the_board_has_a_file_of_each_version_of_its_list():
    kept = [{path.stem for path in system.glob("*.json")} for system in LIBRARIES.iterdir()]
    assert set(board.listed()) in kept
    assert all(names <= set(board.listed()) for names in kept)


@pytest.mark.parametrize("library", board.LIBRARIES, ids=lambda one: one.names[0])
def test_the_board_counts_the_cases_of_the_standard(library, tmp_path):
    path = tmp_path / "cases.yaml"
    path.write_text(yaml.safe_dump(board.cases_of(library._replace(options={}))))
    whole = [case for _, case in load_experiment("standard:1").cases]
    part = [case.id for _, case in load_experiment(str(path)).cases]
    assert part == [case.id for case in whole if case.parameters.backend == library.backend]


def test_the_fix_of_writing_shards_in_zarr_3_1_4_is_on_the_page():
    page = (standard.PLACE / "libraries.md").read_text(encoding="utf-8")
    assert "**zarr 3.1.4**: Zarr, shards, boxes read: new memory to write" in page


@pytest.fixture
def entry():
    return standard.load(LIBRARIES / "debian-13" / "zarr-3.1.4.json")


def changed(entry, **more):
    old, *others = entry.cases
    return replace(entry, cases=[replace(old, write=replace(old.write, **more)), *others])


@pytest.mark.parametrize(
    ("more", "word"),
    [({"calls": 1}, "calls to write"), ({"opens": 1}, "opens to write"),
     ({"nbytes": 2**25}, "bytes to write"), ({"memory": 900}, "new memory to write")],
)  # fmt: skip
def test_each_kind_of_count_that_differs_is_named(entry, more, word):
    assert list(standard.differences(entry, entry)) == []
    (text,) = standard.differences(entry, changed(entry, **more))
    assert word in text


def test_ranges_that_overlap_are_no_difference(entry):
    calls = entry.cases[0].write.calls
    racing = changed(entry, calls=calls - 5, more_calls=5)
    assert list(standard.differences(racing, entry)) == []
    assert list(standard.differences(changed(entry, calls=calls - 5, more_calls=4), entry))
    memory = changed(entry, memory=100.0, more_memory=50.0)
    assert list(standard.differences(memory, changed(entry, memory=150.0))) == []
    assert list(standard.differences(memory, changed(entry, memory=151.0)))


@pytest.mark.parametrize(
    ("results", "why"),
    [("default", "no system calls were counted"), ("example-datasets", "no system calls")],
)
def test_a_run_without_counts_is_refused_in_a_sentence(results, why):
    with pytest.raises(ValueError, match=why):
        standard.entry_of([REPOSITORY / "docs" / "results" / results])
