"""Runs of compressed volumes beside the published numbers of study 4."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from drawn_runs import BYTES, a_case, a_run, edit
from pffbench.record.repetitions import Counted
from pffbench.results.summary import summarise
from pffbench_studies.published import published_values, side_by_side
from pffbench_studies.published.figure import draw_published
from pffbench_studies.published.wording import published_order
from pffbench_studies.published.writing import write_published

STUDY = "zarr-benchmarks"
VOLUME = 806 * 629 * 629 * 2


def codecs(backend, options, **more):
    parameters = {
        "shape": [230, 252, 252], "chunks": [128, 128, 128], "dtype": "uint16", "source": "image",
        "codec": "blosc", "compressor": "zstd", "level": 3, "shuffle": None,
        "settings": "defaults", "durability": "close", **more,
    }  # fmt: skip
    name, entry = a_case(backend, **parameters)
    entry.options = options
    return f"{name}.{options}".replace(" ", ""), entry


ZARR = codecs("zarr", {"format": 2, "shards": None, "pipeline": "library"})
SYNCED = codecs("tensorstore", {"format": 2, "shards": None, "file_io_sync": None})
UNSYNCED = codecs("tensorstore", {"format": 2, "shards": None, "file_io_sync": False})
OTHER = codecs("zarr", {"format": 2, "shards": [256, 256, 256]})


@pytest.fixture
def run(tmp_path):
    cases = [ZARR, SYNCED, UNSYNCED, OTHER]
    a_run(tmp_path, cases, experiment={"study": STUDY})
    counts = (Counted("write", "stored_bytes", BYTES / 1.9),)
    edit(tmp_path, lambda one: replace(one, counts=counts))
    return tmp_path


def test_times_are_those_of_a_volume_of_the_study_s_size(run):
    found = side_by_side(summarise(run))
    times = [m for m in found.matches if m.measured is None]
    assert {m.subject for m in times} == {"heart, blosc-zstd 3 shuffle, chunks 128x128x128"}
    assert {(m.operation, m.alternative, m.published.value) for m in times} == {
        ("write", "zarr-python 3", 1.1552), ("read", "zarr-python 3", 0.53506),
        ("write", "TensorStore", 1.4171), ("read", "TensorStore", 0.26467),
        ("write", "TensorStore without fsync", 1.4171),
    }  # fmt: skip
    assert all(m.factor == VOLUME / BYTES and m.nearest for m in times)
    (write,) = [o for o in found.orders if o.matches[0].operation == "write"]
    assert published_order(write) == "zarr-python 3 < TensorStore"
    assert {m.alternative for m in found.matches if m.beyond} == {"TensorStore without fsync"}


def test_the_libraries_of_several_environments_have_an_order(tmp_path):
    """TensorStore runs in both environments; the first one counts."""
    versions = {"zarr-3": "3.1.6", "zarr-2": "2.18.7"}
    told = {"format": 2, "shards": None, "file_io_sync": None}
    cases = [
        (f"{name}@{environment}", entry)
        for backend in ("tensorstore", "zarr")
        for environment in versions
        for name, entry in [codecs(backend, told, environment=environment)]
    ]
    environments = {
        name: {"provenance": {"software": {"libraries": {"zarr": {"version": version}}}}}
        for name, version in versions.items()
    }
    experiment = {"study": STUDY, "environments": [{"name": name} for name in versions]}
    a_run(tmp_path, cases, experiment=experiment, environments=environments)
    found = side_by_side(summarise(tmp_path))
    orders = {o.matches[0].operation: published_order(o) for o in found.orders}
    assert orders == {
        "write": "zarr-python 3 < TensorStore < zarr-python 2",
        "read": "TensorStore < zarr-python 3 < zarr-python 2",
    }
    first = {m.alternative: m.case.keys["environment"] for m in found.matches}
    assert first == {"TensorStore": "zarr-3", "zarr-python 3": "zarr-3", "zarr-python 2": "zarr-2"}
    (version,) = [reason.here for reason in found.reasons if reason.about == "versions"]
    assert "zarr 3.1.6, zarr 2.18.7" in version


def test_the_study_s_own_volumes_are_known_by_their_files(tmp_path):
    file = "/data/H01-proofread-104-subset.zarr"
    cases = [
        codecs("zarr", {"format": 2}, source="file", file=file),
        codecs("zarr", {"format": 2}, source="file", file="/data/other.zarr"),
    ]
    found = side_by_side(summarise(a_run(tmp_path, cases, experiment={"study": STUDY})))
    assert {m.case.name for m in found.matches} == {cases[0][0]}
    (subject,) = {m.subject for m in found.matches}
    assert subject == "sparse, blosc-zstd 3 shuffle, chunks 128x128x128"
    assert "what is compressed" not in {reason.about for reason in found.reasons}


def test_only_what_was_published_is_called_so(run):
    found = side_by_side(summarise(run))
    assert "what is compressed" in {reason.about for reason in found.reasons}
    beyond = {match.alternative for match in found.matches if match.beyond}
    assert beyond == {"TensorStore without fsync"}


def test_ratios_stand_beside_without_an_order(run):
    found = side_by_side(summarise(run))
    ratios = {m.alternative: m for m in found.matches if m.measured is not None}
    assert set(ratios) == {"zarr-python 3", "TensorStore"}
    for match in ratios.values():
        assert match.here == pytest.approx(1.9)
        assert match.ratio == pytest.approx(1.9 / 1.885)
        assert (match.published.quantity, match.below_resolution) == ("compression ratio", False)
    assert all(m.measured is None for o in found.orders for m in o.matches)
    assert {c.variant for c in found.correlations} == {"defaults, format 2"}


def test_the_files_are_written_and_the_figure_is_of_times(run):
    names = {path.name for path in write_published(summarise(run), run)}
    assert {"published.md", "published.csv", "published.svg"} <= names
    text = (run / "published.md").read_text()
    assert "| ratio | compress | TensorStore | 1.885 | 1.9 |" in text
    figure = draw_published(side_by_side(summarise(run)), summarise(run))
    drawn = figure.svg()
    assert "write: time" in drawn
    assert "read: time" in drawn
    assert "compress: " not in drawn


def test_format_3_stands_beside_the_published_ratio_to_format_2(tmp_path):
    """The published ratio is a mean over configurations, of which each needs both formats."""
    there = {
        (v.parameters["library"], v.parameters["dataset"], v.parameters["operation"]): v.value
        for v in published_values(STUDY)
        if "format 3 over format 2" in v.quantity
    }
    assert len(there) == 12

    def case(version, level):
        options = {"format": version, "shards": None, "pipeline": "library"}
        return codecs("zarr", options, level=level)

    cases = [case(2, 3), case(3, 3), case(2, 9), case(3, 9), case(3, 5)]
    seconds = dict(zip((name for name, _ in cases), (1.0, 2.0, 1.0, 4.5, 99.0), strict=True))
    a_run(tmp_path, cases, speed=seconds, experiment={"study": STUDY})
    found = side_by_side(summarise(tmp_path))
    ratios = [m for m in found.matches if "format 3 over" in m.published.quantity]
    assert {(m.subject, m.operation, m.alternative) for m in ratios} == {
        ("heart, format 3 over format 2", operation, "zarr-python 3")
        for operation in ("write", "read")
    }
    for match in ratios:
        assert match.here == pytest.approx(3.0)  # of 2 and 4.5; 5 has no partner
        assert match.published.value == there["zarr-python 3.1.1", "heart", match.operation]
        assert match.variant == "geometric mean of 2 codecs and chunks"
    assert all(m.measured is None for o in found.orders for m in o.matches)
