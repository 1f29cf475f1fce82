"""Files, pictures and pages of the runs in docs/results are what their raw rows give."""

from __future__ import annotations

import shutil
import sys

import h5py
import pytest

from launch import REPOSITORY
from pffbench.record.run_json import RunRecord

sys.path.insert(0, str(REPOSITORY / "docs" / "tools"))

import derive_results
from derive_results import RAW, RESULTS, SHOWN, derived, derived_names, pages, runs, take, written

pytestmark = pytest.mark.long

MADE_OF = {run.relative_to(RESULTS).as_posix(): run for run in runs() if derived_names(run)}


def assert_same(name, found, made):
    """Compare a shipped file with one made again."""
    assert found == made, f"{name}: docs/tools/derive_results.py makes it again"


@pytest.fixture(scope="module")
def again():
    return {name: derived(run, derived_names(run)) for name, run in MADE_OF.items()}


def test_all_derived_files_are_those_of_the_rows_beside_them(again):
    assert {"default", "example-datasets"} <= again.keys()
    assert set(again["default"]) == set(derive_results.KEPT)
    for run, files in again.items():
        for name, made in files.items():
            assert_same(name, (RESULTS / run / name).read_text(encoding="utf-8"), made)


def test_pages_show_what_the_runs_print():
    assert {"README.md", "start.md", "results.md"} <= {page.name for page in pages()}
    for page in pages():
        again = f"{page}: docs/tools/derive_results.py makes it again"
        assert written(page) == page.read_text(encoding="utf-8"), again


@pytest.fixture
def a_run(tmp_path):
    """A run of another machine and checkout."""
    run = tmp_path / "new"
    shutil.copytree(RESULTS / SHOWN, run)
    record = (run / "run.json").read_text(encoding="utf-8")
    for old, new in (
        ("/home/user/pffbench", "/secret/x"),
        ('"vm"', '"node7"'),
        ('"built-in default"', '"/secret/mine.yaml"'),
        ('"mount_point": "/"', '"mount_point": "/secret"'),
    ):
        record = record.replace(old, new)
    (run / "run.json").write_text(record, encoding="utf-8")
    with h5py.File(run / "ranks.h5", "r+") as ranks:
        ranks["host"][:] = ["node7"] * len(ranks["host"])
    return run


@pytest.mark.full
def test_a_new_run_takes_the_place_of_the_shown_one_with_its_place_masked(a_run, tmp_path):
    results = tmp_path / "results"
    (results / SHOWN).mkdir(parents=True)
    (results / SHOWN / "of-the-old-run.csv").touch()
    take(a_run, results)
    kept = {path.name: path.read_bytes() for path in (results / SHOWN).iterdir()}
    assert set(kept) == {path.name for path in (RESULTS / SHOWN).iterdir()}
    assert set(kept) - set(RAW) == {"README.md", *derive_results.KEPT}
    assert not [name for name, text in kept.items() if b"node7" in text or b"/secret" in text]
    assert RunRecord.load(results / SHOWN).valid
    files = derived(results / SHOWN, derive_results.KEPT)
    for name, made in files.items():
        # The command names the experiment, which is masked too.
        made = made.replace(" run /home/user --", " run --")
        assert_same(name, (RESULTS / SHOWN / name).read_text(encoding="utf-8"), made)
