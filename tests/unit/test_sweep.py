"""A sweep answers what was swept: the best settings, a table of them, what matters most."""

from __future__ import annotations

import json
import re
from html import unescape

import jsonschema
import numpy as np
import pytest
from test_answer_table import make_busy, print_run

from drawn_runs import AUTO, a_case, timed_run
from launch import pffbench_cli, sampled
from pffbench.summary.answer import answer_of
from pffbench.summary.export import write_summary
from pffbench.summary.inference import ComparisonTable, decide
from pffbench.summary.labels import format_title
from pffbench.summary.results import as_data, results_schema
from pffbench.summary.summary import summarise
from pffbench_analysis.page.build import render
from pffbench_analysis.recommend import recommend

pytestmark = pytest.mark.long

CHUNKS = ([16, 64], [32, 32], [64, 64])
CODECS = ("none", "gzip", "zstd")


def planted(backend, chunks, codec):
    """Return a factor: chunks of 32×32 and zstd are best for every format."""
    return (1.3, 1.0, 1.6)[CHUNKS.index(chunks)] * {"none": 1.4, "gzip": 6, "zstd": 1}[codec]


def nothing(backend, chunks, codec):
    return 1.0


def a_sweep(
    directory, factor, formats=("hdf5", "zarr"), chunks=CHUNKS, codecs=CODECS, layouts=("shared",),
    n=20, spread=0.05, seconds=0.1, **more,
):  # fmt: skip
    """Write a run of all settings, which take `factor` times as long to write, and to read."""
    rng = np.random.default_rng(1)
    swept = [
        (b, c, k, layout) for layout in layouts for b in formats for c in chunks for k in codecs
    ]
    cases, times = [], {}
    for b, c, k, layout in swept:
        cases.append(a_case(b, chunks=c, codec=k, layout=layout, **more))
        noise = np.exp(rng.normal(0, spread, (2, n)))
        times[cases[-1][0]] = tuple(seconds * factor(b, c, k) * noise)
    return timed_run(directory, times, cases, experiment=AUTO)


def answer(run):
    return answer_of(summarise(run))


def test_the_best_settings_are_named_for_every_format(tmp_path):
    found = answer(a_sweep(tmp_path / "run", planted))
    assert found.word == "ANSWER"
    assert "Best for every format: codec zstd and chunks 32×32." in found.sentence
    (table, _) = found.settings
    headings = "write to disk / read, page cache"
    assert table.title == f"HDF5, times as long as its fastest (98.7 ms / 98.2 ms): {headings}"
    assert table.columns == ("codec none", "codec gzip", "codec zstd")
    cells = {row[0]: dict(zip(table.columns, row[1:], strict=True)) for row in table.rows}
    assert cells["chunks 32×32"]["codec zstd"] == "1.00 / 1.00"
    write, read = map(float, cells["chunks 64×64"]["codec gzip"].split(" / "))
    assert (write, read) == pytest.approx((9.6, 9.6), rel=0.1)


def test_the_key_that_matters_most_is_named_with_the_effects_of_all(tmp_path):
    write, read, *_ = answer(a_sweep(tmp_path / "run", planted)).facts
    assert re.match("What matters to write to disk: codec most .gzip takes (5.9|6.0). times", write)
    assert re.search(r"chunks .64×64 takes 1\.(59|6.) times as long as 32×32 .1", write)
    assert "format does not" in write
    assert read.startswith("What matters to read from the page cache: codec most")


