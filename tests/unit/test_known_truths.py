"""Published regressions: each has its source, its place in the document, and a verdict."""

import os
import re
import subprocess
import sys

import pytest

from drawn_runs import a_case, timed_run
from launch import REPOSITORY
from pffbench.experiment.load import load_experiment
from pffbench.phases import ORDER, TOTALS

CONFIGS = REPOSITORY / "configs" / "issues"
FILES = sorted(CONFIGS.glob("*.yaml"))
VERDICTS = {"found", "explained", "refuted"}
PAGE = (REPOSITORY / "docs" / "evidence" / "known-truths.md").read_text(encoding="utf-8")
#: Cells of the rows of the table, by the name of the experiment, which is the last cell.
ROWS = {
    cells[-1].strip("`"): cells
    for line in PAGE.splitlines()
    if (cells := [cell.strip() for cell in line.strip("|").split("|")]) and line.startswith("| [")
}


@pytest.fixture
def known_truths(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))
    import known_truths

    return known_truths


def test_there_are_ten_with_a_verdict():
    assert len(FILES) >= 10
    assert sorted(ROWS) == [file.stem for file in FILES]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_names_its_source_and_what_is_expected(file, known_truths):
    truth = known_truths.Truth.of(file)
    assert truth.phase in (*ORDER, *TOTALS)
    loaded = load_experiment(str(file))
    names = {environment.name for environment in loaded.experiment.environments}
    told = file.read_text(encoding="utf-8")
    if names:
        assert {truth.slower, truth.faster} <= names
        made = re.findall(r"^#   setup/env (\S+) ", told, re.MULTILINE)
        assert set(re.findall(r"\.envs/([^/]+)/", told)) == set(made)
    else:
        key, _, _ = truth.slower.partition("=")
        assert truth.faster.startswith(f"{key}=")
    source, _, measured, verdict, _ = ROWS[file.stem]
    assert f"]({truth.source})" in source
    assert verdict in VERDICTS
    assert re.search(r"\d \(\d[\d.]*–\d[\d.]*\)", measured), measured


@pytest.mark.parametrize(
    "head",
    [
        "# Source: https://x\n", "# Expected: read of a over b: 2\n",
        "# Source: https://x\n# Expected: read of a: 2\n",
        "# Source: x\n# Expected: read of a over b: 2\n",
    ],
)  # fmt: skip
def test_a_head_without_either_is_refused(head, tmp_path, known_truths):
    (tmp_path / "x.yaml").write_text(head)
    with pytest.raises(ValueError, match="Source must be an address"):
        known_truths.Truth.of(tmp_path / "x.yaml")


@pytest.mark.parametrize(
    ("expected", "ratio", "said"),
    [
        ("1.2 to 1.3", (1.1, 1.05, 1.25), "1.1 (1.05–1.25), n=9: shown, within the published"),
        ("1.2 to 1.3", (1.1, 1.05, 1.19), "shown, without the published 1.2 to 1.3"),
        ("4", (1.1, 0.9, 1.25), "n=9: not shown, without the published 4"),
        ("4", (5, 4, 6), "shown, within the published 4"),
        ("above 1", (0.5, 0.4, 0.9), "n=9: the other way"),
    ],
)
def test_a_line_says_no_more_than_its_interval(expected, ratio, said, tmp_path, known_truths):
    from pffbench.summary.rank_test import Ratio

    head = f"# Source:  https://x\n# Expected: read of a over b: {expected}\n"
    (tmp_path / "x.yaml").write_text(head)
    value, low, high = ratio
    line = known_truths.Truth.of(tmp_path / "x.yaml").line(Ratio(9, value, low, high, 0.01))
    assert line.startswith("read of a over b: ")
    assert said in line


@pytest.mark.parametrize(("slow", "fast"), [(10, 64), (64, 10)])
def test_a_ratio_is_that_of_the_slower_one_over_the_faster_one(slow, fast, tmp_path, known_truths):
    spread = [1 + 0.01 * number for number in range(10)]
    cases, seconds = [], {}
    for concurrency in (10, 64):
        name, entry = a_case("zarr")
        name, options = f"{name}{concurrency}", {"concurrency": concurrency}
        cases.append((name, entry | {"options": options}))
        took = [3.0 * s if concurrency == slow else 1.5 * s for s in spread]
        seconds[name] = (took, spread)
    timed_run(tmp_path / "run", seconds, cases)
    head = f"write of concurrency={slow} over concurrency={fast}: 2"
    (tmp_path / "x.yaml").write_text(f"# Source: https://x\n# Expected: {head}\n")
    truth = known_truths.Truth.of(tmp_path / "x.yaml")
    ratio = truth.measured(tmp_path / "run")
    assert (ratio.n, ratio.value) == (10, pytest.approx(2))
    assert 1.9 < ratio.low <= 2 <= ratio.high < 2.1
    assert "shown, within the published 2" in truth.line(ratio)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ROWS))
def test_the_verdict_holds_here(name, tmp_path):
    """Run an experiment whose environments were made; shown is what was found."""
    pytest.importorskip("pffbench_environments")
    told = (CONFIGS / f"{name}.yaml").read_text(encoding="utf-8")
    if "setup/chroot" in told and sys.version_info < (3, 12):
        pytest.skip("its versions need Python 3.12: setup/chroot trixie")
    for line in re.findall(r"^#   (setup/env .*)$", told, re.MULTILINE):
        subprocess.run(["bash", "-c", line], check=True, cwd=REPOSITORY)
    script = REPOSITORY / "benchmarks" / "known_truths.py"
    done = subprocess.run(
        [sys.executable, script, name, "--out", tmp_path], cwd=REPOSITORY, env=dict(os.environ),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    *_, verdict, _ = ROWS[name]
    shown = re.search(r": (shown|not shown|the other way)", done.stdout)[1]
    if verdict == "found":
        assert shown == "shown", done.stdout
    if verdict == "refuted":
        assert shown != "shown" or "without the published" in done.stdout, done.stdout
