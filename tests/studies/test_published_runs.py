"""Runs beside the published numbers of the study that their experiment names."""

from __future__ import annotations

import base64
import csv
import html
import json
import math
import re
import xml.etree.ElementTree as ET

import pytest
import scipy
from msgspec.structs import replace

import drawn_runs
from drawn_runs import a_case, a_run, edit, with_phase
from launch import REPOSITORY
from pffbench.results.summary import summarise
from pffbench_analysis.report import report
from pffbench_studies.published import STUDIES, published_values, side_by_side
from pffbench_studies.published.figure import draw_published
from pffbench_studies.published.order import OrderVerdict, kendall
from pffbench_studies.published.wording import verdict_lines
from pffbench_studies.published.writing import page_data, write_published
from sharing import keys_of

STUDY = "file-format-testing"
FORMATS = {"hdf5": "HDF5", "netcdf4": "netCDF4", "zarr": "Zarr"}

# A run beside the study


def test_the_rank_correlation_is_that_of_scipy():
    here = [3.0, 1.5, 9.0, 4.0, 2.0]
    for published in ([3, 1, 9, 4, 2], [1, 1, 2, 3, 3], [9, 4, 3, 2, 1]):
        assert kendall(published, here) == pytest.approx(
            scipy.stats.kendalltau(published, here).statistic
        )
    assert math.isnan(kendall([1, 1, 1, 1, 1], here))


def a_paper_run(directory, milliseconds, files="per_rank", settings="defaults", repetitions=20):
    """Make a run whose every phase takes these milliseconds per dataset, times its number."""
    cases = [
        a_case(
            backend,
            workload="datasets",
            files=files,
            datasets=2048,
            shape=[128],
            durability="close",
        )
        for backend in milliseconds
    ]
    for _, entry in cases:
        entry.parameters["settings"] = settings
    speed = {name: 2.048 * milliseconds[entry.parameters["backend"]] for name, entry in cases}
    return a_run(directory, cases, repetitions, speed, ranks=1, experiment={"study": STUDY})


def compare_with_study(directory):
    found = side_by_side(summarise(directory))
    assert found is not None
    return found


def published(operation, name):
    """Return the original number of 2048 datasets of 128."""
    keys = {
        "edition": "original",
        "datasets": "2048",
        "shape": "128",
        "operation": operation,
        "format": name,
    }
    (value,) = [v for v in published_values(STUDY) if keys.items() <= v.parameters.items()]
    return value.value


def order(found, operation):
    (one,) = [o for o in found.orders if o.matches[0].operation == operation]
    return one


def test_numbers_are_matched_and_in_the_published_unit(tmp_path):
    run = a_paper_run(tmp_path, dict.fromkeys(FORMATS, 1.0), repetitions=4)
    found = compare_with_study(run)
    assert len(found.matches) == 12
    assert {m.nearest for m in found.matches} == {True}
    by = {(m.operation, m.alternative): m for m in found.matches}
    read = by[("read", "Zarr")]
    assert read.published.value == 2.10619
    # The drawn phases take 1, 2, 3 … times as long; four repetitions, 0.3, 0.1, 0.4, 0.2 more.
    place = drawn_runs.PHASES.index("read") + 1
    assert read.here == pytest.approx(1.0 * place * 1.25)
    assert not read.estimate.has_interval  # four repetitions have none
    assert read.ratio == pytest.approx(read.here / 2.10619)
    assert by[("create", "HDF5")].phase.phase == "define"
    assert by[("open", "HDF5")].phase.phase == "open_array"


def test_an_order_is_the_same_other_or_undecided(tmp_path):
    # Published: create N < H < Z, open N < Z < H, write H < Z < N, read H < Z < N.
    found = compare_with_study(
        a_paper_run(tmp_path / "a", {"hdf5": 1.0, "zarr": 2.0, "netcdf4": 4.0})
    )
    assert order(found, "write").verdict is OrderVerdict.SAME
    assert order(found, "open").verdict is OrderVerdict.OTHER
    create = order(found, "create")
    assert (create.agreeing, create.disagreeing, create.undecided) == (1, 2, 0)
    assert "write: same order, published HDF5 < Zarr < netCDF4; all 3 pairs" in " ".join(
        verdict_lines(found)
    )


def noisy(directory):
    """Make HDF5 and Zarr differ by less than their repetitions scatter."""
    run = a_paper_run(directory, {"hdf5": 1.0, "zarr": 1.01, "netcdf4": 9.0})

    def faster(one):
        if not one.case.startswith("zarr") or one.round % 2 == 0:
            return one
        return replace(one, phases=tuple(replace(t, seconds=0.9 * t.seconds) for t in one.phases))

    return edit(run, faster)


