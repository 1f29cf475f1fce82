"""`pffbench compare --baseline`: each night is compared with the first nights that passed."""

import os

import numpy as np
import pytest

from pffbench.cli import main
from timed_runs import Maker


@pytest.fixture
def make(tmp_path):
    """Makes runs of equal programs, or slower ones.

    Their starts differ by 5 % and their repetitions by 8 %.
    """
    generator = np.random.default_rng(31)
    maker = Maker(tmp_path)

    def night(factor=1.0, seed=0):
        start = {}

        def took(case, phase):
            own = start.setdefault((case, phase), float(np.exp(generator.normal(0, 0.05))))
            return own * (1 if case.startswith("posix") else factor)

        return maker(factor=took, seed=seed, noise=0.08)

    return night


@pytest.fixture
def judged(tmp_path, capsys):
    """Judges a night of one run or more; returns the exit status and what was printed."""

    def judge(*runs, limit="20%", options=()):
        words = ["compare", "--baseline", tmp_path / "baseline", "--fail-if-slower", limit, *runs]
        with pytest.raises(SystemExit) as ended:
            main([*map(str, words), *options])
        told = capsys.readouterr()
        return ended.value.code, told.out + told.err

    return judge


def kept(tmp_path):
    return sorted(os.path.realpath(path) for path in (tmp_path / "baseline").iterdir())


@pytest.mark.full
def test_ten_equal_nights_of_three_runs_pass_and_a_slowdown_of_half_fails(tmp_path, make, judged):
    nights = [[make(seed=3 * n + k) for k in range(3)] for n in range(10)]
    statuses = [judged(*night)[0] for night in nights]
    assert statuses.count(0) >= 9
    assert set(statuses) <= {0, 4}
    first = [run for night in nights[:3] for run in night]
    assert kept(tmp_path) == sorted(map(str, first))
    slow = [[make(1.5, seed=3 * n + k) for k in range(3)] for n in range(3)]
    assert [judged(*night)[0] for night in slow] == [1] * 3
    assert kept(tmp_path) == sorted(map(str, first))


def test_the_first_night_begins_the_baseline_and_is_not_judged_again(tmp_path, make, judged):
    first = make()
    status, told = judged(first)
    assert status == 0
    assert "compared with nothing" in told
    assert "baseline: 1 run" in told
    status, told = judged(first)
    assert status == 0
    assert "in the baseline" in told
    (link,) = (tmp_path / "baseline").iterdir()
    assert link.is_symlink()
    assert kept(tmp_path) == [str(first)]


def test_a_slower_night_is_no_part_of_the_baseline(tmp_path, make, judged):
    first, slow = make(), make(3.0, 1)
    judged(first)
    status, told = judged(slow, options=["--out", str(tmp_path / "tables")])
    assert status == 1, told
    assert (tmp_path / "tables" / "compare.md").exists()
    assert kept(tmp_path) == [str(first)]


def test_a_night_on_which_nothing_is_decided_is_a_part(tmp_path, make, judged):
    nights = [make(seed=seed) for seed in range(2)]
    judged(nights[0])
    assert judged(nights[1], limit="1%")[0] == 4
    assert kept(tmp_path) == sorted(map(str, nights))


def test_a_baseline_that_is_gone_is_not_replaced(tmp_path, make, judged):
    (tmp_path / "baseline").mkdir()
    (tmp_path / "baseline" / "gone").symlink_to("../gone")
    status, told = judged(make())
    assert status == 2
    assert "baseline/gone is not a results directory" in told


@pytest.mark.parametrize(
    "change",
    [('"status": "finished"', '"status": "interrupted"'), ('"valid": true', '"valid": false')],
)
def test_only_a_run_that_is_valid_is_judged(tmp_path, make, judged, change):
    run = make()
    text = (run / "run.json").read_text()
    assert change[0] in text
    (run / "run.json").write_text(text.replace(*change))
    status, told = judged(run)
    assert status == 2
    assert "only a run that is finished and VALID" in told
    assert not (tmp_path / "baseline").exists()


@pytest.mark.parametrize(
    "words", [["--json", "--fail-if-slower", "5%"], [], ["--", "x", "--fail-if-slower", "5%"]]
)
def test_a_baseline_judges_one_night_by_a_gate(make, capsys, words):
    with pytest.raises(SystemExit) as ended:
        main(["compare", "--baseline", "b", str(make()), *words])
    assert ended.value.code == 2
    assert "--baseline judges the runs of a night" in capsys.readouterr().err
