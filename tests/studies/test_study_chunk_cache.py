"""The workload `study_chunk_cache`: who moves what, repacking, and what is refused."""

from __future__ import annotations

import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moves import each_element_moves_once
from pffbench.errors import ImpossibleCaseError, UserError
from pffbench.experiment.plan import cost_of
from pffbench.geometry.box import Box
from pffbench_studies.workloads.chunk_cache import StudyChunkCache, StudyChunkCacheParameters
from pffbench_studies.workloads.repack import command_of
from plans import load_cases, plan_cases
from sharing import keys_of

WORKLOAD = StudyChunkCache()
ENTRY = {"workload": "study_chunk_cache", "backend": "hdf5", "shape": [4, 3, 5], "granules": 3}


def parameters(**changes):
    given = {"backend": "hdf5", "shape": (4, 3, 5), "granules": 3, **changes}
    return StudyChunkCacheParameters(**given)


# Who moves what

shared_files = st.sampled_from([("one-shared", "own"), ("one-shared", "interleaved"),
                                ("one-per_rank", "own"), ("per_rank", "own")])  # fmt: skip
units = st.sampled_from(["rows", "chunks"])


@given(
    shared_files,
    units,
    units,
    st.sampled_from(["independent", "collective"]),
    st.integers(1, 6),
    st.integers(1, 5),
    st.sampled_from(["auto", (4, 3, 5), (1, 3, 5), (3, 2, 5), (4, 3, 2)]),
)
def test_all_ranks_together_move_each_element_once(
    layout, write, read, transfer, granules, ranks, chunks
):  # fmt: skip
    p = parameters(**keys_of(layout[0]), sharing=layout[1], write=write, read=read,
                   granules=granules,
                   transfer="independent" if layout[0] == "per_rank" else transfer,
                   chunks=chunks)  # fmt: skip
    each_element_moves_once(WORKLOAD, p, ranks, Box((0, 0, 0), (4 * granules, 3, 5)))


