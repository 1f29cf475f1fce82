"""Which ranks are writers, and which boxes each of them moves."""

from __future__ import annotations

import itertools
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpi4py import MPI

from pffbench.case import Writers
from pffbench.errors import UserError
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import load_experiment
from pffbench.experiment.plan import arrays_of
from pffbench.geometry.box import Box
from pffbench.geometry.cut import Grid, Region, process_grid
from pffbench.mpi.exchange import Exchange
from pffbench.mpi.topology import Topology
from pffbench.workloads.writers import (
    WriterRanks,
    largest_share,
    parts_of_writers,
    pieces_of_writers,
    refuse_nodes,
)

TWO_NODES = Topology(("a",) * 3 + ("b",) * 2 + ("a",), (0, 0, 0, 1, 1, 0))


def plan_of(directory, *cases, ranks=4, no_mpi=None, sets=()):
    file = directory / "experiment.yaml"
    entries = "".join(f"  - {case}\n" for case in cases)
    common = "{workload: hyperslab, shape: [8, 8]}"
    file.write_text(f"name: one\nroofline: false\ncommon: {common}\ncases:\n{entries}")
    return make_plan(load_experiment(str(file), sets), ranks, no_mpi)


def one_node(ranks):
    return Topology(("a",) * ranks, (0,) * ranks)


def test_writers_per_node_are_spread_over_the_ranks_of_each():
    assert WriterRanks.of(Writers(per_node=1), TWO_NODES).ranks == (0, 3)
    assert WriterRanks.of(Writers(per_node=2), TWO_NODES).ranks == (0, 2, 3, 4)
    assert list(WriterRanks.of(Writers(per_node=2), TWO_NODES).gathered()) == [
        (0, 1), (2, 5), (3,), (4,)
    ]  # fmt: skip


def test_a_count_of_writers_is_spread_over_all_ranks_in_the_order_of_nodes():
    assert WriterRanks.of(Writers(count=2), TWO_NODES).ranks == (0, 5)
    assert WriterRanks.of(Writers(count=4), one_node(8)).ranks == (0, 2, 4, 6)
    assert WriterRanks.of("all", TWO_NODES).ranks == (0, 1, 2, 5, 3, 4)


def test_boxes_of_writers_are_the_array_once():
    """All ways of rearranging, 1–16 ranks and writers, uneven shapes of 1 to 3 axes."""
    arrays = [
        ((7,), (2,)), ((16,), (5,)), ((9, 11), (4, 3)), ((3, 17), (5, 20)), ((5, 4, 7), (2, 3, 2)),
    ]  # fmt: skip
    for (shape, unit), ranks in itertools.product(arrays, (1, 2, 3, 5, 16)):
        for count in range(1, ranks + 1):
            writers = WriterRanks.of(Writers(count=count), one_node(ranks))
            grid = process_grid(ranks, len(shape), "block")
            parts = [Grid(shape, grid).part(rank) for rank in range(ranks)]
            for rearranger in ("gather", "box", "chunk_owner"):
                placed = parts_of_writers(rearranger, writers, parts, shape, unit)
                assert tuple(placed) == writers.ranks
                times = np.zeros(shape, int)
                for boxes in placed.values():
                    for box in boxes:
                        times[box.slices] += 1
                assert (times == 1).all(), (shape, ranks, count, rearranger)


def test_each_chunk_has_one_owner_and_the_owners_have_equally_many():
    shape, unit = (37, 53), (5, 7)
    writers = WriterRanks.of(Writers(count=3), one_node(4))
    placed = parts_of_writers("chunk_owner", writers, [], shape, unit)
    owner = np.full(shape, -1)
    for rank, boxes in placed.items():
        assert len(boxes) <= 3
        for box in boxes:
            owner[box.slices] = rank
    owners = [
        set(owner[i : i + 5, j : j + 7].flat) for i in range(0, 37, 5) for j in range(0, 53, 7)
    ]
    assert all(len(found) == 1 for found in owners)
    counts = np.unique([found.pop() for found in owners], return_counts=True)[1]
    assert counts.max() - counts.min() <= 1


extents = st.integers(1, 7)


