"""The arrays of a case: files have each element once, and a plan counts them without listing.

Cases are drawn over workloads, lists of arrays, decomposition maps, files of groups of ranks, time
steps, other parts to read, and writers.
"""

import math
from itertools import pairwise, product

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from pffbench.backends.registry import backend_class
from pffbench.case import Case, GroupedFiles, work_of
from pffbench.errors import ImpossibleCaseError, UserError
from pffbench.experiment.check import check_case
from pffbench.experiment.load import from_data
from pffbench.experiment.plan import cost_of
from pffbench.geometry.box import Box
from pffbench.geometry.cut import process_grid
from pffbench.geometry.groups import FileGroups
from pffbench.geometry.maps import Consecutive, DecompositionMap, MapCut
from pffbench.geometry.stretches import Stretches
from pffbench.mpi.topology import Topology
from pffbench.workloads.arrays import CaseArrays, Family
from pffbench.workloads.hyperslab import HyperslabParameters
from pffbench.workloads.irregular import MapFile
from pffbench.workloads.registry import workload
from pffbench.workloads.selections import selected
from pffbench.workloads.slices import wanted
from pffbench.workloads.specs import make_spec
from pffbench.workloads.updates import changed_elements, changes_of
from pffbench.workloads.writers import WriterRanks, pieces_of_writers, refuse_writers
from plans import load_cases, plan_cases
from sharing import keys_of

#: One rank, parts of equal and of unequal lengths, and more ranks than some arrays have rows.
RANKS = st.sampled_from([1, 2, 3, 4, 5, 7])
extents = st.integers(1, 9)
few = st.integers(1, 3)


def shapes(least, most):
    return st.lists(extents, min_size=least, max_size=most)


#: For each workload the fewest and the most axes of its arrays, and further keys of it.
AXES = {"hyperslab": (1, 3), "datasets": (1, 2), "startup": (1, 3), "slices": (3, 3),
        "chunk_cache": (2, 3), "updates": (2, 3)}  # fmt: skip
PARAMETERS = {
    "hyperslab": st.fixed_dictionaries(
        {},
        optional={
            "distribution": st.sampled_from(["block", "balanced"]),
            "steps": few,
            "chunks": st.just("rank_part"),
        },
    ),
    "datasets": st.just({}),
    "startup": st.fixed_dictionaries(
        {"datasets": extents}, optional={"strategy": st.sampled_from(["every_rank", "root_bcast"])}
    ),
    "slices": st.fixed_dictionaries({"axis": st.integers(0, 2)})
    | st.fixed_dictionaries(
        {"box": st.just([1, 1, 1]), "position": st.just("random"), "count": few}
    ),
    "chunk_cache": st.fixed_dictionaries(
        {"granules": extents}, optional={"read": st.sampled_from(["rows", "chunks"])}
    ),
    "updates": st.fixed_dictionaries(
        {"change": st.sampled_from(["append", "every_second_row", "every_second_element"])},
        optional={
            "rows": st.integers(1, 2),
            "read": st.sampled_from(["all", "second_half", "every_second_element"]),
        },
    ),
}
#: Workloads whose arrays may differ, and be cut by maps.
LISTED = ("hyperslab", "datasets", "slices", "updates")
#: Maps that were drawn, by the names of the files that they would be in.
HELD = {}


@pytest.fixture(scope="module", autouse=True)
def _maps_without_files():
    usual = MapFile.map.fget
    with pytest.MonkeyPatch.context() as patch:
        found = property(lambda of: HELD[of.file] if of.file in HELD else usual(of))
        patch.setattr(MapFile, "map", found)
        yield


@st.composite
def map_files(draw, shape, ranks, *, holes):
    """A map that deals stretches of an array to processes, of which some may have nothing."""
    size = math.prod(shape)
    ends = sorted(draw(st.sets(st.integers(1, size - 1), max_size=6))) if size > 1 else []
    begins, lengths = np.array([0, *ends]), np.diff([0, *ends, size])
    processes = ranks + draw(st.integers(0, 2))
    owner = st.integers(-1 if holes else 0, processes - 1)
    first = draw(st.integers(0, processes - 1))
    owners = np.array([first, *(draw(owner) for _ in ends)])
    mine = [np.flatnonzero(owners == process) for process in range(processes)]
    order = np.concatenate(mine)
    name = f"map {len(HELD)}"
    HELD[name] = DecompositionMap(
        tuple(shape), np.array([len(one) for one in mine]), begins[order], lengths[order]
    )
    return {"file": name, "holes": "allow" if holes else "refuse"}


