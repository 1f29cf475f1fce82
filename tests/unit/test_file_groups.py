"""Which ranks share a file."""

import pytest

from pffbench.case import Parameters
from pffbench.parallel.file_groups import FileGroups
from pffbench.workloads.hyperslab import HyperslabParameters


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


@pytest.mark.parametrize("layout", ["shared", "own", "file_per_process"])
def test_a_file_is_shared_by_all_ranks_or_by_none(layout):
    p: Parameters = HyperslabParameters(backend="posix", layout=layout)
    groups = p.groups(4)
    alone = layout == "file_per_process"
    assert (groups.files, groups.alone) == ((4, True) if alone else (1, False))
    assert [groups.owner(rank) for rank in range(4)] == [0, 1, 2, 3]
    assert [groups.keeps(rank) for rank in range(4)] == [True, alone, alone, alone]
    assert p.file_stem(groups.index(3)) == ("rank-000003" if alone else "shared")
