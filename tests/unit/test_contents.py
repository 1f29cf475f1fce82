"""The arrays of a case: files have each element once, and a plan counts them without listing."""

import math

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
from pffbench.geometry.box import Box
from pffbench.geometry.cut import process_grid
from pffbench.geometry.groups import FileGroups
from pffbench.geometry.maps import DecompositionMap, MapCut
from pffbench.geometry.stretches import Stretches
from pffbench.workloads.arrays import CaseArrays, Family
from pffbench.workloads.hyperslab import HyperslabParameters
from pffbench.workloads.registry import workload
from pffbench.workloads.specs import make_spec
from plans import load_cases, plan_cases
from sharing import keys_of, word_of

LAYOUTS = ("one-shared", "one-per_rank", "per_rank")
extents = st.integers(1, 9)


def shapes(least, most):
    return st.lists(extents, min_size=least, max_size=most)


PARAMETERS = {
    "hyperslab": st.fixed_dictionaries(
        {"shape": shapes(1, 3), "datasets": st.integers(1, 2)},
        optional={
            "decomposition": st.sampled_from(["slab", "pencil", "block"]),
            "distribution": st.sampled_from(["block", "balanced"]),
            "cut_unit": shapes(2, 2),
            "steps": st.integers(1, 3),
            "chunks": st.just("rank_part"),
        },
    ),
    "datasets": st.fixed_dictionaries(
        {"shape": shapes(1, 2), "datasets": st.integers(1, 9)},
        optional={"transfer": st.just("collective")},
    ),
    "startup": st.fixed_dictionaries(
        {"shape": shapes(1, 3), "datasets": st.integers(1, 9)},
        optional={"strategy": st.sampled_from(["every_rank", "root_bcast"])},
    ),
    "slices": st.one_of(
        st.fixed_dictionaries(
            {given: shapes(3, 3), "axis": st.integers(0, 2)}, optional={"chunks": shapes(3, 3)}
        )
        for given in ("shape", "shape_per_rank")
    ),
    "chunk_cache": st.fixed_dictionaries(
        {"shape": shapes(2, 3), "granules": st.integers(1, 9)},
        optional={"read": st.sampled_from(["rows", "chunks"])},
    ),
    "updates": st.fixed_dictionaries(
        {"shape": shapes(2, 3), "change": st.sampled_from(["append", "every_second_row"])},
        optional={"rows": st.integers(1, 2), "read": st.sampled_from(["all", "first_half"])},
    ),
}


KINDS_OF_A_LIST = st.lists(
    st.fixed_dictionaries(
        {"shape": shapes(1, 3), "count": st.integers(1, 2)},
        optional={
            "dtype": st.sampled_from(["float64", "int16"]),
            "decomposition": st.sampled_from(["slab", "block"]),
        },
    ),
    min_size=1, max_size=3,
).map(lambda kinds: [{"name": f"a{n}", **kind} for n, kind in enumerate(kinds)])  # fmt: skip


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


@st.composite
def cases(draw):
    """A case of any workload: lists, groups of ranks, writers, and other parts to read, too."""
    name = draw(st.sampled_from(sorted(PARAMETERS)))
    ranks = draw(st.integers(1, 7))
    plain = {"backend": "posix", "dtype": "int16", "workload": name, **draw(PARAMETERS[name])}
    transfer = draw(st.sampled_from(["independent", "collective"]))
    grouped = name != "startup" and draw(st.booleans())
    if name == "hyperslab" and draw(st.booleans()):
        plain["datasets"] = draw(KINDS_OF_A_LIST)
        del plain["shape"]
    elif name == "hyperslab" and draw(st.booleans()):
        writers = {"count": draw(st.integers(1, ranks))}
        return made(plain | {"rearranger": "gather", "writers": writers}), ranks
    elif name == "hyperslab" and draw(st.booleans()):
        region = {"read_decomposition": "slab", "read_start": [0] * len(plain["shape"])}
        return made(plain | region), ranks
    if grouped:
        files = draw(st.integers(1, ranks))
        groups = FileGroups(files, ranks, alone=files == ranks)
        grouped = GroupedFiles(count=files, groups=groups)
        plain |= {"arrays": draw(st.sampled_from(["shared", "per_rank"]))}
        return replace(made(plain), files=grouped), ranks
    else:
        plain |= keys_of(draw(st.sampled_from(LAYOUTS)))
        if word_of(plain) != "per_rank":
            plain["transfer"] = transfer
    return made(plain), ranks


