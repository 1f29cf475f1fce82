"""The benchmark scripts: what they make of pairs, tables and command lines. Nothing is timed."""

import json
from importlib import import_module
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
IOR_SAID = """\
IOR-4.0.0: MPI Coordinated Test of Parallel I/O
Results:

access  bw(MiB/s) IOPS Latency(s) block(KiB) xfer(KiB) open(s)  wr/rd(s)  close(s)  total(s)  iter
------
write  2551.68  42.98  0.046529  65536  65536  0.003601  0.046529  0.000011  0.050163  0
read  5479  85.93  0.019479  65536  65536  0.000066  0.023276  0.000009  0.023363  0

Summary of all tests:
write  2889.40  2551.68  2687.67  145.50  45.15  39.87  41.99  2.27  0.04776
"""


@pytest.fixture(autouse=True)
def _scripts_are_found(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.mark.parametrize("script", sorted(path.stem for path in BENCHMARKS.glob("*.py")))
def test_every_script_finds_what_it_imports(script):
    import_module(script)


def test_a_ratio_is_the_median_of_the_ratios_of_pairs():
    from rows import Ratio

    ratio = Ratio.of([(2, 1), (30, 10), (4, 1)])  # and not that of the medians, which is 4
    assert (ratio.middle, ratio.pairs) == (3, 3)
    assert ratio.low == 2
    assert ratio.high == 4
    assert Ratio.of([(1, 2)] * 5) == Ratio(0.5, 0.5, 0.5, 5)


@pytest.mark.parametrize("pairs", [[], [(0, 1)], [(1, 0)], [(1, -1)], [(float("nan"), 1)]])
def test_a_ratio_needs_pairs_of_numbers_above_0(pairs):
    from rows import Ratio

    with pytest.raises(ValueError, match="above 0"):
        Ratio.of(pairs)


def test_verdicts():
    from rows import Mark, Ratio, Row, not_measured

    least, most = Mark("at least", 0.97), Mark("at most", 1.03)
    ratio = Ratio(1.0, 0.9, 1.1, 5)
    assert Row("a", "b", least, ratio).verdict == "holds"
    assert Row("a", "b", most, Ratio(1.04, 1, 2, 5)).verdict == "misses"
    assert Row("a", "b", None, ratio).verdict == "told only"
    assert not_measured("a", "b", least, "no ior").verdict == "not measured (no ior)"


def test_tables_hold_all_rows():
    from rows import Mark, Ratio, Row, as_json, as_text, not_measured

    rows = [
        Row("one", "two", Mark("at most", 2), Ratio(1.5, 1, 2, 3), "1 s", "2 s", "a note"),
        not_measured("three", "four", None, "it is not there"),
    ]
    table = as_text(rows)
    for part in ("1.5 [1, 2]", "≤ 2", "one: a note", "not measured (it is not there)"):
        assert part in table
    told = json.loads(as_json(rows, {"cores": 2}))
    assert told["facts"] == {"cores": 2}
    assert [row["verdict"] for row in told["rows"]] == ["holds", rows[1].verdict]


def test_the_table_of_ior_is_read():
    from against_ior import read_table

    assert list(read_table(IOR_SAID)) == [("write", 0.046529), ("read", 0.023276)]


def test_the_experiments_against_ior_are_possible(tmp_path):
    import against_ior

    from pffbench.experiment.check import make_plan
    from pffbench.experiment.load import load_experiment

    for matches in (against_ior.WHOLE, against_ior.IN_STEPS):
        file = tmp_path / "experiment.yaml"
        file.write_text(against_ior.experiment(matches))
        loaded = load_experiment(str(file))
        for ranks in (1, 4):
            plan = make_plan(loaded, ranks)
            assert {case.id for case in plan.cases} == {case.id for _, case in loaded.cases}
        assert len(loaded.cases) == len(matches)


def test_without_ior_its_rows_say_so(tmp_path, monkeypatch):
    import against_ior
    from rows import Given

    monkeypatch.setenv("PATH", str(tmp_path))
    rows = against_ior.measure(Given(1, (), tmp_path))
    assert {row.verdict for row in rows} == {"not measured (ior is not on PATH)"}


@pytest.mark.parametrize("wrong", [["--pairs", "0"], ["--ranks", "x"], ["--only", "nothing"]])
def test_wrong_command_lines_are_refused(wrong, capsys):
    import perf

    with pytest.raises(SystemExit):
        perf.make_parser().parse_args(wrong)
    assert wrong[1] in capsys.readouterr().err