@st.composite
def kinds(draw, name, ranks):
    """The keys of arrays of one kind: a shape, and a map that may cut it."""
    shape = draw(shapes(*AXES[name]))
    if name not in LISTED or draw(st.booleans()):
        keys = ["shape", "shape_per_rank"] if name in ("hyperslab", "slices", "updates") else []
        found = {draw(st.sampled_from(keys or ["shape"])): shape}
        if name == "hyperslab":
            found["decomposition"] = draw(st.sampled_from(["slab", "block"]))
        return found
    holes = draw(st.booleans())
    of_map = draw(map_files(shape[1:] if name == "updates" else shape, ranks, holes=holes))
    return {"decomposition": of_map} | ({"shape": shape} if name == "updates" else {})


@st.composite
def arrays_of_case(draw, name, ranks):
    """The keys of arrays of one kind, or of a list."""
    if name not in LISTED:
        return draw(kinds(name, ranks))
    if draw(st.booleans()):
        return {"datasets": draw(few), **draw(kinds(name, ranks))}
    entries = [
        {"name": f"a{n}", "count": draw(few), "dtype": draw(st.sampled_from(["float64", "int16"]))}
        | draw(kinds(name, ranks))
        for n in range(draw(few))
    ]
    return {"datasets": entries}


@st.composite
def cases(draw, *, exchanged=False, names=tuple(PARAMETERS)):
    """A case of one of some workloads, and a number of ranks."""
    names = sorted({*names} - ({"startup"} if exchanged else set()))
    name, ranks = draw(st.sampled_from(names)), draw(RANKS)
    plain = {"backend": "posix", "dtype": "int16", "workload": name, **draw(PARAMETERS[name])}
    plain |= draw(arrays_of_case(name, ranks))
    if name == "startup":
        return made(plain), ranks
    files = draw(st.sampled_from(["one", "groups"] + ["per_rank"] * (not exchanged)))
    if files != "per_rank":
        plain["transfer"] = draw(st.sampled_from(["independent", "collective"]))
        plain["arrays"] = draw(st.sampled_from(["shared"] + ["per_rank"] * (not exchanged)))
    if plain.get("arrays") == "shared" and (exchanged or draw(st.booleans())):
        plain |= draw(exchanges())
    if isinstance(plain.get("decomposition"), str) and "shape" in plain and draw(st.booleans()):
        plain |= draw(regions(plain["shape"]))
        if plain.get("arrays") == "shared":
            plain["read_decomposition"] = draw(st.sampled_from(["slab", "block"]))
    if files != "groups":
        return made(plain | {"files": files}), ranks
    count = draw(st.integers(1, ranks))
    alone = count == ranks and plain["transfer"] == "independent"
    groups = FileGroups(count, ranks, alone=alone)
    return replace(made(plain), files=GroupedFiles(count=count, groups=groups)), ranks


@st.composite
def exchanges(draw):
    """The keys of data that go through writers."""
    way = draw(st.sampled_from(["gather", "box", "chunk_owner"]))
    writers = draw(st.sampled_from(["all", {"count": 1}]))
    chunks = {"chunks": [draw(few)]} if way == "chunk_owner" else {}
    return {"rearranger": way, "writers": writers, **chunks}


@st.composite
def regions(draw, shape):
    """The keys of a part of arrays to read."""
    start = [draw(st.integers(0, n - 1)) for n in shape]
    extent = [draw(st.integers(1, n - a)) for n, a in zip(shape, start, strict=True)]
    return {"read_start": start, "read_shape": extent}


def made(plain):
    return msgspec.convert(plain, workload(plain["workload"]).parameters_type)


def declared(p, ranks):
    """Return the arrays of a case that is possible."""
    pattern, backend = workload(p.workload), backend_class(p.backend)
    assume(pattern.refuse(p, ranks, backend) is None)
    arrays = pattern.arrays(p, ranks)
    assume(refuse_writers(p, arrays, backend) is None)
    return arrays


def in_all_files(p, arrays, ranks):
    """Return the arrays of each file."""
    groups = p.groups(ranks)
    return [arrays.specs(groups.group(index).start) for index in range(groups.files)]


def grown(spec):
    """Return the shape of a stored array with the rows that are appended."""
    return (spec.shape[0] + spec.growth, *spec.shape[1:])


