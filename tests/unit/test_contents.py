"""What a plan knows of the arrays of a case without listing them is what listing them tells."""

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pffbench.backends.registry import backend_class
from pffbench.case import Case, work_of
from pffbench.errors import ImpossibleCaseError, UserError
from pffbench.experiment.check import check_case, make_plan
from pffbench.experiment.load import from_data
from pffbench.workloads.base import Workload, make_spec
from pffbench.workloads.hyperslab import HyperslabParameters
from pffbench.workloads.registry import workload

LAYOUTS = ("shared", "own", "file_per_process")
extents = st.integers(1, 9)


def shapes(least, most):
    return st.lists(extents, min_size=least, max_size=most)


PARAMETERS = {
    "hyperslab": st.fixed_dictionaries(
        {"shape": shapes(1, 3), "arrays": st.integers(1, 2)},
        optional={
            "decomposition": st.sampled_from(["slab", "pencil", "block"]),
            "distribution": st.sampled_from(["block", "balanced"]),
            "cut_unit": shapes(2, 2),
            "steps": st.integers(1, 3),
            "chunks": st.just("block"),
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
}


@st.composite
def cases(draw):
    name = draw(st.sampled_from(sorted(PARAMETERS)))
    ranks = draw(st.integers(1, 7))
    grouped = workload(name).groups_ranks and draw(st.booleans())
    plain = {"backend": "posix", "dtype": "int16", "workload": name, **draw(PARAMETERS[name])}
    if grouped:
        files = draw(st.integers(1, ranks))
        groups = {"files": files, "ranks": ranks, "alone": files == ranks}
        within = draw(st.sampled_from(["shared", "own"]))
        plain |= {"layout": "file_per_group", "within": within, "file_groups": groups}
    else:
        plain |= {"layout": draw(st.sampled_from(LAYOUTS))}
    return msgspec.convert(plain, workload(name).parameters_type), ranks


def in_all_files(p, ranks):
    """Return the arrays of all files, each once."""
    groups = p.groups(ranks)
    firsts = [groups.group(index).start for index in range(groups.files)]
    return [a for rank in firsts for a in workload(p.workload).arrays(p, ranks, rank)]


def kind(spec):
    """What arrays of a kind have in common."""
    return (spec.shape, spec.chunks, spec.dtype, spec.owner is None)


@given(cases())
def test_kinds_bytes_and_the_longest_call_are_those_of_the_arrays(case):
    p, ranks = case
    pattern = workload(p.workload)
    assume(pattern.check(p, ranks) is None)
    assume(pattern.refuse(p, backend_class(p.backend)) is None)
    everybody = range(ranks)
    arrays = in_all_files(p, ranks)
    volume, kinds = pattern.volume(p, ranks), pattern.kinds(p, ranks)
    assert (volume.arrays, volume.nbytes) == (len(arrays), sum(spec.nbytes for spec in arrays))
    assert {kind(spec) for spec in kinds} <= {kind(spec) for spec in arrays}
    listed = Workload.kinds(pattern, p, ranks)
    assert {kind(spec) for spec in listed} <= {kind(spec) for spec in kinds}
    assert not listed or kind(kinds[0]) == kind(pattern.arrays(p, ranks, 0)[0])
    calls = [a.nbytes for rank in everybody for a in pattern.writes(p, ranks, rank)]
    assert pattern.largest_write(p, ranks) == max(calls)


def test_a_refusal_stays_the_same_for_every_case_of_a_sweep():
    """What is found out about parameters serves cases with other options; each is judged."""
    entry = {"workload": "hyperslab", "backend": "zarr", "shape": [8, 8], "chunks": [2, 2],
             "zarr": {"shards": [[4, 4], [3, 3]], "format": [2, 3]}}  # fmt: skip
    loaded = from_data({"name": "x", "cases": [entry], "roofline": False}, "x.yaml")
    said = []
    for where, case in loaded.cases:
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
    {"rearrange": "chunk_owner", "chunks": "contiguous"},
    {"rearrange": "box", "decomposition": {"file": "package:pffbench/maps/land.npz",
                                           "holes": "allow", "overlaps": "allow"}},
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(SKIPPED)))
def test_impossible_combinations_of_a_sweep_are_left_out_when_they_may_be(number):
    entry = {"workload": "hyperslab", "backend": "hdf5", "shape": [8, 8]} | SKIPPED[number]
    if "decomposition" in entry:
        del entry["shape"]
    usual = {"workload": "hyperslab", "backend": "hdf5", "shape": [8, 8]}
    data = {"name": "x", "roofline": False, "impossible": "skip", "cases": [usual, entry]}
    plan = make_plan(from_data(data, "x.yaml"), ranks=2)
    assert len(plan.cases) == len(plan.left_out) == 1
    with pytest.raises(UserError, match=r"needs a chunk shape|needs rearrange: none"):
        make_plan(from_data(data | {"impossible": "refuse"}, "x.yaml"), ranks=2)
