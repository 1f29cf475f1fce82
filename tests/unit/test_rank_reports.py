"""What ranks say in words, joined on its way to rank 0."""

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from pffbench.backends.hints import FileHints, Hint
from pffbench.record.gather import RankReports
from pffbench.workloads.repetition import Observed

texts = st.sampled_from(["independent", "collective", "no_collective"])
observations = st.builds(
    Observed,
    mismatches=st.lists(st.sampled_from(["at [0]", "at [1]"]), max_size=5),
    facts=st.dictionaries(st.sampled_from(["mode", "cause"]), texts),
    counts=st.dictionaries(st.just(("write", "stored_bytes")), st.integers(0, 9)),
    remarks=st.lists(texts, max_size=2),
    hints=st.lists(st.sampled_from([FileHints((Hint("a", "1"),)), FileHints(())]), max_size=2),
)


def joined(told):
    """Join as a tree does: neighbours first."""
    while len(told) > 1:
        told = [reduce(RankReports.__add__, told[i : i + 2]) for i in range(0, len(told), 2)]
    return told[0]


@given(st.lists(observations, min_size=1, max_size=9))
def test_it_does_not_matter_who_joins_what(observed):
    told = [RankReports.of(rank, one) for rank, one in enumerate(observed)]
    found = joined(told)
    assert found == reduce(RankReports.__add__, told)
    said = [f"rank {rank}: {m}" for rank, one in enumerate(observed) for m in one.mismatches[:3]]
    assert list(found.mismatches) == said
    assert len(said) + found.unsaid == sum(len(one.mismatches) for one in observed)
    for key, answers in found.facts.items():
        assert answers == {one.facts[key] for one in observed if key in one.facts}
    for key, (total, largest) in found.counts.items():
        amounts = [one.counts[key] for one in observed if key in one.counts]
        assert (total, largest) == (sum(amounts), max(amounts))
    assert set(found.hints) == {hints for one in observed for hints in one.hints}
    assert set(found.remarks) == {text for one in observed for text in one.remarks}
    assert len(set(found.remarks)) == len(found.remarks)


def test_a_thousand_ranks_that_read_wrong_data_say_no_more_than_a_few():
    wrong = Observed(mismatches=["a", "b", "c", "d"])
    found = joined([RankReports.of(rank, wrong) for rank in range(1000)])
    assert len(found.mismatches) == 30
    assert found.all_mismatches[-1] == "and 3970 mismatches more"
    assert found.mismatches[3] == "rank 1: a"


def test_answers_that_differ_are_all_told():
    ranks = [Observed(facts={"mode": mode}) for mode in ("b", "a", "b")]
    assert joined([RankReports.of(rank, one) for rank, one in enumerate(ranks)]).united_facts == {
        "mode": "a | b"
    }
