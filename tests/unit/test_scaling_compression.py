"""`pffbench scaling` of cases that compress: rates of each rank."""

from __future__ import annotations

import csv

import pytest

from drawn_codecs import WAYS, a_codecs_run
from drawn_runs import BYTES
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
