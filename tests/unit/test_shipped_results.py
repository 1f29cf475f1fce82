"""Files, pictures and pages of the runs in docs/results are what their raw rows give."""

from __future__ import annotations

import re
import shutil
import sys

import h5py
import pytest

from launch import REPOSITORY
from pffbench.record.run_json import RunRecord

sys.path.insert(0, str(REPOSITORY / "docs" / "tools"))

import derive_results
from derive_results import RAW, RESULTS, SHOWN, derived, derived_names, pages, runs, take, written

MADE_OF = {run.relative_to(RESULTS).as_posix(): run for run in runs() if derived_names(run)}
README = REPOSITORY / "README.md"
#: Of a float in a picture, beyond the rounding of another processor; 1 % more time is 0.01.
PLACE = 1e-3


def contents_of_picture(svg):
    """Return what a picture shows: its words, and the marks of each panel with their places.

    Ratios stand beside the points. Places are parts of the panel's extent, since its width depends
    on the fonts of the system.
    """
    words = re.findall(r">([^<]+)<", svg)
    marks = []
    for panel in re.split(r"role-scope concat_\d+_concat_\d+_group", svg)[1:]:
        found = re.findall(
            r'transform="translate\(([-.\d]+),([-.\d]+)\)" d="([^"]+)" fill="([^"]+)"', panel
        )
        for places in ([float(mark[i]) for mark in found] for i in (0, 1)):
            low, high = min(places), max(places)
            marks += [(place - low) / (high - low or 1) for place in places]
        marks.append([mark[2:] for mark in found])
    return words, marks


def assert_same(name, found, made):
    """Compare a shipped file with one made again."""
    if not name.endswith(".svg"):
        assert found == made, "docs/tools/derive_results.py makes it again"
        return
    (words, marks), (words_made, marks_made) = contents_of_picture(found), contents_of_picture(made)
    assert words == words_made
    assert len(marks) == len(marks_made)
    for mark, again in zip(marks, marks_made, strict=True):
        assert mark == (pytest.approx(again, abs=PLACE) if isinstance(again, float) else again)


@pytest.fixture(scope="module")
def again():
    return {name: derived(run, derived_names(run)) for name, run in MADE_OF.items()}


def test_all_derived_files_are_those_of_the_rows_beside_them(again):
    assert {"default", "example-datasets"} <= again.keys()
    assert set(again["default"]) == set(derive_results.KEPT)
    for run, files in again.items():
        for name, made in files.items():
            assert_same(name, (RESULTS / run / name).read_text(encoding="utf-8"), made)


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("summary.md", r"\| (\d+)\.(\d) \|"),  # a cell of a table
        ("answer.svg", r">\w+ (\d)\.(\d\d)<"),  # a ratio
        ("answer.svg", r"translate\((\d+)\.(\d+),[-.\d]+\)\" d=\"M"),  # a point
    ],
)
def test_a_changed_number_is_seen(again, name, pattern):
    made = again["default"][name]
    changed = re.sub(pattern, lambda found: found[0].replace(found[1], f"{int(found[1]) + 2}", 1),
                     made, count=1)  # fmt: skip
    assert changed != made
    with pytest.raises(AssertionError):
        assert_same(name, changed, made)


def test_pages_show_what_the_runs_print():
    assert {"README.md", "start.md", "results.md"} <= {page.name for page in pages()}
    for page in pages():
        again = f"{page}: docs/tools/derive_results.py makes it again"
        assert written(page) == page.read_text(encoding="utf-8"), again


def test_a_number_changed_in_the_readme_is_made_right(tmp_path):
    shutil.copytree(RESULTS, tmp_path / "docs" / "results")
    text = README.read_text(encoding="utf-8")
    page = tmp_path / "README.md"
    for pattern in (r"(\d)\.\d\d ", r"(\d) cores", r"(\d) cases"):
        found = re.search(pattern, text)
        changed = f"{text[: found.start(1)]}{9 - int(found[1])}{text[found.end(1) :]}"
        page.write_text(changed, encoding="utf-8")
        assert written(page) == text


@pytest.mark.parametrize(
    "name", ["README.md", "docs/start.md", "docs/results.md", "docs/gallery.md"]
)
def test_a_page_shows_one_run_and_its_picture(name):
    text = (REPOSITORY / name).read_text(encoding="utf-8")
    named = re.findall(r"(?:\]\(|<!-- run )(?:docs/)?results/([\w-]+)", text)
    assert SHOWN in named
    assert set(named) - {"example-datasets"} == {SHOWN}
    assert not re.search(r"\d times as long|VALID: every byte", typed_text(text))


def typed_text(text):
    """Return what of a page was typed, apart from examples that say that they are simulated."""
    return re.sub(r"<!-- (run|simulated) .*?<!-- end -->", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("left", [(), ("README.md", "summary.md"), ("run.json", "summary.md")])
def test_a_directory_without_its_raw_rows_is_refused(tmp_path, left):
    assert runs() == runs(RESULTS)
    (tmp_path / "gone").mkdir()
    for name in left:
        (tmp_path / "gone" / name).touch()
    with pytest.raises(ValueError, match=r"gone: no run\.json and samples\.csv"):
        runs(tmp_path)


@pytest.fixture
def a_run(tmp_path):
    """A run of another machine and checkout."""
    run = tmp_path / "new"
    shutil.copytree(RESULTS / SHOWN, run)
    for name in ("run.json", "samples.csv"):
        text = (run / name).read_text(encoding="utf-8").replace("/home/user/pffbench", "/secret/x")
        text = text.replace('"vm"', '"node7"').replace(",vm,", ",node7,")
        text = text.replace('"built-in default"', '"/secret/mine.yaml"')
        text = text.replace('"mount_point": "/"', '"mount_point": "/secret"')
        (run / name).write_text(text, encoding="utf-8")
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
