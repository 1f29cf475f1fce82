"""The sentence on the best number of writer ranks, from times whose truth is known."""

import re

import numpy as np

from drawn_runs import a_case, timed_run
from pffbench.summary.best_number import best_number_lines
from pffbench.summary.export import write_summary
from pffbench.summary.summary import summarise

MIB = 2**20
ALONE, FEW, MORE = {}, {"per_node": 1}, {"per_node": 2}
ONE, TWO, EACH = "1 writer per node (box)", "2 writers per node (box)", "each rank for itself"


def a_run_of(directory, law, sizes=(16,), noise=0.02, seed=0, **experiment):
    """Write a run of 20 repetitions; `law` maps a size in MiB to the seconds of each way."""
    random = np.random.default_rng(seed)
    cases, seconds = [], {}
    for size in sizes:
        for number, (way, time) in enumerate(law(size)):
            told = {"rearrange": "box", "writers": way} if way else {"rearrange": "none"}
            name, entry = a_case("hdf5", shape=[size, 2**18], **told)
            name = f"hdf5.hyperslab.shared.independent.{size}.{number}"
            entry |= {"group": f"hyperslab.shared.{size}", "cost": {"nbytes": size * MIB}}
            cases.append((name, entry))
            times = time * np.exp(noise * random.standard_normal((2, 20)))
            seconds[name] = (times[0], times[1])
    return timed_run(directory, seconds, cases, experiment={"repetitions": 20} | experiment)


def lines(directory):
    return list(best_number_lines(summarise(directory)))


def test_the_best_number_is_told_with_the_ratio_to_the_next_and_its_interval(tmp_path):
    run = a_run_of(tmp_path, lambda _: [(ALONE, 4.0), (FEW, 1.0), (MORE, 2.0)])
    for line, total in zip(lines(run), ("writing", "reading"), strict=True):
        found = re.fullmatch(
            rf"Writer ranks, hdf5 independent matched, {total}: {re.escape(ONE)} is best, "
            rf"{re.escape(TWO)} takes (\S+) times as long \[(\S+)–(\S+)\]", line,
        )  # fmt: skip
        assert found, line
        value, low, high = map(float, found.groups())
        assert low <= value <= high
        assert 1.9 < low <= 2 <= high < 2.1
    write_summary(summarise(run), run)
    assert (
        f"Writer ranks, hdf5 independent matched, writing: {ONE}"
        in (run / "summary.md").read_text()
    )


def test_sentences_of_cases_that_differ_in_more_name_it(tmp_path):
    cases, seconds = [], {}
    for number, (codec, way) in enumerate((c, w) for c in ("none", "gzip") for w in (ALONE, FEW)):
        told = {"rearrange": "box", "writers": way} if way else {"rearrange": "none"}
        _, entry = a_case("hdf5", shape=[16, 2**18], level=None, **told)
        entry["parameters"]["codec"] = codec
        cases.append((f"hdf5.{number}", entry | {"cost": {"nbytes": 16 * MIB}}))
        seconds[f"hdf5.{number}"] = (np.linspace(1, 1.01, 20),) * 2
    found = lines(timed_run(tmp_path, seconds, cases, experiment={"repetitions": 20}))
    assert [line.partition(": ")[0] for line in found] == [
        f"Writer ranks, hdf5 independent matched codec={codec}, {total}"
        for codec in ("none", "gzip") for total in ("writing", "reading")
    ]  # fmt: skip


def test_the_size_at_which_the_best_number_changes_is_told(tmp_path):
    """One writer takes as long as all ranks at 16 MiB: its time grows with the size."""

    def law(size):
        return [(ALONE, 0.4 * (size / 16) ** 0.5), (FEW, 0.4 * size / 16)]

    for seed in range(5):
        write, _ = lines(a_run_of(tmp_path / str(seed), law, (1, 4, 64, 256), seed=seed))
        (least,) = re.findall(rf"with 1 MiB {re.escape(ONE)} is best, {EACH} takes (\S+)", write)
        assert 3.8 < float(least) < 4.2
        assert f"with 256 MiB {EACH} is best" in write
        found = re.search(
            rf"; {re.escape(ONE)} and {EACH} cross between 4 MiB and 64 MiB, near (\S+) MiB", write
        )
        assert found, write
        assert 14 < float(found[1]) < 18