def made(plain):
    return msgspec.convert(plain, workload(plain["workload"]).parameters_type)


def declared(p, ranks):
    """Return the arrays of a case that is possible."""
    pattern = workload(p.workload)
    assume(pattern.refuse(p, ranks, backend_class(p.backend)) is None)
    return pattern.arrays(p, ranks)


def in_all_files(p, arrays, ranks):
    """Return the arrays of each file."""
    groups = p.groups(ranks)
    return [arrays.specs(groups.group(index).start) for index in range(groups.files)]


def kind(spec):
    """What arrays of a kind have in common."""
    return (spec.shape, spec.chunks, spec.dtype, spec.owner is None)


@given(cases())
def test_kinds_bytes_and_the_longest_call_are_those_of_the_arrays(case):
    p, ranks = case
    arrays = declared(p, ranks)
    everything = [spec for specs in in_all_files(p, arrays, ranks) for spec in specs]
    grown = sum(f.stored_bytes(spec) - spec.nbytes for f in arrays.families for spec in everything)
    volume, kinds = arrays.volume, arrays.kinds
    assert volume.arrays == len(everything)
    assert volume.nbytes == volume.disk_bytes == sum(spec.nbytes for spec in everything) + grown
    assert {kind(spec) for spec in kinds} <= {kind(spec) for spec in everything}
    listed = arrays.specs(0)
    assert {kind(spec) for spec in listed} <= {kind(spec) for spec in kinds}
    assert not listed or kind(kinds[0]) == kind(listed[0])
    calls = [a.nbytes for rank in range(ranks) for a in arrays.writes(rank)]
    assert max(family.largest_call for family in arrays.families) == max(calls)


def moved(accesses, held=None):
    """Count how often each element of each array is moved, by the array's name."""
    held = {} if held is None else held
    for access in accesses:
        times = held.setdefault(access.spec.name, np.zeros(access.spec.shape, int))
        if isinstance(access.box, Stretches):
            for offset, length in zip(access.box.offsets, access.box.lengths, strict=True):
                times.reshape(-1)[offset : offset + length] += 1
        else:
            times[access.box.slices] += 1
    return held


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
            rows = spec.shape[0] + spec.growth
            ends.append(spec.offset + rows * spec.nbytes // spec.shape[0])
            times = stored.setdefault(spec.number, np.zeros(spec.logical_shape, int))
            shape = (rows, *spec.shape[1:])
            times[
                tuple(map(slice, spec.origin, map(sum, zip(spec.origin, shape, strict=True))))
            ] += 1
        held = {}
        for rank in groups.group(index):
            moved(arrays.writes(rank), held)
        assert held.keys() == {spec.name for spec in specs}
        assert all((times == 1).all() for times in held.values())
    assert all((times == 1).all() for times in stored.values())


@given(cases())
def test_ranks_that_share_arrays_call_equally_often_in_one_order(case):
    p, ranks = case
    arrays, groups = declared(p, ranks), p.groups(ranks)
    for index in range(groups.files):
        for accesses in (arrays.writes, arrays.reads):
            calls = [[a.spec.name for a in accesses(rank)] for rank in groups.group(index)]
            if p.workload != "startup" and ("collective" in p.transfer or p.shares_arrays):
                assert all(names == calls[0] for names in calls)


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


@given(shapes(1, 3), st.integers(1, 6), st.data())
def test_the_region_that_is_read_is_read_once(shape, ranks, data):
    start = [data.draw(st.integers(0, n - 1)) for n in shape]
    extent = [data.draw(st.integers(1, n - a)) for n, a in zip(shape, start, strict=True)]
    p = made({"backend": "posix", "workload": "hyperslab", "shape": shape, "read_start": start,
              "read_shape": extent, "read_decomposition": "block"})  # fmt: skip
    arrays = declared(p, ranks)
    assert arrays.reads_elsewhere
    times = moved([access for rank in range(ranks) for access in arrays.reads(rank)])["array_000"]
    inside = tuple(slice(a, a + n) for a, n in zip(start, extent, strict=True))
    assert times.sum() == math.prod(extent)
    assert (times[inside] == 1).all()


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