@pytest.mark.parametrize(
    ("option", "key"),
    [
        ("format", "format"), ("file format", "file format"), ("median_s", "median_s"),
        ("codec", "zarr.codec"), ("backend", "zarr.backend"), ("settings", "zarr.settings"),
        ("durability", "zarr.durability"), ("environment", "environment"), ("case", "case"),
    ],
)  # fmt: skip
def test_an_option_is_a_key_of_its_own_whatever_its_name(tmp_path, option, key):
    """Some are names of parameters, of columns, or of what a sweep calls its keys."""
    cases, times = [], {}
    for backend, value in (("hdf5", 0), ("zarr", 2), ("zarr", 3)):
        name, entry = a_case(backend, chunks=[32, 32])
        cases.append((f"{name}-{value}", {**entry, "options": {option: value} if value else {}}))
        slow = 0.1 * (1 + value)
        times[cases[-1][0]] = (slow + 1e-4 * np.arange(20), slow + 1e-4 * np.arange(20))
    run = timed_run(tmp_path / "run", times, cases, experiment=AUTO)
    found = answer(run)
    assert f"Best for Zarr: {key} 2." in found.sentence
    if key != "file format":
        assert f"{key} (3 takes 1.33 times as long as 2" in found.facts[0]
    summary = summarise(run)
    write_summary(summary, run)
    data = json.loads(json.dumps(as_data(summary)))
    jsonschema.validate(data, results_schema())
    assert len({case.variant for case in summary.cases if case.sample.backend == "zarr"}) == 2
    assert render(summary, run, {})
    assert recommend([run]).lines()


def test_where_no_key_varies_alone_nothing_is_said_of_what_matters(tmp_path):
    cases, times = [], {}
    for seconds, told in ((0.1, {"rearrange": "none", "writers": "all"}),
                          (0.2, {"rearrange": "box", "writers": {"count": 1}})):  # fmt: skip
        cases.append(a_case("hdf5", **told))
        times[cases[-1][0]] = (seconds + 1e-4 * np.arange(20),) * 2
    found = answer(timed_run(tmp_path / "run", times, cases, experiment=AUTO))
    assert "Best for HDF5: rearrange none and writers all." in found.sentence
    assert [note for note in found.facts if "What matters" in note] == []


def test_of_keys_that_matter_alike_none_matters_most(tmp_path):
    def alike(backend, chunks, codec):
        return (1.5, 1.0, 1.5)[CHUNKS.index(chunks)] * {"none": 1.5, "gzip": 1.5, "zstd": 1}[codec]

    notes = answer(a_sweep(tmp_path / "run", alike)).facts
    assert " most " not in notes[0]
    assert notes[0].endswith("; which of them more is not decided.")


def test_where_formats_differ_a_table_has_the_best_settings_of_each(tmp_path):
    def crossed(backend, chunks, codec):
        best = {"hdf5": [16, 64], "zarr": [64, 64]}[backend]
        other = (1.0 if chunks == best else 2.0) * (1.5 if codec == "gzip" else 1.0)
        return other * (3 if backend == "zarr" else 1)

    found = answer(a_sweep(tmp_path / "run", crossed))
    assert "Best for HDF5: chunks 16×64." in found.sentence
    table = found.settings[0]
    assert table.columns == ("write to disk", "read, page cache")
    rows = {row[0]: row[1] for row in table.rows}
    assert rows["HDF5"] == "none or zstd, 16×64"
    assert rows["Zarr"] == "none or zstd, 64×64"


def test_with_one_format_the_settings_are_the_answer(tmp_path):
    run = a_sweep(tmp_path / "run", planted, formats=("hdf5",))
    found = answer(run)
    assert found.sentence == "Best for HDF5: codec zstd and chunks 32×32."
    assert found.rows == ()
    assert len(found.settings) == 1
    one = answer(a_sweep(tmp_path / "one", planted, formats=("hdf5",), codecs=("none",)))
    assert one.sentence == "Best for HDF5: chunks 32×32."
    assert one.settings[0].columns == ("write to disk", "read, page cache")
    rows = {row[0]: row[1] for row in one.settings[0].rows}
    assert rows["chunks 32×32"] == "1.00"
    assert rows["chunks 64×64"].startswith("1.6")
    assert re.fullmatch(r"1\.\d\d slower \[.*\]", rows["chunks 64×64"])


def test_a_codec_and_none_are_compared_where_there_is_one_format(tmp_path):
    """Compressed and uncompressed cases are no comparison of the headline."""
    codecs = ("none", "zstd")
    run = a_sweep(tmp_path / "run", planted, ("hdf5",), [[32, 32]], codecs)
    assert not summarise(run).answers
    assert answer(run).sentence == "Best for HDF5: codec zstd."