@st.composite
def calls(draw):
    """A call of each rank: its part, rows of it, every second of them, or the part of a region."""
    ranks, shape = draw(st.integers(1, 5)), tuple(draw(st.lists(extents, min_size=1, max_size=3)))
    grid = Grid(shape, process_grid(ranks, len(shape), draw(st.sampled_from(["slab", "block"]))))
    start = tuple(draw(st.integers(0, n - 1)) for n in shape)
    inner = tuple(draw(st.integers(1, n - a)) for n, a in zip(shape, start, strict=True))
    region = Region(Box(start, inner), partial(Grid.over, distribution="balanced"))
    whole = Box((0,) * len(shape), shape)
    step, kept = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    kind = draw(st.sampled_from(["parts", "rows", "strided", "region", "everything"]))
    boxes = []
    for rank in range(ranks):
        part = grid.part(rank)
        *outer, last = part.shape
        if kind == "rows":
            part = Box(part.start, (min(kept, part.shape[0]), *part.shape[1:]))
        elif kind == "strided":
            part = Box(part.start, (*outer, -(-last // step)), (*(1 for _ in outer), step))
        elif kind == "region":
            part = region.part(whole, rank, ranks)
        elif kind == "everything":
            part = whole
        boxes.append(part)
    unit = tuple(draw(extents) for _ in shape)
    return shape, unit, boxes


@given(calls(), st.data())
def test_what_writers_move_is_what_ranks_call_for_and_each_rank_gets_it_once(call, data):
    shape, unit, boxes = call
    writers = WriterRanks.of(Writers(count=data.draw(st.integers(1, len(boxes)))),
                             one_node(len(boxes)))  # fmt: skip
    for rearranger in ("gather", "box", "chunk_owner"):
        placed = pieces_of_writers(rearranger, writers, boxes, shape, unit)
        assert set(placed) <= set(writers.ranks)
        pieces = [piece for some in placed.values() for piece in some]
        moved, wanted = np.zeros(shape, bool), np.zeros(shape, bool)
        for piece in pieces:
            moved[piece.box.slices] = True
        for rank, box in enumerate(boxes):
            got = np.zeros(shape, int)
            for piece in pieces:
                if piece.is_of(rank):
                    got[box.common(piece.box).slices] += 1
            if box.size:
                wanted[box.slices] = True
                assert (got[box.slices] == 1).all()
        assert (moved == wanted).all()


class AllRanks:
    """The communicators of some ranks in one process: what each gives to MPI is moved in turn."""

    def __init__(self, ranks):
        self.given = {}
        self.comms = [SimpleNamespace(rank=rank, size=ranks, Alltoallw=self.noting(rank))
                      for rank in range(ranks)]  # fmt: skip

    def noting(self, rank):
        return lambda sent, received: self.given.update({rank: (sent, received)})

    def move(self, calls):
        for call in calls:
            call()
        for one, (sent, _) in self.given.items():
            for other, (_, received) in self.given.items():
                (memory, (counts, _), types), (target, (wanted, _), kinds) = sent, received
                assert counts[other] == wanted[one]
                if counts[other]:
                    MPI.COMM_SELF.Sendrecv(
                        [memory, 1, types[other]], 0, 0, [target, 1, kinds[one]], 0, 0
                    )


@given(calls(), st.data())
def test_an_exchange_brings_each_element_where_it_belongs_and_back(call, data):
    shape, unit, boxes = call
    writers = WriterRanks.of(Writers(count=data.draw(st.integers(1, len(boxes)))),
                             one_node(len(boxes)))  # fmt: skip
    array = np.arange(np.prod(shape), dtype="i2").reshape(shape)
    for rearranger in ("gather", "box", "chunk_owner"):
        placed = pieces_of_writers(rearranger, writers, boxes, shape, unit)
        everyone = AllRanks(len(boxes))
        exchanges = [Exchange(comm, boxes, placed, 2) for comm in everyone.comms]
        own = [np.ascontiguousarray(array[box.slices]).reshape(-1).view("u1") for box in boxes]
        inside = [np.zeros(2 * sum(box.size for box in e.boxes), "u1") for e in exchanges]
        each = list(zip(exchanges, own, inside, strict=True))
        everyone.move([exchange.to_writers(mine, held) for exchange, mine, held in each])
        for exchange, held in zip(exchanges, inside, strict=True):
            wanted = [array[box.slices].reshape(-1) for box in exchange.boxes]
            assert held.view("i2").tolist() == np.concatenate([[], *wanted]).tolist()
        before = [mine.copy() for mine in own]
        for mine in own:
            mine.fill(0xA5)
        everyone.move([exchange.from_writers(mine, held) for exchange, mine, held in each])
        assert all((a == b).all() for a, b in zip(own, before, strict=True))
        for exchange in exchanges:
            exchange.free()


def test_the_first_rank_of_a_file_is_a_writer_wherever_its_nodes_come_in_the_job():
    cyclic = Topology(("a", "b") * 3, (0, 1) * 3)
    assert WriterRanks.of(Writers(per_node=1), cyclic.part(range(3, 6))).ranks == (0, 1)


def test_memory_of_a_node_counts_its_ranks_and_its_writers():
    parts = [Grid((60,), (6,)).part(rank) for rank in range(6)]
    writers = WriterRanks.of(Writers(per_node=1), TWO_NODES)
    assert largest_share(writers, parts, TWO_NODES.nodes) == (20 + 30) // 2  # the smaller node
    alone = WriterRanks.of(Writers(count=1), TWO_NODES)
    assert largest_share(alone, parts, TWO_NODES.nodes) == (40 + 60) // 4


def test_writers_that_hold_more_than_a_node_has_are_refused_with_both_amounts(tmp_path):
    more = "rearranger: box, writers: {per_node: 1}, shape: [60]"
    (case,) = plan_of(tmp_path, f"{{backend: posix, {more}}}", ranks=6).cases
    (family,) = arrays_of(case.parameters, 6).families
    assert refuse_nodes(family, TWO_NODES, 100) is None
    told = refuse_nodes(family, TWO_NODES, 99)
    assert told.startswith("the ranks and writers of a node need 100 B of memory a rank for one")
    assert "where 99 B are available; name more writers, or use more nodes" in told


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("writers: {count: 5}, rearranger: box", "writers.count is 5, but there are 4 ranks"),
        ("writers: {count: 2, per_node: 1}, rearranger: box", "give per_node or count, one of"),
        ("writers: {count: 2}", "not all ranks are writers; they need rearranger: gather, box or"),
        ("writers: {nodes: 2}, rearranger: box", "writers: Object contains unknown field nodes"),
        ("rearranger: box, arrays: per_rank", "rearranger: box needs arrays that ranks share (arr"),
        ("rearranger: box, cache: shifted", "the writers read what they wrote; cache: shifted is"),
        ("rearranger: gather, cache: shifted", "the writers read what they wrote; cache: shifted"),
        ("rearranger: box, workload: startup, shape: [4]", "needs arrays that ranks share"),
        ("rearranger: box, files: per_rank", "needs arrays that ranks share"),
        ("rearranger: chunk_owner, chunks: contiguous", "needs a chunk shape"),
        ("rearranger: box, backend: zarr", "rearranger: box cuts chunks between writers"),
        ("rearranger: two_phase", "allowed: none, gather, box, chunk_owner"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(tmp_path, more, told):
    given = {"backend": "hdf5", "files": "one", "arrays": "shared"}
    for pair in more.split(", ", more.count(", ")):
        if ": " in pair and pair.split(": ")[0] in given:
            given.pop(pair.split(": ")[0])
    usual = ", ".join(f"{key}: {value}" for key, value in given.items())
    with pytest.raises(UserError) as caught:
        plan_of(tmp_path, f"{{{usual}, {more}}}")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_more_writers_than_ranks_are_left_out_of_a_sweep(tmp_path):
    writers = (
        "{backend: hdf5, rearranger: box, writers: [{per_node: 1}, {per_node: 2}, {count: 3}]}"
    )
    plan = plan_of(tmp_path, writers, ranks=1, sets=["unsupported=skip"])
    assert len(plan.cases) == 1
    assert [reason for _, reason in plan.left_out] == [
        f"writers.{key}, but there are 1 ranks" for key in ("per_node is 2", "count is 3")
    ]


def test_names_of_cases_without_writers_stay_and_cases_with_them_are_compared(tmp_path):
    writers = "writers: [{count: 1}, {per_node: 2}]"
    plan = plan_of(
        tmp_path,
        "{backend: hdf5, rearranger: [none, box], chunks: [[2, 8]]}",
        f"{{backend: zarr, rearranger: chunk_owner, {writers}, chunks: [[2, 8]]}}",
    )
    assert len({case.group for case in plan.cases}) == 1
    assert len({case.id for case in plan.cases}) == 4


def test_without_mpi_data_cannot_go_through_writers(tmp_path):
    with pytest.raises(UserError, match="rearranger needs MPI, and this process has none"):
        plan_of(tmp_path, "{backend: posix, rearranger: box}", ranks=1, no_mpi="no library")
