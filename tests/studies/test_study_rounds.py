"""Rounds of `study_datasets`: what is defined and moved together."""

import pytest

from pffbench.workloads.registry import workload
from pffbench_studies.workloads.datasets import one_by_one
from pffbench_studies.workloads.datasets import rounds_of as study_rounds
from sharing import keys_of


def rounds_of(ranks, rank, layout, transfer, datasets):
    one = workload("study_datasets")
    p = one.parameters_type(backend="hdf5", datasets=datasets, shape=(8,), **keys_of(layout),
                            transfer=transfer, order="interleaved")  # fmt: skip
    arrays = one.arrays(p, ranks)
    specs, accesses = arrays.specs(rank), arrays.writes(rank)
    return specs, accesses, list(study_rounds(p, arrays, ranks)(specs, accesses))


@pytest.mark.parametrize("layout", ["per_rank", "one-per_rank", "one-shared"])
@pytest.mark.parametrize("transfer", ["independent", "collective"])
@pytest.mark.parametrize(("ranks", "datasets"), [(1, 4), (3, 7), (4, 2)])
def test_every_array_and_access_is_in_one_round(layout, transfer, ranks, datasets):
    found = [rounds_of(ranks, rank, layout, transfer, datasets) for rank in range(ranks)]
    assert len({len(rounds) for _, _, rounds in found}) == 1  # phases are collective
    for specs, accesses, rounds in found:
        assert sorted(s.name for one in rounds for s in one.specs) == sorted(s.name for s in specs)
        assert [a for one in rounds for a in one.accesses] == sorted(
            accesses, key=lambda a: [a.spec in one.specs for one in rounds].index(True)
        )
        for one in rounds:
            assert {a.spec for a in one.accesses} <= set(one.specs)
            owners = [spec.owner for spec in one.specs]
            assert len(owners) == len(set(owners))  # one array of each owner


def test_shared_definitions_are_the_same_on_all_ranks():
    names = [
        [
            [s.name for s in one.specs]
            for one in rounds_of(3, rank, "one-per_rank", "independent", 7)[2]
        ]
        for rank in range(3)
    ]
    assert names[0] == names[1] == names[2]


def test_a_rank_without_arrays_has_as_many_rounds():
    assert [list(one.specs) for one in one_by_one(2)([], [])] == [[], []]
