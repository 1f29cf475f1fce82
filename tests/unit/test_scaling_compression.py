"""`pffbench scaling` of cases that compress: rates of each rank, and the price in time."""

from __future__ import annotations

import csv

import pytest

from drawn_codecs import WAYS, a_codecs_run
from drawn_runs import BYTES, USUAL, a_run
from pffbench_analysis.scaling import load_series
from pffbench_analysis.scaling.compression import compression_table
from pffbench_analysis.scaling.export import scaling

MIB = 2**20
SIZES = (1, 2, 4)


def at(ranks):
    nodes = {"hosts": [], "nodes": [0] * ranks, "ranks_per_node": [ranks]}
    return {"ranks": ranks, "topology": nodes}


def faster(ways, ranks):
    """Compressing is shared by the ranks, the rest of the work is not."""
    return {
        way: (ratio, *(s if way[2] == "none" else s / ranks for s in seconds))
        for way, (ratio, *seconds) in ways.items()
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    parent = tmp_path_factory.mktemp("series")
    image = {way: told for way, told in WAYS.items() if way[0] == "image"}
    runs = [
        a_codecs_run(parent / f"r{ranks}", faster(image, ranks), repetitions=3, **at(ranks))
        for ranks in SIZES
    ]
    list(scaling(runs, parent / "out").write())
    return parent / "out"


def rows_of(made, backend, codec, phase="write_total"):
    with (made / "scaling.csv").open(newline="") as file:
        return [
            row for row in csv.DictReader(file)
            if row["backend"] == backend and f"codec={codec}" in row["variant"]
            and row["phase"] == phase
        ]  # fmt: skip


def test_rates_of_each_rank_are_in_both_sorts_of_bytes(made):
    rows = rows_of(made, "hdf5", "zstd")
    assert [int(row["size"]) for row in rows] == list(SIZES)
    for row in rows:
        assert float(row["compression_ratio"]) == pytest.approx(2.0)
        each = BYTES / MIB / float(row["median_s"]) / int(row["ranks"])
        assert float(row["rate_per_rank_mib_s"]) == pytest.approx(each)
        assert float(row["stored_rate_per_rank_mib_s"]) == pytest.approx(each / 2.0)


def test_the_price_of_compression_falls_with_ranks(made):
    lines = (made / "scaling.md").read_text().split("\n")
    start = lines.index("### Compression over ranks")
    found = [line for line in lines[start:] if "codec=gzip" in line and "write total" in line]
    assert len(found) == 2  # one for each backend
    hdf5 = next(line for line in found if "hdf5" in line)
    cells = [cell.strip() for cell in hdf5.split("|")[3:-1]]
    assert cells[0] == "1.9"
    prices = [float(cell.rpartition("×")[2]) for cell in cells[1:]]
    assert prices == [pytest.approx(9.0 / ranks, rel=0.1) for ranks in SIZES]
    assert all(" / " in cell for cell in cells[1:])


def test_without_compression_there_is_no_price_and_without_codecs_no_table(made, tmp_path):
    text = (made / "scaling.md").read_text()
    table = text[text.index("### Compression over ranks") :]
    plain = [line for line in table.split("\n") if "codec=none" in line and line.startswith("|")]
    assert plain
    assert not any("×" in line.replace("×best", "") for line in plain)
    series = load_series([a_run(tmp_path / f"r{n}", USUAL, **at(n)) for n in SIZES])
    assert list(compression_table(series.curves, series)) == []
