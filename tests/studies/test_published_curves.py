"""Figures of published numbers and those of a run over chunk size and shuffle (study 4)."""

from __future__ import annotations

from msgspec.structs import replace

from drawn_runs import BYTES, a_case, a_run, edit
from pffbench.record.repetitions import Counted
from pffbench.results.summary import summarise
from pffbench_studies.published import published_values, side_by_side
from pffbench_studies.published.figure import draw_curves
from pffbench_studies.published.writing import section, write_published

STUDY = "zarr-benchmarks"


def codecs(chunk, shuffle="byte", **options):
    parameters = {
        "shape": [230, 252, 252], "chunks": [chunk] * 3, "dtype": "uint16", "source": "image",
        "codec": "blosc", "compressor": "zstd", "level": 3, "shuffle": shuffle,
        "settings": "defaults", "durability": "close",
    }  # fmt: skip
    name, entry = a_case("tensorstore", **parameters)
    entry.options = {"format": 2, "shards": None, "file_io_sync": None, **options}
    return f"{name}.{options}".replace(" ", ""), entry


def draw_study(directory, cases):
    a_run(directory, cases, experiment={"study": STUDY})
    counts = (Counted("write", "stored_bytes", BYTES / 1.9),)
    edit(directory, lambda one: replace(one, counts=counts))
    return summarise(directory)


def test_each_parameter_that_was_varied_has_a_figure(tmp_path):
    cases = [codecs(64), codecs(90), codecs(128), codecs(128, "none"), codecs(128, "bit")]
    summary = draw_study(tmp_path, cases)
    by_size, by_shuffle = side_by_side(summary).curves
    assert (by_size.axis.name, by_shuffle.axis.name) == (
        "published-chunk-size",
        "published-shuffle",
    )
    write = next(p for p in by_size.panels if p.quantity == "write, s")
    assert write.row == "heart blosc-zstd 3 shuffle"
    (curve,) = write.curves
    assert [p.x for p in curve.here] == [64, 90, 128]
    there = {
        float(v.parameters["chunk"].partition("x")[0]): v.value
        for v in published_values(STUDY)
        if v.quantity == "time of the whole array"
        and v.parameters["library"].startswith("tensorstore")
        and (v.parameters["dataset"], v.parameters["operation"]) == ("heart", "write")
        and (v.parameters["codec"], v.parameters["level"]) == ("blosc-zstd", "3")
        and v.parameters["shuffle"] == "shuffle"
    }
    assert {p.x: p.y for p in curve.published} == there
    assert set(there) > {64, 90, 128}  # all that the study has, not only those measured here
    (curve,) = next(p for p in by_shuffle.panels if p.quantity == "read, s").curves
    assert by_shuffle.axis.names == ("noshuffle", "shuffle", "bitshuffle")
    assert [p.x for p in curve.here] == [0, 1, 2]

    figure = draw_curves(by_size, side_by_side(summary).study, summary)
    assert len(figure.panels) == 3  # write, read and the ratio
    for panel in figure.panels:
        assert panel.drawing.count(", here: ") == 3
        assert ", published: " in panel.drawing


def test_files_and_page_have_them_and_lose_them_with_what_they_show(tmp_path):
    summary = draw_study(tmp_path, [codecs(64), codecs(128)])
    names = {path.name for path in write_published(summary, tmp_path)}
    assert "published-chunk-size.svg" in names
    assert "published-shuffle.svg" not in names
    assert "(published-chunk-size.svg)" in (tmp_path / "published.md").read_text()
    assert section(summary, tmp_path).count("data:image/svg+xml") == 2

    other = draw_study(tmp_path / "other", [codecs(128)])
    list(write_published(other, tmp_path))
    assert not list(tmp_path.glob("published-*"))
    assert section(other, tmp_path).count("data:image/svg+xml") == 1


def test_ways_that_the_study_did_not_have_are_in_no_curve(tmp_path):
    summary = draw_study(tmp_path, [codecs(64, file_io_sync=False), codecs(128), codecs(90)])
    (by_size,) = side_by_side(summary).curves
    curves = [c for p in by_size.panels if p.quantity == "write, s" for c in p.curves]
    assert [(c.alternative, len(c.here)) for c in curves] == [("TensorStore", 2)]
