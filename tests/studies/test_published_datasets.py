"""Study 1 beside runs that do as it did, that do better, and that have fewer datasets."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from drawn_runs import a_case, a_run
from pffbench.results.summary import summarise
from pffbench_studies.published import side_by_side
from pffbench_studies.published.figure import draw_published
from pffbench_studies.published.writing import page_data
from sharing import keys_of

STUDY = "file-format-testing"
SVG = "{http://www.w3.org/2000/svg}"
FORMATS = {"hdf5": "HDF5", "netcdf4": "netCDF4", "zarr": "Zarr"}
FAITHFUL = {
    "files": "per_rank", "settings": "defaults", "durability": "close",
    "order": "interleaved", "read_sink": "print", "read_copy": True,
}  # fmt: skip
OPTIONS = {
    "hdf5": {"api": "high_level"},
    "netcdf4": {"dimensions": "unlimited_shared", "enddef": "implicit"},
    "zarr": {"format": 2},
}
CORRECTED = {
    "files": "per_rank", "settings": "matched", "durability": "sync",
    "order": "create_first", "read_sink": "buffer", "cache": "warm",
}  # fmt: skip
NEAREST = "one file per rank, library defaults, order interleaved, read sink print, read copy on"


def cases_of(ways, datasets=2048, shape=(128,), options=OPTIONS):
    """Make a case for each format and way."""
    found = []
    for way in ways:
        for backend in FORMATS:
            codec = "blosc" if backend == "zarr" and way is FAITHFUL else "auto"
            name, entry = a_case(
                backend, workload="study_datasets", datasets=datasets, shape=list(shape),
                **way | {"codec": codec},
            )  # fmt: skip
            if way is FAITHFUL:
                entry.options = options.get(backend, {})
            entry.group += str(datasets) + str(shape) + str(way)
            found.append((name, entry))
    return found


def compare_with_study(directory, cases, ranks=1, **how):
    told = {"experiment": {"study": STUDY}, "ranks": ranks}
    return side_by_side(summarise(a_run(directory, cases, **told, **how)))


def test_the_faithful_variant_is_nearest(tmp_path):
    found = compare_with_study(tmp_path, cases_of([CORRECTED, FAITHFUL]))
    assert {m.variant for m in found.matches if m.nearest} == {NEAREST}
    assert {m.variant for m in found.matches if not m.nearest} == {
        "one file per rank, matched, durability sync"
    }
    assert len(found.matches) == 24


def test_a_reason_is_told_only_of_cases_that_have_it(tmp_path):
    own = {"what a read is", "netCDF dimensions", "when netCDF4 creates", "order of the loop",
           "page cache", "until when", "what Zarr compresses with", "what a call is"}  # fmt: skip

    def told(name, ways, **how):
        found = compare_with_study(tmp_path / name, cases_of(ways, **how))
        return {reason.about: reason.here for reason in found.reasons}

    assert not own & set(told("a", [FAITHFUL]))
    both = told("b", [FAITHFUL, CORRECTED])
    assert own <= set(both)
    assert all(both[a].startswith("in the nearest variant as there; in others") for a in own)
    assert own & set(told("c", [FAITHFUL], options={})) == {
        "netCDF dimensions", "when netCDF4 creates", "what Zarr compresses with", "what a call is",
    }  # fmt: skip


def test_a_run_with_fewer_datasets_stands_beside_the_published_ones(tmp_path):
    cases = [c for n in (64, 128, 256) for c in cases_of([FAITHFUL], n, (256,))]
    cases += cases_of([FAITHFUL], 100, (128,))  # no part of 2048
    found = compare_with_study(tmp_path, cases)
    assert {m.subject: m.published.parameters["datasets"] for m in found.matches} == {
        "64 datasets for 2048 of 256": "2048",
        "128 datasets for 4096 of 256": "4096",
        "256 datasets for 8192 of 256": "8192",
    }
    (reason,) = [r for r in found.reasons if r.about == "number of datasets"]
    assert reason.here == "1/32 of them"
    write = next(m for m in found.matches if (m.operation, m.alternative) == ("write", "netCDF4"))
    assert write.here == pytest.approx(write.phase.seconds.median * 1e3 / 64)


def test_numbers_without_a_common_factor_are_not_matched(tmp_path):
    cases = [c for n in (64, 96) for c in cases_of([FAITHFUL], n, (256,))]
    assert not compare_with_study(tmp_path, cases).matches


SIZES = [(64, (128,)), (16, (128, 128)), (8, (128, 128, 128)), (64, (256,)), (256, (256,))]


@pytest.mark.parametrize("ways", [[FAITHFUL], [FAITHFUL, CORRECTED]], ids=len)
@pytest.mark.parametrize("sizes", [SIZES, SIZES[:1]], ids=len)
def test_the_figure_names_what_is_drawn(tmp_path, ways, sizes):
    cases = [case for n, shape in sizes for case in cases_of(ways, n, shape)]
    speed = {name: 1e-6 * 50.0 ** (i % 6) for i, (name, _) in enumerate(cases)}
    run = a_run(tmp_path / "run", cases, speed=speed, experiment={"study": STUDY})
    summary = summarise(run)
    figure = draw_published(side_by_side(summary), summary)
    root = ElementTree.fromstring(figure.svg())
    told = [node.text for node in root.iter(f"{SVG}text")]
    assert {"HDF5", "netCDF4", "Zarr"} <= set(told)
    assert bool(figure.panels[0].heading) == (len(ways) * len(sizes) > 1)


def test_the_page_has_the_same_numbers(tmp_path):
    run = a_run(tmp_path, cases_of([FAITHFUL]), experiment={"study": STUDY})
    assert len(page_data(summarise(run))["numbers"]["rows"]) == 12


@pytest.mark.parametrize(
    ("layout", "transfer", "own"),
    [
        ("per_rank", "independent", {"create", "open", "write", "read"}),
        ("one-per_rank", "independent", {"write", "read"}),
        ("one-per_rank", "collective", set()),
        ("one-shared", "independent", set()),
    ],
)
def test_with_several_ranks_a_time_is_that_of_a_rank_over_its_datasets(
    tmp_path, layout, transfer, own
):
    """All ranks create the datasets of a shared file, and open them by collective metadata."""
    way = CORRECTED | {**keys_of(layout), "transfer": transfer}
    found = compare_with_study(tmp_path, cases_of([way], 2048, (256,)), ranks=4)
    of_hdf5 = [match for match in found.matches if match.alternative == "HDF5"]
    assert {m.operation for m in of_hdf5 if m.factor == 1e3 / 512} == own
    assert {m.operation for m in of_hdf5 if m.factor == 1e3 / 2048} == {
        "create", "open", "write", "read",
    } - own  # fmt: skip
    assert next(r.here for r in found.reasons if r.about == "processes").startswith("4 on ")


def test_processes_are_no_reason_with_one_of_them(tmp_path):
    found = compare_with_study(tmp_path, cases_of([FAITHFUL]))
    assert "processes" not in {reason.about for reason in found.reasons}