def test_what_is_best_on_average_is_named_where_single_settings_are_not_decided(tmp_path):
    def weak(backend, chunks, codec):
        return 1.25 if codec == "gzip" else 1.0

    found = answer(a_sweep(tmp_path / "run", weak, codecs=("gzip", "zstd"), spread=0.25))
    assert "Best for" not in found.sentence
    assert "Best on average: codec zstd." in found.sentence


def test_where_nothing_is_best_what_is_slower_is_named(tmp_path):
    def only_gzip(backend, chunks, codec):
        return 3.0 if codec == "gzip" else 1.0

    found = answer(a_sweep(tmp_path / "run", only_gzip))
    said = "is shown to be best; slower wherever compared: codec gzip."
    assert said in found.sentence

    def some_gzip(backend, chunks, codec):
        return 3.0 if (codec, backend) == ("gzip", "zarr") else 1.0

    assert "slower wherever" not in answer(a_sweep(tmp_path / "other", some_gzip)).sentence


def test_undecided_settings_have_question_marks_and_no_endless_interval(tmp_path):
    run = a_sweep(tmp_path / "run", planted, n=7)
    found = answer(run)
    assert "No value of codec or chunks is shown to be best." in found.sentence
    assert any("?" in cell for row in found.settings[0].rows for cell in row[1:])
    told = (
        "Open (?): 2 of 4 comparisons, best settings of HDF5 and Zarr; about 21 repetitions would "
        "decide:"
    )
    assert found.open == told
    command = "mpiexec -n 2 python -m pffbench run some.yaml --set repetitions=21"
    assert found.command == command
    assert f"{told} {command} " in " ".join(print_run(run).split())
    assert "0.00" not in print_run(run)
    assert "∞" not in print_run(run)


def test_settings_that_are_open_in_one_total_alone_are_written_once(tmp_path):
    """Writes vary, so that their best settings are open; those to read are decided."""
    noise = np.array([[0.9], [0.02]])
    found = answer(a_sweep(tmp_path / "run", planted, spread=noise))
    only = "codec zstd and chunks 32×32 to read from the page cache."
    assert found.sentence.endswith(f"slower. Best for every format: {only}")
    assert found.best == (("HDF5", "zstd?, 32×32?"), ("Zarr", "zstd?, 32×32?"))


def test_settings_that_make_no_difference_are_said_to_make_none(tmp_path):
    run = a_sweep(tmp_path / "run", nothing, formats=("hdf5",), spread=0.01)
    assert answer(run).sentence == "Codec and chunks make no difference of more than 10%."


def test_settings_are_compared_in_each_layout_and_named_where_all_agree(tmp_path):
    found = answer(a_sweep(tmp_path / "run", planted, ("hdf5",), layouts=("shared", "own")))
    assert found.sentence.startswith("Best for HDF5: codec zstd and chunks 32×32.")
    assert [one.title.split(", times")[0] for one in found.settings] == [
        "HDF5, layout shared", "HDF5, layout own",
    ]  # fmt: skip


@pytest.mark.parametrize("change", [{"n": 3}, {"busy": True, "seconds": 0.5}], ids=["few", "busy"])
def test_a_sweep_without_an_answer_names_no_setting(tmp_path, change):
    more = {key: value for key, value in change.items() if key != "busy"}
    run = a_sweep(tmp_path / "run", planted, ("hdf5",), codecs=("none", "zstd"), **more)
    if "busy" in change:
        make_busy(run)
    found = answer(run)
    assert (found.word, found.settings) == ("NO ANSWER", ())
    text = "\n".join(recommend([run]).lines())
    assert f"**NO ANSWER** {found.sentence}" in text
    assert "Settings:" not in text
    assert "Best for" not in print_run(run)