def test_what_the_intervals_do_not_support_is_undecided(tmp_path):
    write = order(compare_with_study(noisy(tmp_path)), "write")
    assert (write.agreeing, write.disagreeing, write.undecided) == (2, 0, 1)
    assert write.verdict is OrderVerdict.PARTLY


def test_fewer_than_seven_repetitions_decide_no_pair(tmp_path):
    """The rule of the judge: the interval of a single pair would exclude 1 here."""
    for few, verdict in ((6, OrderVerdict.UNDECIDED), (20, OrderVerdict.SAME)):
        run = a_paper_run(
            tmp_path / str(few), {"hdf5": 1.0, "zarr": 2.0, "netcdf4": 4.0}, repetitions=few
        )
        assert order(compare_with_study(run), "write").verdict is verdict


def test_one_repetition_decides_nothing(tmp_path):
    cases = [
        a_case(b, workload="datasets", files="one", arrays="per_rank", datasets=2048, shape=[128])
        for b in FORMATS
    ]
    a_run(tmp_path, cases, repetitions=1, experiment={"study": STUDY})
    found = compare_with_study(tmp_path)
    assert {o.verdict for o in found.orders} == {OrderVerdict.UNDECIDED}


def test_what_is_below_resolution_decides_nothing(tmp_path):
    run = a_paper_run(tmp_path, {"hdf5": 1.0, "zarr": 2.0, "netcdf4": 4.0})
    record = json.loads((run / "run.json").read_text())
    record["floor"]["own"] = 1.0
    (run / "run.json").write_text(json.dumps(record))
    found = compare_with_study(run)
    assert {o.verdict for o in found.orders} == {OrderVerdict.UNDECIDED}
    (correlation,) = found.correlations
    assert correlation.n == 12
    assert "†" in " ".join(text for row in page_data(summarise(run))["numbers"]["rows"]
                           for text in row)  # fmt: skip


def test_the_correlation_is_one_when_all_is_in_the_published_order(tmp_path):
    run = a_paper_run(tmp_path, dict.fromkeys(FORMATS, 1.0))
    phases = {"define": "create", "open_array": "open", "write": "write", "read": "read"}

    def as_published(one):
        for phase, operation in phases.items():
            known = published(operation, FORMATS[one.case.partition(".")[0]])
            one = with_phase(one, phase, seconds=known * 2.048 * (1 + 0.01 * one.round))
        return one

    edit(run, as_published)
    found = compare_with_study(run)
    assert [c.tau for c in found.correlations] == [pytest.approx(1.0)]
    assert {o.verdict for o in found.orders} == {OrderVerdict.SAME}
    assert all(m.ratio == pytest.approx(1.105) for m in found.matches)


@pytest.mark.parametrize(
    "other",
    [{"dtype": "float64"}, {"codec": "gzip"}, {"source": "constant"}, {"shape": [129]}],
    ids=str,
)
def test_other_work_is_not_matched(tmp_path, other):
    run = a_paper_run(tmp_path, dict.fromkeys(FORMATS, 1.0))
    record = json.loads((run / "run.json").read_text())
    for entry in record["cases"].values():
        entry["parameters"].update(other)
    (run / "run.json").write_text(json.dumps(record))
    found = compare_with_study(run)
    assert not found.matches
    assert "no comparison is made" in verdict_lines(found)[0]
    assert draw_published(found, summarise(run)) is None


def test_parallel_forms_and_other_settings_are_variants_of_their_own(tmp_path):
    cases = [
        a_case(b, workload="datasets", **keys_of(layout), datasets=2048, shape=[128])
        for b in FORMATS
        for layout in ("one-per_rank", "per_rank")
    ]
    a_run(tmp_path, cases, experiment={"study": STUDY})
    found = compare_with_study(tmp_path)
    assert {m.variant for m in found.matches} == {
        "one shared file with an array per rank, matched, durability sync",
        "one file per rank, matched, durability sync",
    }  # fmt: skip
    assert not any(m.nearest for m in found.matches)
    assert len(found.orders) == 8
    assert "No case is done as the study did it" in verdict_lines(found)[0]


# The report