def test_a_size_where_nothing_is_shown_is_stepped_over(tmp_path):
    def law(size):
        return [(ALONE, 0.4 * (size / 16) ** 0.5), (FEW, 0.4 * size / 16)]

    write, _ = lines(a_run_of(tmp_path, law, (4, 16, 64)))
    assert "with 16 MiB" in write
    assert " cross between 4 MiB and 64 MiB, near " in write


def test_equal_numbers_of_writers_have_no_best_and_no_crossing(tmp_path):
    for seed in range(10):
        run = a_run_of(tmp_path / str(seed), lambda s: [(ALONE, s), (FEW, s)], (4, 64), seed=seed)
        for line in lines(run):
            assert " cross " not in line
            assert " is best" not in line
            assert line.count("are equally fast") == 2


def test_what_is_not_shown_names_no_winner(tmp_path):
    run = a_run_of(tmp_path, lambda _: [(ALONE, 1.0), (FEW, 1.02), (MORE, 3.0)], noise=0.3)
    for line in lines(run):
        assert " has the smallest median, not decided against " in line
        assert "is fastest" not in line
        assert TWO not in line


def test_ways_of_several_environments_are_compared_within_blocks(tmp_path):
    """The state of the machine is another one in each block, and the same for all ways."""
    machine = np.exp(np.random.default_rng(0).standard_normal(20))

    def law(_):
        return [(ALONE, 1.2 * machine), (FEW, machine)]

    alone = a_run_of(tmp_path / "alone", law)
    several = a_run_of(tmp_path / "several", law, environments=[{"name": "here"}])
    for line, other in zip(lines(alone), lines(several), strict=True):
        assert "not decided against" in line
        assert f"{ONE} is best, {EACH} takes " in other


def test_a_run_without_writers_has_no_sentence(tmp_path):
    assert lines(a_run_of(tmp_path, lambda _: [(ALONE, 1.0)], (4, 64))) == []


def test_the_best_number_of_files_is_told_over_all_layouts(tmp_path):
    """One file, two files, a file per rank and one writer: the same data in four layouts."""
    random = np.random.default_rng(3)
    told = [
        ({"layout": "shared"}, 2.0),
        ({"layout": "file_per_group", "group": {"count": 2}, "within": "own"}, 1.0),
        ({"layout": "file_per_process"}, 4.0),
        ({"layout": "shared", "rearrange": "box", "writers": {"count": 1}}, 3.0),
    ]
    cases, seconds = [], {}
    for number, (way, time) in enumerate(told):
        name, entry = a_case("hdf5", shape=[16, 2**18], **way)
        name = f"hdf5.hyperslab.{way['layout']}.independent.matched.{number:012d}"
        cases.append((name, entry | {"group": way["layout"], "cost": {"nbytes": 16 * MIB}}))
        times = time * np.exp(0.02 * random.standard_normal((2, 20)))
        seconds[name] = (times[0], times[1])
    run = timed_run(tmp_path, seconds, cases, experiment={"repetitions": 20})
    found = [line for line in lines(run) if line.startswith("Files, ")]
    assert len(found) == 2
    for line, total in zip(found, ("writing", "reading"), strict=True):
        assert re.fullmatch(
            rf"Files, hdf5 independent matched, {total}: 2 files \(own\) is best, "
            r"1 file \(shared\) takes \S+ times as long \[\S+–\S+\]", line,
        ), line  # fmt: skip


def test_no_sentence_on_files_without_files_of_groups(tmp_path):
    run = a_run_of(tmp_path, lambda _: [(ALONE, 4.0), (FEW, 1.0)])
    assert not [line for line in lines(run) if line.startswith("Files, ")]