def test_interleaved_rows_go_round_and_each_rank_wants_every_chunk():
    p = parameters(files="one", arrays="shared", sharing="interleaved", granules=2)
    reads = [[a.box for a in WORKLOAD.arrays(p, 3).reads(rank)] for rank in range(3)]
    assert [boxes[0].start for boxes in reads] == [(0, 0, 0), (0, 1, 0), (0, 2, 0)]
    assert {box.shape for box in reads[0]} == {(1, 1, 5)}
    assert all({box.start[0] // 4 for box in boxes} == {0, 1} for boxes in reads)


def test_the_store_that_is_read_has_the_new_chunks_and_its_own_transfer():
    p = parameters(files="one", arrays="shared", transfer="collective", read_transfer="independent",
                   chunks=(4, 3, 5), repack_chunks=(1, 3, 5), read="chunks")  # fmt: skip
    assert p.transfer_of_reads == "independent"
    anew = p.as_read()
    assert (anew.chunks, anew.transfer, anew.repack_chunks) == ((1, 3, 5), "independent", None)
    assert anew.as_read() == anew
    assert {a.box.shape for a in WORKLOAD.arrays(anew, 1).reads(0)} == {(1, 3, 5)}
    assert {a.box.shape for a in WORKLOAD.arrays(p, 1).writes(0)} == {(4, 3, 5)}


def test_big_endian_numbers_are_asked_of_the_store_alone():
    (spec,) = WORKLOAD.arrays(parameters(byte_order="big", dtype="float32"), 1).specs(0)
    assert (spec.dtype, spec.stored_dtype.str, spec.itemsize) == ("float32", ">f4", 4)


def test_ways_of_the_same_work_are_compared_and_the_roofline_repacks_nothing():
    ways = {"byte_order": ["native", "big"], "repack_chunks": [[4, 3, 5], [1, 3, 5]],
            "read_transfer": ["independent", "collective"]}  # fmt: skip
    found = load_cases(ENTRY | ways, roofline=True).cases
    assert len({case.group for _, case in found}) == 1
    (raw,) = [case.parameters for _, case in found if case.roofline]
    assert (raw.backend, raw.repack_chunks, raw.byte_order) == ("mpiio", None, "native")
    assert len(found) == 9
    rows, chunks = load_cases(ENTRY | {"read": ["rows", "chunks"]}).cases
    assert rows[1].group != chunks[1].group


def test_several_datasets_are_written_and_read_each_with_data_of_its_own():
    p = parameters(files="one", arrays="per_rank", datasets=3, granules=2)
    specs = WORKLOAD.arrays(p, 2).specs(0)
    assert [(s.name, s.number, s.owner) for s in specs] == [
        (f"granules_rank_{rank:06d}{end}", number, rank)
        for number, end in enumerate(["", "_1", "_2"])
        for rank in (0, 1)
    ]
    assert [s.offset for s in specs] == [i * 240 for i in range(6)]
    one, three = (WORKLOAD.arrays(parameters(datasets=n), 2).volume for n in (1, 3))
    assert (three.arrays, three.nbytes) == (3 * one.arrays, 3 * one.nbytes)
    assert len(WORKLOAD.arrays(p, 2).reads(0)) == 3 * len(
        WORKLOAD.arrays(parameters(files="one", arrays="per_rank"), 2).reads(1)
    )


def test_compression_can_be_removed_or_added_by_repacking():
    p = parameters(codec="gzip", chunks=(4, 3, 5), repack_codec="none")
    anew = p.as_read()
    assert (p.repacks, anew.repacks) == (True, False)
    assert (anew.codec, anew.chunks) == ("none", (4, 3, 5))
    assert parameters(codec="none", repack_codec="gzip").as_read().codec == "gzip"


def test_one_call_names_the_datasets_that_it_rewrites():
    p = parameters(codec="gzip", level=6, datasets=3, repack_chunks=(1, 3, 5)).as_read()
    command = command_of("old.h5", "new.h5", WORKLOAD.arrays(p, 1).specs(0)[:2])
    assert command == [
        "h5repack", "-l", "granules,granules_1:CHUNK=1x3x5", "-f", "granules,granules_1:GZIP=6",
        "old.h5", "new.h5",
    ]  # fmt: skip


def test_repacked_stores_are_compared_with_each_other():
    ways = load_cases(ENTRY | {"repack_codec": ["none", "gzip"], "chunks": [4, 3, 5]}).cases
    assert len({c.group for _, c in ways}) == 1


def test_repacking_takes_twice_the_space():
    (plain,), (twice,) = (
        load_cases(e).cases for e in (ENTRY, ENTRY | {"repack_chunks": [1, 3, 5]})
    )
    assert cost_of(twice[1], 1, 2**20).space == 2 * cost_of(plain[1], 1, 2**20).space


# What is refused


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"files": "one", "arrays": "per_rank", "sharing": "interleaved"},
         "sharing: interleaved needs files: one and arrays: shared"),
        ({"sharing": "interleaved", "cache": "shifted"}, "cache: shifted reads the partner's part"),
        ({"files": "per_rank", "read_transfer": "collective"},
         "read_transfer: collective needs a file that ranks share"),
        ({"repack_chunks": [1, 3]}, "repack_chunks .* must have 3 axes"),
        ({"repack_chunks": [1, 3, 9]}, "repack_chunks .* are larger"),
        ({"repack_chunks": [3, 3, 5]}, "whole chunks must make a granule of 4"),
        ({"repack_with": "h5repack"}, "repack_with: h5repack needs repack_chunks or repack_codec"),
        ({"repack_codec": "zstd"}, "repack_codec.*none, gzip"),
        ({"repack_codec": "gzip"}, "repack_codec: gzip needs files: per_rank"),
        ({"repack_datasets": 1}, "repack_datasets needs repack_chunks or repack_codec"),
        ({"repack_datasets": 1, "repack_codec": "none"}, "is for repack_with: h5repack"),
        ({"repack_datasets": 2, "repack_codec": "none", "repack_with": "h5repack"},
         "repack_datasets is 2, and there are 1 datasets"),
        ({"repack_with": "cp", "repack_chunks": [1, 3, 5]}, "h5repack"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_with_the_reason(changes, reason):
    entry = {key: value for key, value in {**ENTRY, **changes}.items() if value is not None}
    with pytest.raises(UserError, match=reason):
        plan_cases(entry)


IMPOSSIBLE = [
    ({"codec": "gzip"}, "only with transfer: collective"),
    ({"codec": "gzip", "transfer": "collective", "byte_order": "big"},
     "gives up collective transfer where it converts types"),
    ({"backend": "netcdf4", "codec": "gzip", "transfer": "collective",
      "read_transfer": "independent"}, "netCDF reads compressed data .* in collective calls only"),
    ({"backend": "zarr", "read_transfer": "collective"}, "zarr cannot do transfer collective"),
    ({"backend": "zarr", "chunks": [3, 3, 5]}, "would be shared by ranks"),
    ({"backend": "zarr", "repack_chunks": [1, 3, 5], "repack_with": "h5repack"},
     "h5repack rewrites HDF5 files, which backend zarr does not make"),
    ({"backend": "mpiio", "repack_chunks": [1, 3, 5]}, "raw bytes, which have no chunks"),
    ({"codec": "gzip", "shuffle": "byte", "transfer": "collective", "repack_chunks": [1, 3, 5],
      "repack_with": "h5repack"}, "without a shuffle"),
    ({"repack_codec": "none", "repack_with": "h5repack", "chunks": "contiguous"},
     "h5repack needs a chunk shape"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "reason"), IMPOSSIBLE)
def test_what_a_backend_cannot_do_is_refused_or_left_out(changes, reason):
    entry = {**ENTRY, **changes}
    with pytest.raises(ImpossibleCaseError, match=reason):
        plan_cases(entry)
    kept = plan_cases(ENTRY, entry, unsupported="skip")
    assert len(kept.cases) == 1
    assert len(kept.left_out) == 1


def test_one_rank_may_repack_across_granules():
    assert plan_cases(ENTRY | {"repack_chunks": [3, 3, 5]}, ranks=1).cases


def test_h5repack_has_to_be_there(monkeypatch):
    entry = ENTRY | {"repack_chunks": [1, 3, 5], "repack_with": "h5repack"}
    monkeypatch.setattr(shutil, "which", {}.get)
    with pytest.raises(ImpossibleCaseError, match=r"h5repack is not in PATH; take repack_with"):
        plan_cases(entry)
    monkeypatch.setattr(shutil, "which", {"h5repack": "/usr/bin/h5repack"}.get)
    assert plan_cases(entry).cases
