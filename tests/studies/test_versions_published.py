"""Study 5 beside a run: sizes, times, ratios, contradictions; nothing beside other histories."""

import math

import pytest

from launch import run_experiment
from pffbench.results.summary import summarise
from pffbench_studies.published.sidebyside import side_by_side

pytestmark = [pytest.mark.parallel, pytest.mark.full]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    run = run_experiment(
        tmp_path_factory.mktemp("study"), 1, study="versioned-hdf5", repetitions=2,
        common={"workload": "versions", "files": "per_rank", "dtype": "float64",
                "backend": "hdf5", "kind": "mostly_appends_dense", "versions": 25,
                "chunks": [64], "keep": ["last", "chunks"]},
        cases=[{"probabilities": "as_published", "change": "element"},
               {"probabilities": "as_described", "change": ["element", "batch"]}],
    )  # fmt: skip
    assert run.status == 0, run.said
    return side_by_side(summarise(run.out))


def of(found, quantity, alternative):
    return [
        m for m in found.matches
        if m.published.quantity == quantity and m.alternative.startswith(alternative)
    ]  # fmt: skip


def test_only_histories_like_the_published_ones_are_matched(found):
    assert found.matches
    assert len({match.case.name for match in found.matches}) == 2
    assert {match.nearest for match in of(found, "size of the file", "plain")} == {True}
    assert {match.nearest for match in of(found, "size of the file", "chunks")} == {False}


def test_sizes_are_those_of_the_files(found):
    (plain,) = of(found, "size of the file", "plain")
    assert plain.published.value == pytest.approx(0.041557)
    assert plain.ratio == pytest.approx(1, abs=0.05)  # the same chunks, the same format
    (chunks,) = of(found, "size of the file", "chunks")
    assert 0.3 < chunks.ratio < 1  # versioned-hdf5 takes more for its references


def test_times_and_their_ratio_stand_beside(found):
    (ratio,) = of(found, "time of all versions, versioned over unversioned", "chunks")
    there = [
        v.value
        for v in found.values
        if v.quantity == "time of all versions"
        and (v.parameters["test"], v.parameters["versions"]) == ("mostly_appends_dense", "25")
        and (v.parameters["chunk"], v.parameters["codec"]) == ("64", "none")
    ]
    assert ratio.published.value == pytest.approx(max(there) / min(there))
    assert ratio.here > 0
    own, other = (of(found, "time of all versions", a)[0].phase for a in ("chunks", "plain"))
    ratios = [own.by_round[b] / other.by_round[b] for b in own.by_round]
    assert ratio.here == pytest.approx(sum(ratios) / len(ratios))
    assert len(of(found, "time of a version", "chunks")) == 3  # all, first and last tenth
    assert all(not math.isnan(match.ratio) for match in found.matches)


def test_the_contradictions_of_the_study_are_rows_with_figures(found):
    told = {reason.about: reason.here for reason in found.reasons}
    assert any("looked up in" in text for about, text in told.items() if "look-up ag" in about)
    assert any("as a stretch: ×" in text for text in told.values())
    assert any("chunks kept of" in text for text in told.values())


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    run = run_experiment(
        tmp_path_factory.mktemp("grown"), 2, study="versioned-hdf5", repetitions=2,
        common={"workload": "versions", "files": "per_rank", "dtype": "float64",
                "backend": "hdf5", "kind": "mostly_appends_dense", "versions": [25, 50],
                "chunks": [256], "codec": "lzf", "keep": ["last", "chunks"],
                "probabilities": "as_published", "change": "element"},
        cases=[{}],
    )  # fmt: skip
    assert run.status == 0, run.said
    return side_by_side(summarise(run.out))


def test_compressed_by_lzf_as_published(grown):
    sizes = {m.alternative: m for m in grown.matches if m.published.quantity == "size of the file"}
    assert {m.published.parameters["codec"] for m in sizes.values()} == {"lzf"}
    assert sizes["plain HDF5, last state"].ratio == pytest.approx(1, abs=0.15)


def test_sizes_of_all_files_of_the_study_have_one_unit(grown):
    units = {v.unit for v in grown.values if v.reading == "computed" and "size" in v.quantity}
    assert units == {"MiB"}


def test_figures_over_the_number_of_versions_and_along_the_history(grown):
    over, history = grown.curves
    assert (over.axis.name, history.axis.name) == ("published-versions", "published-history")
    assert [p.quantity for p in over.panels] == [
        "size of the file, MiB", "time of all versions, s", "median time of a version, ms",
    ]  # fmt: skip
    for panel in over.panels:
        plain, chunks = panel.curves
        assert [p.x for p in plain.here] == [p.x for p in chunks.here] == [25, 50]
        assert [p.x for p in plain.published] == [25, 50, 100, 500]
        assert chunks.published == ()
    (panel,) = history.panels
    assert panel.row.endswith("50 versions")
    plain, chunks = panel.curves
    assert [p.x for p in plain.here] == [p.x for p in chunks.here] == list(range(10))
    (total,) = (
        m.case.counts["version", "tenth_10_seconds"]
        for m in grown.matches
        if (m.operation, m.alternative) == ("time of all versions", plain.alternative)
        and m.published.parameters["versions"] == "50"
    )
    assert plain.here[9].y == pytest.approx(1e3 * total / (2 * 5))  # of two ranks, five versions
