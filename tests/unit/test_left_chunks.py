"""Filters that give up: a case that they would harm is refused before anything is written."""

import numpy as np
import pytest

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.left_chunks import chunk_left
from pffbench.data import make_source
from pffbench.errors import UserError
from plans import plan_cases
from sharing import keys_of

pytest.importorskip("hdf5plugin")

CODECS = ["szip", "lzf", "blosc"]


@pytest.fixture
def half(tmp_path):
    """Write data of which the second half does not compress; return what a case says of them."""
    values = np.random.default_rng(3).integers(0, 2**32, (12, 32, 32), dtype="u4")
    values[:6] = 1
    np.save(tmp_path / "half.npy", values)
    return {"source": "file", "file": str(tmp_path / "half.npy"), "chunks": [3, 32, 32]}


def plan(cases, ranks=2, **more):
    return plan_cases(*cases, ranks=ranks, **{"unsupported": "skip", **more})


def case(half, backend, codec, **more):
    told = {
        "workload": "hyperslab",
        "backend": backend,
        "codec": codec,
        "files": "one",
        "arrays": "shared",
    }
    return told | {"transfer": "collective"} | half | more


@pytest.mark.parametrize(
    ("backend", "codec"),
    [
        ("hdf5", "szip"),
        ("hdf5", "lzf"),
        ("hdf5", "blosc"),
        ("netcdf4", "szip"),
        ("netcdf4", "blosc"),
    ],
)
@pytest.mark.parametrize("layout", ["one-shared", "one-per_rank"])
def test_a_shared_file_of_data_that_do_not_become_smaller_is_left_out(half, backend, codec, layout):
    """With arrays: per_rank the part of rank 0 becomes smaller."""
    made = plan([case(half, backend, [codec, "gzip"], **keys_of(layout))])
    assert [one.parameters.codec for one in made.cases] == ["gzip"]
    ((_, why),) = made.left_out
    assert f"codec {codec} cannot make the chunk of 12288 bytes at [" in why
    assert "leaves such chunks as they are" in why


def test_it_is_refused_where_cases_are_not_skipped(half):
    with pytest.raises(UserError, match="leaves such chunks as they are"):
        plan([case(half, "hdf5", "blosc")], unsupported="refuse")


@pytest.mark.parametrize(
    ("backend", "codec", "left_out"),
    [("hdf5", "blosc", 0), ("hdf5", "szip", 0), ("netcdf4", "szip", 0), ("netcdf4", "blosc", 1)],
)
def test_a_file_of_one_rank_is_left_out_only_where_it_cannot_be_written(
    half, backend, codec, left_out
):
    alone = {"files": "per_rank", "transfer": "independent"}
    made = plan([case(half, backend, [codec, "gzip"], **alone)])
    assert len(made.left_out) == left_out


@pytest.mark.parametrize("codec", CODECS)
def test_data_that_become_smaller_are_taken(half, tmp_path, codec):
    np.save(tmp_path / "half.npy", np.arange(12 * 32 * 32, dtype="u4").reshape(12, 32, 32))
    made = plan([case(half, "hdf5", codec)])
    assert not made.left_out


@pytest.mark.parametrize(("parts", "finds"), [(1, [True]), (4, [False, False, True, True])])
def test_each_rank_looks_at_its_part_of_the_chunks(half, parts, finds):
    spec = ArraySpec(
        name="a", shape=(12, 32, 32), dtype="uint32", number=0, origin=(0, 0, 0),
        logical_shape=(12, 32, 32), offset=0, owner=None, chunks=(3, 32, 32), codec="blosc",
        level=5, fill="none",
    )  # fmt: skip
    source = make_source("file", "uint32", file=half["file"])
    found = [chunk_left(spec, source, part, parts) for part in range(parts)]
    assert [place is not None for place in found] == finds
    assert found[-1] in ((6, 0, 0), (9, 0, 0))


def test_chunks_beyond_the_edge_are_filled_up():
    spec = ArraySpec(
        name="a", shape=(5, 7), dtype="float32", number=0, origin=(0, 0), logical_shape=(5, 7),
        offset=0, owner=None, chunks=(4, 4), codec="lzf", level=0, fill="none",
    )  # fmt: skip
    assert chunk_left(spec, make_source("uniform", "float32")) == (0, 0)
    assert chunk_left(spec, make_source("constant", "float32")) is None


# Each part of an array that ranks have files of


@pytest.mark.parametrize("layout", ["one-per_rank", "per_rank"])
@pytest.mark.parametrize(
    "pattern",
    [
        {"workload": "hyperslab", "shape": [15], "chunks": "rank_part"},
        {"workload": "hyperslab", "shape": [60], "chunks": [8], "distribution": "block"},
        {"workload": "updates", "shape": [1, 15], "chunks": "rank_part", "change": "append"},
    ],
)
def test_the_smallest_part_is_checked_too(pattern, layout):
    """Rank 0 has 8 elements, and the last rank 7 or 4, which szip cannot have."""
    ranks = 8 if pattern["shape"] == [60] else 2
    transfer = "collective" if layout == "one-per_rank" else "independent"
    told = {"backend": "hdf5", "codec": ["szip", "gzip"], **keys_of(layout), "transfer": transfer,
            "source": "smooth", "dtype": "float32"} | pattern  # fmt: skip
    made = plan([told], ranks)
    assert [one.parameters.codec for one in made.cases] == ["gzip"]
    assert "codec szip works on blocks of 8 elements; a chunk has " in made.left_out[0][1]
