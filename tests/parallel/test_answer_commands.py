"""The command that an answer prints does what the answer says of it, as printed."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from pffbench.summary.answer import answer_of

from launch import LONGEST, environment, mpiexec, pffbench_cli
from pffbench.results.summary import summarise

pytestmark = pytest.mark.parallel
#: A run that is over in a second, in a folder whose name a shell takes apart.
EXPERIMENT = {
    "name": "tiny", "repetitions": 1, "warmup": 0, "roofline": False,
    "common": {"workload": "hyperslab", "shape_per_rank": [32, 64], "layout": "file_per_process"},
    "cases": [{"backend": ["hdf5", "npy"]}],
}  # fmt: skip


def printed_command(text):
    """Return the words of the command that an answer prints, as a shell reads them."""
    lines = text.splitlines()
    (start,) = [i for i, line in enumerate(lines) if line.lstrip().startswith("mpiexec ")]
    end = next(i for i in range(start, len(lines)) if not lines[i].endswith("\\"))
    return shlex.split("\n".join(lines[start : end + 1]).replace("\\\n", ""))


def run_printed(text, cwd):
    """Run the command that a text prints, in a shell's place; return what it said and its run."""
    words = printed_command(text)
    here = Path(sys.executable).parent, Path(mpiexec(1)[0]).parent
    path = os.pathsep.join([*map(str, here), os.environ["PATH"]])
    before = set(cwd.glob("pffbench-results/*"))
    done = subprocess.run(
        words, cwd=cwd, env=environment(PATH=path, COLUMNS="80"), capture_output=True, text=True,
        timeout=LONGEST, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    (made,) = set(cwd.glob("pffbench-results/*")) - before
    return done.stdout, made


@pytest.fixture
def place(tmp_path):
    """A folder with an experiment and a place for its files."""
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(EXPERIMENT))
    (tmp_path / "my scratch").mkdir()
    return tmp_path


def word_of(run):
    return answer_of(summarise(run)).word


def too_short(run):
    """Let the times of a run be too short to measure."""
    medians = [
        case.phases[total].seconds.median
        for case in summarise(run).cases
        for total in ("write_total", "read_total")
    ]
    record = json.loads((run / "run.json").read_text())
    record["floor"] |= dict.fromkeys(("own", "synced"), 1.1 * max(medians) / 100)
    (run / "run.json").write_text(json.dumps(record))


def test_few_repetitions_then_times_that_are_too_short(place):
    told = ("tiny.yaml", "--scratch", "my scratch", "--out", "first")
    first = pffbench_cli("run", *told, "--set", "dtype=float64", ranks=2, cwd=place,
                         env={"COLUMNS": "80"})  # fmt: skip
    assert "\nNO ANSWER  at least 7 repetitions are needed" in first.stdout, first.said
    _, again = run_printed(first.stdout, place)
    summary = summarise(again)
    assert {case.repetitions for case in summary.cases} == {7}
    assert {entry["parameters"]["dtype"] for entry in summary.record.cases.values()} == {"float64"}
    too_short(again)
    shown = pffbench_cli("recommend", again, cwd=place)
    assert "use a larger shape_per_rank" in shown.stdout, shown.said
    _, larger = run_printed(shown.stdout, place)
    shapes = [e["parameters"]["shape_per_rank"] for e in summarise(larger).record.cases.values()]
    assert all(rows >= 64 and columns == 64 for rows, columns in shapes)


def test_a_format_alone_is_compared(place):
    told = ("tiny.yaml", "--scratch", "my scratch", "--set", "backend=hdf5", "--set",
            "repetitions=7")  # fmt: skip
    alone = pffbench_cli("run", *told, "--out", "alone", ranks=2, cwd=place)
    assert word_of(place / "alone") == "MEASURED"
    _, made = run_printed(alone.stdout, place)
    assert word_of(made) in ("ANSWER", "NO ANSWER")
    formats = {entry["parameters"]["backend"] for entry in summarise(made).record.cases.values()}
    assert len(formats) == 2