def kind(spec):
    """What arrays of a kind have in common."""
    return (spec.shape, spec.chunks, spec.dtype, spec.owner is None)


def changes(p, ranks):
    """Return the arrays with the calls that change them, where there are any."""
    return [changes_of(p, ranks)] if p.workload == "updates" else []


@given(cases())
def test_kinds_bytes_and_the_longest_call_are_those_of_the_arrays(case):
    p, ranks = case
    arrays = declared(p, ranks)
    everything = [spec for specs in in_all_files(p, arrays, ranks) for spec in specs]
    stored = sum(math.prod(grown(spec)) * spec.itemsize for spec in everything)
    writes = [access for rank in range(ranks) for access in arrays.writes(rank)]
    moved = sum(access.nbytes for access in writes)
    if getattr(p, "change", "") == "append":
        moved += sum(a.nbytes for more in changes(p, ranks) for r in range(ranks)
                     for a in more.writes(r))  # fmt: skip
    volume = arrays.volume
    assert volume.arrays == len(everything)
    assert volume.nbytes == (stored if p.exchanges else moved)
    assert volume.disk_bytes <= stored
    if not any(family.irregular for family in arrays.families):
        assert volume.nbytes == volume.disk_bytes == stored
    assert {kind(spec) for spec in arrays.kinds} <= {kind(spec) for spec in everything}
    listed = arrays.specs(0)
    assert {kind(spec) for spec in listed} <= {kind(spec) for spec in arrays.kinds}
    if listed and listed[0].number == 0:
        assert kind(arrays.kinds[0]) == kind(listed[0])
    assert max(family.largest_call for family in arrays.families) == max(
        access.nbytes for access in writes
    )


