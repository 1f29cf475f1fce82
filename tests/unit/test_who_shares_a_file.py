"""Which ranks share a file."""

import msgspec
import numpy as np
import pytest

from pffbench.case import Parameters
from pffbench.errors import ImpossibleCaseError, UserError
from pffbench.geometry.groups import FileGroups
from pffbench.mpi.topology import Topology
from pffbench.workloads.hyperslab import HyperslabParameters
from pffbench.workloads.registry import workload
from plans import plan_cases
from sharing import keys_of


@pytest.mark.parametrize("ranks", [1, 3, 4, 7, 16])
def test_groups_are_blocks_of_consecutive_ranks_whose_sizes_differ_by_one(ranks):
    for files in range(1, ranks + 1):
        groups = FileGroups(files, ranks)
        blocks = [groups.group(index) for index in range(files)]
        assert [rank for block in blocks for rank in block] == list(range(ranks))
        sizes = {len(block) for block in blocks}
        assert max(sizes) - min(sizes) <= 1
        assert groups.largest == max(sizes)
        for index, block in enumerate(blocks):
            assert [groups.index(rank) for rank in block] == [index] * len(block)
            assert all(groups.members(rank) == block for rank in block)
            assert [groups.owner(rank) for rank in block] == list(range(len(block)))
            assert [groups.keeps(rank) for rank in block] == [rank == block[0] for rank in block]


@pytest.mark.parametrize("layout", ["one-shared", "one-per_rank", "per_rank"])
def test_a_file_is_shared_by_all_ranks_or_by_none(layout):
    p: Parameters = HyperslabParameters(backend="posix", **keys_of(layout))
    groups = p.groups(4)
    alone = layout == "per_rank"
    assert (groups.files, groups.alone) == ((4, True) if alone else (1, False))
    assert [groups.owner(rank) for rank in range(4)] == [0, 1, 2, 3]
    assert [groups.keeps(rank) for rank in range(4)] == [True, alone, alone, alone]
    assert p.file_stem(groups.index(3)) == ("rank-000003" if alone else "shared")


def planned(ranks, topology=None, unsupported="refuse", **case):
    """Return the plan of an experiment of one entry, and of no raw cases."""
    entry = {"workload": "hyperslab", "backend": "posix", **case}
    return plan_cases(entry, ranks=ranks, topology=topology, unsupported=unsupported)


def work(p, ranks):
    """Return the arrays of each rank's file, and its calls."""
    found = workload(p.workload).arrays(p, ranks)
    return [(found.specs(rank), found.writes(rank), found.reads(rank)) for rank in range(ranks)]


@pytest.mark.parametrize("ranks", [1, 3, 4, 7, 16])
@pytest.mark.parametrize("shape", [{"shape": [23, 4]}, {"shape_per_rank": [2, 3]}, {"shape": [2]}])
def test_one_group_is_one_file_and_a_group_for_each_rank_a_file_for_each(ranks, shape):
    """The same arrays, the same boxes and the same bytes, whatever the number of files."""
    group = shape | {"steps": 2}
    for arrays in ("shared", "per_rank"):
        for count, files in ((1, "one"), (ranks, "per_rank")):
            if ranks == 1 == count and files != "per_rank":
                continue  # one rank with its file is both
            (one,) = planned(ranks, files={"count": count}, arrays=arrays, **group).cases
            (other,) = planned(ranks, files=files, arrays=arrays, steps=2, **shape).cases
            assert work(one.parameters, ranks) == work(other.parameters, ranks)
            assert one.parameters.alone == other.parameters.alone
    counts = [{"count": n} for n in range(1, ranks + 1)]
    plan = planned(ranks, files=counts, arrays=["shared", "per_rank"], **group)
    assert len({plan.costs[case.id].nbytes for case in plan.cases}) == 1
    assert len({case.group for case in plan.cases}) == 1
    files = {case.parameters.files.count: plan.costs[case.id].files for case in plan.cases}
    assert files == {n: n for n in range(1, ranks + 1)}


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("distribution", ["block", "balanced"])
def test_the_arrays_of_all_files_cover_the_array_once(count, distribution):
    (case,) = planned(
        7, files={"count": count}, shape=[13, 4],
        distribution=distribution,
    ).cases  # fmt: skip
    written = np.zeros((13, 4), int)
    for rank, (_, writes, _) in enumerate(work(case.parameters, 7)):
        for access in writes:
            box, spec = access.box, access.spec
            assert all(b <= n for b, n in zip(box.stop, spec.shape, strict=True)) or not box.size
            if box.size:
                start = spec.data_start(box)
                assert start[0] == rank * 13 // 7 or distribution == "block"
                at = tuple(slice(a, a + n) for a, n in zip(start, box.shape, strict=True))
                written[at] += 1
    assert (written == 1).all()