def test_every_place_has_the_sentence_and_the_tables(tmp_path):
    run = a_sweep(tmp_path / "run", planted, formats=("hdf5", "netcdf4", "zarr"))
    summary = summarise(run)
    found = answer_of(summary)
    write_summary(summary, run)
    sentence = "Best for every format: codec zstd and chunks 32×32."
    text = (run / "summary.md").read_text().replace("\\", "")
    page = unescape(render(summary, run, {}))
    for place in (text, page):
        assert sentence in place
        assert "What matters to write to disk: codec most" in place
    shown = print_run(run)
    assert sentence in " ".join(shown.split())
    what = "What matters most to write to disk: codec (gzip takes 5.98 times as long as zstd [5.84–"
    assert what in " ".join(shown.split())
    for one in found.settings:
        assert one.title not in shown
        assert one.title in " ".join(print_run(run, tables=True).split())
        assert one.title in text
        assert one.title in page
    data = as_data(summary)["answer"]
    assert [one["title"] for one in data["settings"]] == [one.title for one in found.settings]
    assert results_schema()["$defs"]["SettingsTable"]["description"]
    assert f"- **Settings:** {sentence}" in "\n".join(recommend([run]).lines())
    told = json.loads(pffbench_cli("recommend", run, "--json").stdout)["runs"][0]["settings"]
    assert told[0] == sentence


def where_formats_differ(backend, chunks, codec):
    best = CHUNKS[len(backend) % 3]
    return (1.0 if chunks == best else 2.0) * (1.5 if codec == "gzip" else 1.0)


SWEEPS = [
    (planted, {}), (planted, {"n": 7}), (planted, {"layouts": ("shared", "own")}),
    (nothing, {"spread": 0.01}), (nothing, {"spread": 0.3}), (where_formats_differ, {}),
    (where_formats_differ, {"n": 8}), (planted, {"codecs": ("none",)}),
]  # fmt: skip


@pytest.mark.parametrize(("factor", "more"), sampled(SWEEPS, *SWEEPS[1::3]))
@pytest.mark.parametrize("formats", sampled([1, 3, 5], 5))
def test_the_answer_of_a_sweep_has_ten_lines_at_80_columns(tmp_path, factor, more, formats):
    """What to take for each format, what is fastest, which key matters most, what is open."""
    names = ("hdf5", "netcdf4", "zarr", "tensorstore", "blosc2")[:formats]
    titles = tuple(map(format_title, names))
    run = a_sweep(tmp_path / "run", factor, names, **more)
    lines = print_run(run).splitlines()
    assert max(map(len, lines)) <= 80
    (start,) = [i for i, line in enumerate(lines) if line.startswith(("ANSWER  ", "NO ANSWER  "))]
    own = lines[start:]
    assert len(own) <= 10
    assert own[-1].startswith("Every byte read was verified; ")
    found = answer(run)
    if found.word == "ANSWER":
        told = "\n".join(own)
        assert "What matters most to write to disk: " in "\n".join(lines)
        assert ("Open (?): " in told) == bool(found.open)
        if formats > 1:
            assert "best settings" in told
            assert "HDF5" in "\n".join(lines)
            assert sum(line.startswith(titles) for line in own) >= min(formats, 3)


def test_a_large_sweep_names_the_fastest_settings_on_the_terminal(tmp_path):
    sizes = [[2**i, 64] for i in range(9)]
    codecs = ("none", "lz4", "gzip", "szip", "blosc", "zstd")

    def far(backend, chunks, codec):
        return (1 + abs(sizes.index(chunks) - 8)) * (1 + abs(codecs.index(codec) - 5))

    shown = print_run(a_sweep(tmp_path / "run", far, ("hdf5",), sizes, codecs))
    assert "Best for HDF5: codec zstd and chunks 256×64." in shown
    assert "128×64" not in shown


def test_a_run_without_settings_has_none(tmp_path):
    run = a_sweep(tmp_path / "run", nothing, chunks=[[32, 32]], codecs=("none",))
    assert summarise(run).sweeps == ()
    assert answer(run).settings == ()


def test_what_is_shown_to_be_equal_has_an_interval():
    """In view of many pairs seven repetitions give none; that of the pair alone showed it."""
    rng = np.random.default_rng(1)
    times = {f"{i}": dict(enumerate(rng.normal(1, 0.005, 7))) for i in range(12)}
    pairs = tuple((a, b) for a in times for b in times if a < b)
    found = decide([ComparisonTable(times, pairs)], (7,)).values()
    equal = [decision for decision in found if decision.equivalent]
    assert equal
    assert all(decision.ratio.is_bounded for decision in equal)