@given(cases(), st.sampled_from(["hdf5", "npy", "zarr"]))
def test_the_files_of_a_plan_are_those_of_all_arrays(case, backend):
    p, ranks = case
    everything = [spec for specs in in_all_files(p, declared(p, ranks), ranks) for spec in specs]
    kind, options = backend_class(backend), backend_class(backend).options_type()
    files = p.groups(ranks).files
    if kind.file_per != "store":
        files += len(everything)
    if kind.file_per == "chunk":
        for spec in everything:
            unit = kind.storage(spec, options).unit or grown(spec)
            files += math.prod(-(-n // c) for n, c in zip(grown(spec), unit, strict=True))
    cost = cost_of(Case(replace(p, backend=backend), options), ranks, 2**20)
    assert (cost.files, cost.arrays) == (files, len(everything))


def marked(times, box, origin=None):
    """Count the elements of a box, or of stretches, in an array of its file or in the whole one."""
    if isinstance(box, Stretches):
        before = origin[0] * math.prod(times.shape[1:]) if origin else 0
        for offset, length in zip(box.offsets + before, box.lengths, strict=True):
            times.reshape(-1)[offset : offset + length] += 1
    else:
        start = tuple(map(sum, zip(box.start, origin or (0,) * len(box.start), strict=True)))
        times[Box(start, box.shape, box.stride).slices] += 1


def moved(accesses, held=None):
    """Count how often each element of each stored array is moved, by the array's name."""
    held = {} if held is None else held
    for access in accesses:
        times = held.setdefault(access.spec.name, np.zeros(access.spec.shape, int))
        marked(times, access.box)
    return held


def there(family, shape):
    """Return which elements of an array of some shape ranks have: all, or what a map gives."""
    if not family.irregular:
        return np.ones(shape, int)
    of = family.cut.map
    held = np.zeros(of.shape, int)
    for offset, length in zip(of.offsets, of.lengths, strict=True):
        held.reshape(-1)[offset : offset + length] = 1
    return np.broadcast_to(held, shape)


@given(cases())
def test_files_have_each_element_once_and_it_is_written_once(case):
    """Arrays of all files are the logical arrays; names and places in a file are not shared."""
    p, ranks = case
    arrays, groups, stored = declared(p, ranks), p.groups(ranks), {}
    for index, specs in enumerate(in_all_files(p, arrays, ranks)):
        assert len({spec.name for spec in specs}) == len(specs)
        ends = [0]
        for spec in specs:
            assert spec.offset == ends[-1]
            ends.append(spec.offset + math.prod(grown(spec)) * spec.itemsize)
            times = stored.setdefault(spec.number, np.zeros(spec.logical_shape, int))
            times[Box(spec.origin, grown(spec)).slices] += 1
        held = {}
        for rank in groups.group(index):
            moved(arrays.writes(rank), held)
        assert held.keys() == {spec.name for spec in specs}
        for family, some in arrays.by_family(groups.group(index).start):
            for spec in some:
                assert (held[spec.name] == there(family, spec.shape)).all()
    assert all((times == 1).all() for times in stored.values())


def in_order_of_ranks(of, ranks):
    """Return the elements of a map's array that each rank has, one rank after the other."""
    runs = [np.arange(a, a + n) for a, n in zip(of.offsets, of.lengths, strict=True)]
    ends = [0, *np.cumsum(of.counts)]
    bounds = [ends[rank * of.processes // ranks] for rank in range(ranks + 1)]
    each = [np.concatenate([np.empty(0, int), *runs[a:b]]) for a, b in pairwise(bounds)]
    return np.concatenate([np.unique(elements) for elements in each])


def read_by_hand(family, shape, ranks):
    """Return how often each element of a logical array is to be read."""
    p = family.parameters
    if p.workload == "startup":
        return np.full(shape, ranks)
    if p.workload == "updates":
        return there(family, shape) * selected(p.read, (0,) * len(shape), shape, shape[0], p.rows)
    boxes = []
    if p.workload == "slices":
        boxes = wanted(p)
    elif getattr(p, "read_start", None):
        lead = () if family.steps is None else (0,)
        boxes = [Box((*lead, *p.read_start), (*shape[: len(lead)], *p.read_shape))]
    if not boxes:
        return there(family, shape)
    by_rank = isinstance(family.cut, Consecutive)
    times = np.zeros(family.cut.map.shape if by_rank else shape, int)
    for box in boxes:
        times[box.slices] += 1
    return times.reshape(-1)[in_order_of_ranks(family.cut.map, ranks)] if by_rank else times


@given(cases())
def test_what_is_to_be_read_is_read_once_by_all_ranks_together(case):
    p, ranks = case
    arrays, read = declared(p, ranks), {}
    for rank in range(ranks):
        for access in arrays.reads(rank):
            shape, origin = access.spec.logical_shape, access.spec.origin
            times = read.setdefault(access.spec.number, np.zeros(shape, int))
            marked(times, access.box, origin)
    assert len(read) == sum(family.count for family in arrays.families)
    for family in arrays.families:
        for number in range(family.first, family.first + family.count):
            expected = read_by_hand(family, read[number].shape, ranks)
            assert (read[number] == expected).all(), (family.parameters, number)


@given(cases(names=["updates"]))
def test_the_elements_that_are_to_change_are_changed_once(case):
    p, ranks = case
    declared(p, ranks)
    (arrays,), changed = changes(p, ranks), {}
    for rank in range(ranks):
        for access in arrays.writes(rank):
            shape, origin = access.spec.logical_shape, access.spec.origin
            times = changed.setdefault(access.spec.number, np.zeros(shape, int))
            marked(times, access.box, origin)
    for family in arrays.families:
        for number in range(family.first, family.first + family.count):
            shape = changed[number].shape
            mask = changed_elements(p)((0,) * len(shape), shape, shape)
            assert (changed[number] == there(family, shape) * mask).all(), family.parameters


@given(cases())
def test_ranks_that_share_arrays_call_equally_often_in_one_order(case):
    p, ranks = case
    arrays, groups = declared(p, ranks), p.groups(ranks)
    if p.workload == "startup" or not (p.transfer == "collective" or p.shares_arrays):
        return
    calls = [arrays.writes, arrays.reads, *(more.writes for more in changes(p, ranks))]
    for index in range(groups.files):
        for accesses in calls:
            names = [[a.spec.name for a in accesses(rank)] for rank in groups.group(index)]
            assert all(some == names[0] for some in names)


@given(cases(exchanged=True))
def test_writers_move_what_the_ranks_of_their_file_call_for_and_nothing_twice(case):
    p, ranks = case
    arrays, groups = declared(p, ranks), p.groups(ranks)
    moving = [(arrays, False), (arrays, True), *((more, False) for more in changes(p, ranks))]
    for (declaration, reads), index in product(moving, range(groups.files)):
        members = groups.group(index)
        writers = WriterRanks.of(p.writers, Topology.even(len(members), 1))
        for family, specs in declaration.by_family(members.start):
            for spec in specs:
                calls = [list(family.moved(rank, spec, reads=reads)) for rank in members]
                for boxes in zip(*calls, strict=True):
                    check_pieces(p, spec, family, writers, boxes, reads=reads)


def check_pieces(p, spec, family, writers, boxes, *, reads):
    """Compare what writers move with one call of each rank, without the axis of time steps.

    Of a map they write the elements that no process has, too. They read all of an array if ranks
    read any stretches of it.
    """
    axes = len(family.cut.whole)
    shape = grown(spec)[-axes:]
    unit = (spec.chunks if isinstance(spec.chunks, tuple) else spec.shape)[-axes:]
    placed = pieces_of_writers(p.rearranger, writers, boxes, shape, unit)
    called, done = np.zeros(shape, int), np.zeros(shape, int)
    for box in boxes:
        marked(called, box)
    for piece in (piece for some in placed.values() for piece in some):
        done[piece.box.slices] += 1
    assert (done[called > 0] > 0).all()
    if not (reads and any(isinstance(box, Stretches) for box in boxes)):
        assert (done[(called == 0) & (there(family, shape) > 0)] == 0).all()
    assert reads or done.max() <= 1


@st.composite
def maps(draw):
    """A map of a few processes, which may leave elements out and give elements to several."""
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    processes = draw(st.integers(1, 7))
    runs = [
        draw(
            st.lists(st.tuples(st.integers(0, math.prod(shape) - 1), st.integers(1, 4)), max_size=3)
        )
        for _ in range(processes)
    ]
    runs[0] = runs[0] or [(0, 1)]
    flat = [(a, min(n, math.prod(shape) - a)) for some in runs for a, n in some]
    return DecompositionMap(
        shape,
        np.array([len(some) for some in runs]),
        *(np.array(x) for x in zip(*flat, strict=True)),
    )


def owners_by_hand(n, parts, distribution):
    """Return which part each index along an axis belongs to."""
    index = np.arange(n)
    if distribution == "block":
        return index // -(-n // parts)
    return np.array([next(r for r in range(parts) if i < (r + 1) * n // parts) for i in index])


@given(
    shapes(1, 3),
    st.integers(1, 7),
    st.sampled_from(["slab", "block"]),
    st.sampled_from(["block", "balanced"]),
    st.sampled_from(["one-shared", "one-per_rank"]),
    st.none() | st.integers(1, 3),
)
def test_the_writer_of_each_element_and_the_edges_follow_from_the_definition(
    shape, ranks, decomposition, distribution, layout, steps
):
    p = made(
        {
            "backend": "posix",
            "workload": "hyperslab",
            "shape": shape,
            **keys_of(layout),
            "decomposition": decomposition,
            "distribution": distribution,
            "steps": steps,
        }
    )
    arrays = declared(p, ranks)
    grid = process_grid(ranks, len(shape), decomposition)
    by_axis = [owners_by_hand(*axis, distribution) for axis in zip(shape, grid, strict=True)]
    expected = np.ravel_multi_index(tuple(np.meshgrid(*by_axis, indexing="ij")), grid)
    found = np.full((steps or 1, *shape), -1)
    for rank in range(ranks):
        for access in arrays.writes(rank):
            start = access.spec.data_start(access.box)[-len(shape) :]
            step = access.box.start[0] if steps else 0
            box = Box((step, *start), (1, *access.box.shape[-len(shape) :]))
            found[box.slices] = rank
    assert (found == expected).all()
    (family,) = arrays.families
    edges = tuple(tuple((np.flatnonzero(np.diff(axis)) + 1).tolist()) for axis in by_axis)
    told = edges if steps is None else ((), *edges)
    assert family.writer_edges == (told if layout == "one-shared" else ())


@given(maps(), st.integers(1, 5), st.none() | st.integers(1, 3))
def test_ranks_move_the_elements_that_a_map_gives_to_their_processes(of, ranks, steps):
    assume(ranks <= of.processes)
    family = Family(parameters=made({"backend": "posix", "workload": "hyperslab"}), ranks=ranks,
                    cut=MapCut(of, ranks, "m"), name=lambda *_: "a", steps=steps,
                    block=lambda _: None)  # fmt: skip
    arrays = CaseArrays((family,))
    ends = np.cumsum(of.counts)
    total = 0
    for rank in range(ranks):
        first, last = (r * of.processes // ranks for r in (rank, rank + 1))
        mine = range(ends[first] - of.counts[first], ends[last - 1])
        wanted = np.zeros(math.prod(of.shape), bool)
        for number in mine:
            wanted[of.offsets[number] : of.offsets[number] + of.lengths[number]] = True
        times = moved(arrays.writes(rank))["a"].reshape(steps or 1, -1)
        assert (times == wanted).all()
        total += int(wanted.sum())
        assert arrays.reads(rank)[-1].box.size == wanted.sum()
    assert arrays.volume.nbytes == (steps or 1) * total * 4
    (spec,) = arrays.specs(0)
    assert (spec.shape[-len(of.shape) :], spec.chunks) == (of.shape, "contiguous")


def test_a_refusal_stays_the_same_for_every_case_of_a_sweep():
    """What is found out about parameters serves cases with other options; each is judged."""
    entry = {"workload": "hyperslab", "backend": "zarr", "shape": [8, 8], "chunks": [2, 2],
             "zarr": {"shards": [[4, 4], [3, 3]], "format": [2, 3]}}  # fmt: skip
    said = []
    for where, case in load_cases(entry).cases:
        with pytest.raises(ImpossibleCaseError) as refused:
            check_case(case, 3, where)
        said.append(str(refused.value))
    assert [text.partition("cases[0]: ")[2][:22] for text in said] == [
        "Zarr format 2 has no s", "Zarr shards of [4, 4] ", "Zarr format 2 has no s",
        "shards [3, 3] are not ",
    ]  # fmt: skip


def test_cases_of_a_comparison_have_the_same_work():
    kinds = workload("hyperslab").parameters_type
    one = kinds(backend="hdf5", shape=(4, 4), codec="gzip", level=3, transfer="collective")
    other = kinds(backend="zarr", shape=(4, 4), chunks=(2, 2))
    assert work_of(one) == work_of(other) != work_of(kinds(backend="hdf5", shape=(4, 5)))
    assert work_of(one, "transfer") != work_of(other, "transfer")
    options = backend_class("hdf5").options_type()
    assert Case(one, options).group == Case(other, backend_class("zarr").options_type()).group


def test_the_first_error_of_a_sweep_is_told_with_its_place():
    entry = {"workload": "hyperslab", "backend": "hdf5", "shape": [8, 8], "level": [3, "high"]}
    with pytest.raises(UserError, match=r"cases\[0\]\.level: .*it is 'high'"):
        from_data({"name": "x", "cases": [entry]}, "x.yaml")


def test_a_chunk_without_elements_is_refused_with_the_array_and_the_workload():
    p = HyperslabParameters(backend="hdf5", shape=(4, 3), dtype="float32")
    with pytest.raises(UserError, match=r"array a: a chunk of shape \[0, 3\] has no elements; wor"):
        make_spec(p, "a", (4, 3), number=0, offset=0, owner=None, block=(0, 3))


SKIPPED = [
    {"rearranger": "chunk_owner", "chunks": "contiguous"},
    {"rearranger": "box", "decomposition": {"file": "package:pffbench/maps/land.npz",
                                           "holes": "allow", "overlaps": "allow"}},
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(SKIPPED)))
def test_impossible_combinations_of_a_sweep_are_left_out_when_they_may_be(number):
    entry = {"workload": "hyperslab", "backend": "hdf5", "shape": [8, 8]} | SKIPPED[number]
    if "decomposition" in entry:
        del entry["shape"]
    usual = {"workload": "hyperslab", "backend": "hdf5", "shape": [8, 8]}
    plan = plan_cases(usual, entry, ranks=2, unsupported="skip")
    assert len(plan.cases) == len(plan.left_out) == 1
    with pytest.raises(UserError, match=r"needs a chunk shape|needs rearranger: none"):
        plan_cases(usual, entry, ranks=2)


@pytest.mark.parametrize("entry", [
    {"workload": "datasets", "shape": [4], "datasets": 2, "attributes": 1},
    {"workload": "hyperslab", "decomposition": {"file": "package:pffbench/maps/land.npz",
                                                "holes": "allow"}},
    {"workload": "startup", "shape": [4], "attributes": 1},
])  # fmt: skip
def test_what_a_format_cannot_do_at_all_goes_before_what_a_workload_needs_of_it(entry):
    """The remedy of the second reason would not help."""
    usual = {"workload": "hyperslab", "backend": "hdf5", "shape": [8, 8]}
    lacking = entry | {"backend": "blosc2", "files": "one"}
    ((_, reason),) = plan_cases(usual, lacking, ranks=2, unsupported="skip").left_out
    assert reason.startswith("backend blosc2 cannot do arrays: shared in files that ranks share")