def test_parts_that_are_no_box_together_are_refused_and_others_are_not():
    cut = {"shape": [8, 8], "decomposition": "block"}
    with pytest.raises(ImpossibleCaseError, match="parts that are no box together; use decompo"):
        planned(6, files={"count": 4}, **cut)
    for count in (1, 3, 6):
        assert planned(6, files={"count": count}, **cut).cases
    assert planned(6, files={"count": 4}, arrays="per_rank", **cut).cases


GROUPED = {"shape": [16, 8]}


@pytest.mark.parametrize(
    ("case", "topology", "said"),
    [
        (GROUPED | {"files": {}}, None, r"files: give per_node or count, one of the two"),
        (GROUPED | {"files": {"count": 5}}, None, r"files\.count is 5, but there are 4 ranks"),
        (GROUPED | {"files": {"count": 0}}, None, r"cases\[0\]\.files\.count"),
        (GROUPED | {"files": {"per_node": 3}}, Topology.even(4, 2),
         r"files\.per_node is 3, but a node has 2 ranks"),
        (GROUPED | {"files": {"per_node": 1}}, Topology.even(4, 3),
         r"files\.per_node needs equally many ranks on each node, and they are 1 to 2; use"),
        (GROUPED | {"files": {"per_node": 1}}, Topology(("a", "b") * 2, (0, 1) * 2),
         r"files\.per_node needs consecutive ranks on each node \(srun"),
        (GROUPED | {"files": {"count": 2}, "arrays": "alone"}, None, r"cases\[0\]\.arrays"),
        (GROUPED | {"files": {"count": 2, "groups": {"files": 2, "ranks": 4}}}, None,
         r"cases\[0\]\.files.*groups"),
        (GROUPED | {"backend": "blosc2", "files": {"count": 2}}, None,
         "backend blosc2 cannot do arrays: shared in files that ranks share"),
        (GROUPED | {"files": {"count": 2}, "arrays": "per_rank", "read_decomposition": "block"},
         None, "read_decomposition cuts arrays that ranks share; with arrays: per_rank leave"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_one_sentence_when_planning(case, topology, said):
    with pytest.raises(UserError, match=said) as refused:
        planned(4, topology, **case)
    assert "\n" not in str(refused.value)


def test_a_sweep_over_sizes_leaves_out_groups_that_a_size_has_not():
    counts = [{"count": 2}, {"count": 8}]
    plan = planned(4, unsupported="skip", files=counts, **GROUPED)
    assert [case.parameters.files.count for case in plan.cases] == [2]
    assert plan.left_out[0][1] == "files.count is 8, but there are 4 ranks"


def test_the_name_of_a_case_does_not_depend_on_ranks_and_nodes():
    group = GROUPED | {"files": {"per_node": 2}}
    names = [planned(8, Topology.even(8, n), **group).cases[0].id for n in (1, 2, 4)]
    assert len(set(names)) == 1
    files = [planned(8, Topology.even(8, n), **group).costs[names[0]].files for n in (1, 2, 4)]
    assert files == [2, 4, 8]
    assert msgspec.to_builtins(planned(8, **group).cases[0].parameters.as_asked.files) == {
        "per_node": 2
    }