def test_the_report_writes_and_lists_it(tmp_path):
    run = a_paper_run(tmp_path, {"hdf5": 1.0, "zarr": 2.0, "netcdf4": 4.0})
    written = [path for path in report([run]) if path.stem == "published"]
    assert {path.name for path in written} == {f"published.{s}" for s in ("md", "csv", "svg")}
    text = (run / "published.md").read_text(encoding="utf-8")
    assert text.index("write: same order") < text.index("## Numbers") < text.index("## Why they")
    assert "![Published numbers and those measured here](published.svg)" in text
    assert "unlimited, and shared" in text
    assert ET.parse(run / "published.svg").getroot().tag.endswith("svg")
    with (run / "published.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    row = next(r for r in rows if r["operation"] == "read" and r["alternative"] == "HDF5")
    assert float(row["published"]) == 0.95932
    assert float(row["ratio"]) == pytest.approx(float(row["here"]) / 0.95932)
    assert row["url"] == "https://arxiv.org/abs/2207.09503"
    assert row["order"] == "same order"
    again = (run / "published.csv").read_bytes()
    assert list(report([run]))
    assert (run / "published.csv").read_bytes() == again


def test_the_figure_shows_each_number(tmp_path):
    run = a_paper_run(tmp_path, {"hdf5": 1.0, "zarr": 2.0, "netcdf4": 4.0})
    found = compare_with_study(run)
    figure = draw_published(found, summarise(run))
    for panel, operation in zip(figure.panels, ("create", "open", "write", "read"), strict=True):
        assert f">{operation}: " in panel.drawing
        own = [match for match in found.matches if match.operation == operation]
        assert set(panel.rows) == {match.alternative for match in own}
        for match in own:
            assert f"{match.alternative}, published: {match.published.value:.3g}<" in panel.drawing
            assert f"{match.alternative}, here: {match.here:.3g}<" in panel.drawing


def test_an_experiment_without_a_study_gets_nothing(tmp_path):
    run = a_run(tmp_path, drawn_runs.USUAL)
    assert side_by_side(summarise(run)) is None
    assert page_data(summarise(run)) is None
    assert list(write_published(summarise(run), run)) == []


@pytest.mark.parametrize("study", sorted(STUDIES))
def test_a_run_that_does_nothing_of_its_study_says_so(tmp_path, study):
    run = a_run(tmp_path, drawn_runs.USUAL, experiment={"study": study})
    (run / "published.svg").write_bytes(b"of an earlier report")
    names = {path.name for path in write_published(summarise(run), run)}
    assert names == {"published.md", "published.csv"}
    assert not (run / "published.svg").exists()
    text = (run / "published.md").read_text(encoding="utf-8")
    assert "Nothing in this run has the parameters of any of the" in text
    with (run / "published.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(published_values(study))
    assert not any(row["here"] for row in rows)


def test_the_page_of_a_study_holds_the_published_numbers_and_the_figure(tmp_path):
    run = a_paper_run(tmp_path, dict.fromkeys(FORMATS, 1.0))
    list(report([run]))
    page = (run / "report.html").read_text(encoding="utf-8")
    section = page[page.index('<section id="published"') :]
    for text in page_data(summarise(run))["numbers"]["rows"][0]:
        assert html.escape(text, quote=False) in section
    assert "data:image/svg+xml;base64," in section
    table = re.search(r'href="data:text/csv;base64,([^"]+)"', section)[1]
    assert base64.b64decode(table) == (run / "published.csv").read_bytes()


def test_the_page_of_another_run_has_no_such_section(tmp_path):
    run = a_run(tmp_path, drawn_runs.USUAL)
    list(report([run]))
    assert 'id="published"' not in (run / "report.html").read_text(encoding="utf-8")


def test_page_data_is_fit_for_json(tmp_path):
    run = a_paper_run(tmp_path, dict.fromkeys(FORMATS, 1.0))
    data = page_data(summarise(run))
    again = json.loads(json.dumps(data, allow_nan=False))
    assert again["study"]["name"] == STUDY
    assert len(again["numbers"]["rows"]) == 12
    assert len(again["numbers"]["rows"][0]) == len(again["numbers"]["headings"])
    assert len(again["orders"]["rows"][0]) == len(again["orders"]["headings"])


def test_every_column_of_the_table_is_explained(tmp_path):
    run = a_paper_run(tmp_path, {"hdf5": 1.0})
    list(write_published(summarise(run), run))
    document = (REPOSITORY / "docs" / "reference" / "derived.md").read_text(encoding="utf-8")
    table = document.split("\n| column of `published.csv`")[1].split("\n\n")[0].splitlines()[2:]
    cells = [line.split("|")[1] for line in table]
    names = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    with (run / "published.csv").open(encoding="utf-8") as file:
        assert names == next(csv.reader(file))
