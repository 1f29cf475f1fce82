"""`pffbench compare` on real runs, whose truth are the delays of `null`."""

from __future__ import annotations

import csv

import pytest

import launch

pytestmark = pytest.mark.parallel

BASE = 0.1


def a_run(directory, delay, ranks=None):
    """Make a run, of one rank: more wait for each other as long as other work here lets them.

    Then a phase may be below resolution, and the run says of itself that it cannot be compared.
    """
    directory.mkdir()
    case = {
        "workload": "hyperslab", "backend": "null", "shape_per_rank": [4, 8],
        "null": {"delays": {"write": delay, "read": BASE}},
    }  # fmt: skip
    done = launch.run_experiment(directory, ranks, repetitions=10, cases=[case])
    assert done.status == 0, done.said
    return done.out


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One run, the same again, and one that takes four times as long to write."""
    at = tmp_path_factory.mktemp("runs")
    return [a_run(at / name, delay) for name, delay in
            (("base", BASE), ("same", BASE), ("slow", 4 * BASE))]  # fmt: skip


def compare(*arguments, cwd):
    return launch.pffbench_here("compare", *arguments, cwd=cwd)


def test_a_planted_slowdown_ends_with_status_1(runs, tmp_path):
    base, _, slow = runs
    done = compare(
        base, slow, "--across", "null.delays", "--fail-if-slower", "5%", "--out", "out",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.status == 1, done.said
    with (tmp_path / "out/compare.csv").open() as file:
        rows = {row["heading"]: row for row in csv.DictReader(file)}
    write, read = rows["write and close"], rows["read, page cache"]
    assert (write["word"], write["mostly_in"]) == ("slower", "write")
    # Reads sleep as long in both runs; how much other work stretches their sleep is left open.
    assert float(write["low"]) > max(1.2, float(read["low"]))


def test_the_same_again_passes(runs, tmp_path):
    base, same, _ = runs
    # Half of what is planted above: a loaded machine does stretch a sleep of 0.1 s.
    done = compare(base, same, "--fail-if-slower", "50%", cwd=tmp_path)
    assert done.status in (0, 4), done.said  # what else runs here may leave it open
    assert done.stdout.startswith(("PASSED: ", "UNDECIDED: "))


def test_other_delays_are_other_settings(runs, tmp_path):
    base, _, slow = runs
    done = compare(base, slow, "--fail-if-slower", "5%", cwd=tmp_path)
    assert done.status == 2
    assert "the runs have no case in common" in " ".join(done.stdout.split())
    assert "different settings: null.delays" in " ".join(done.stdout.split())


@pytest.mark.full
def test_another_number_of_ranks_is_not_comparable(runs, tmp_path):
    done = compare(runs[0], a_run(tmp_path / "more", BASE, ranks=3), cwd=tmp_path)
    assert done.status == 0
    assert "nothing is comparable: 1 and 3 ranks" in " ".join(done.stdout.split())
