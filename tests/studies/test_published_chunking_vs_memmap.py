"""Runs of the workload `slices` beside the published numbers of study 3."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from drawn_runs import BYTES, a_case, a_run, edit
from pffbench.record.repetitions import Counted
from pffbench.results.summary import summarise
from pffbench_studies.published import side_by_side
from pffbench_studies.published.order import OrderVerdict
from pffbench_studies.published.wording import published_order
from pffbench_studies.published.writing import write_published

STUDY = "chunking-vs-memmap"
MEMMAP = {"order": "F", "destination": "C", "madvise": "normal"}
#: What h5py guesses for this volume.
GUESSED = {"chunks": [39, 63, 33]}


def slices(backend, axis, options, files="per_rank", **more):
    parameters = {
        "shape": [621, 998, 520], "dtype": "uint8", "axis": axis, "box": None, "position": "first",
        "count": 1, "chunks": "auto", "codec": "auto", "settings": "defaults",
        "cache": "dropped", **more,
    }  # fmt: skip
    name, entry = a_case(backend, workload="slices", files=files, **parameters)
    entry.options = options
    entry.group += f".{axis}"
    return f"{name}.{options}".replace(" ", ""), entry


FAITHFUL = [
    slices("memmap", 2, MEMMAP), slices("hdf5", 0, {}, **GUESSED), slices("hdf5", 2, {}, **GUESSED),
    slices("memmap", 0, MEMMAP),
]  # fmt: skip


def compare_with_study(directory, cases):
    run = a_run(directory, cases, 20, experiment={"study": STUDY})  # each case slower than the last
    return side_by_side(summarise(run))


def test_four_numbers_make_one_order_of_formats_and_axes(tmp_path):
    found = compare_with_study(tmp_path, FAITHFUL)
    assert {(m.alternative, m.published.value, m.nearest) for m in found.matches} == {
        ("memmap z", 0.385, True), ("HDF5 x", 21.856, True), ("HDF5 z", 23.8, True),
        ("memmap x", 12926.85, True),
    }  # fmt: skip
    (order,) = found.orders
    assert len(order.pairs) == 5  # HDF5 is said to take as long along either axis
    assert published_order(order) == "memmap z < HDF5 x ~ HDF5 z < memmap x"
    assert order.verdict is OrderVerdict.SAME


def test_the_time_is_from_open_to_close(tmp_path):
    found = compare_with_study(tmp_path, FAITHFUL)
    (first,) = [m for m in found.matches if m.alternative == "memmap z"]
    assert first.phase.phase == "read_total"
    assert first.here == pytest.approx(first.phase.seconds.median)


@pytest.mark.parametrize(
    "changes",
    [
        {"position": "middle"}, {"count": 2}, {"cache": "warm"}, {"dtype": "uint16"}, {"axis": 1},
        {"shape": [620, 998, 520]}, {"codec": "gzip"},
        {"chunks": [1, 499, 520]}, {"chunks": "contiguous"}, {"chunks": "auto"},
    ],
)  # fmt: skip
def test_other_work_is_not_put_beside(tmp_path, changes):
    axis = changes.get("axis", 0)
    more = {k: v for k, v in changes.items() if k != "axis"}
    assert not compare_with_study(tmp_path, [slices("hdf5", axis, {}, **GUESSED | more)]).matches


def test_a_map_of_a_file_in_c_order_is_not_the_study_s(tmp_path):
    assert not compare_with_study(tmp_path, [slices("memmap", 0, MEMMAP | {"order": "C"})]).matches


def test_named_chunks_that_prefer_no_axis_stand_beside_as_another_variant(tmp_path):
    told = {"settings": "matched", "files": "one", "chunks": [69, 64, 65]}
    apart = slices("hdf5", 0, {}, **told)
    together = slices("hdf5", 0, {}, **told, transfer="collective")
    found = compare_with_study(tmp_path, [apart, together])
    assert [(m.variant, m.nearest) for m in found.matches] == [
        ("one shared file, matched, dropped", False),
        ("one shared file, matched, dropped, collective reads", False),
    ]


def test_reasons_tell_the_bytes_that_were_moved(tmp_path):
    a_run(tmp_path, FAITHFUL, experiment={"study": STUDY})

    def counted(one):
        if one.case != FAITHFUL[-1][0]:
            return one
        times = 600 + one.round  # the median of 601 to 604, without the warm-up
        counts = (Counted("read", "touched_bytes", times * BYTES),
                  Counted("read", "device_read_bytes", 621 * BYTES))  # fmt: skip
        return replace(one, counts=counts)

    edit(tmp_path, counted)
    found = side_by_side(summarise(tmp_path))
    here = {reason.about: reason.here for reason in found.reasons}
    moved = here["bytes moved for each byte wanted"]
    assert moved == "memmap x, one file per rank, dropped: touched 602, device 621"
    assert here["size of the volume"] == "621×998×520"
    list(write_published(summarise(tmp_path), tmp_path))
    assert "touched 602" in (tmp_path / "published.md").read_text()
