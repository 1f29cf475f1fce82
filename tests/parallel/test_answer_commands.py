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
from msgspec.structs import replace

from drawn_runs import edit, with_phase
from launch import LONGEST, environment, mpiexec, pffbench_cli
from pffbench.record.repetitions import MachineState
from pffbench.results.answer import lines_of
from pffbench.results.summary import summarise
from planted import pausing

pytestmark = pytest.mark.parallel
#: A run that is over in a second, in a folder whose name a shell takes apart.
EXPERIMENT = {
    "name": "tiny", "repetitions": 1, "warmup": 0, "roofline": False,
    "common": {"workload": "hyperslab", "shape_per_rank": [32, 64], "files": "per_rank"},
    "cases": [{"backend": ["hdf5", "npy"]}],
}  # fmt: skip


def printed_command(text):
    """Return the words of the command that an answer prints, as a shell reads them."""
    lines = text.splitlines()
    (start,) = [i for i, line in enumerate(lines) if line.lstrip().startswith("mpiexec ")]
    end = next(i for i in range(start, len(lines)) if not lines[i].endswith("\\"))
    return shlex.split("\n".join(lines[start : end + 1]).replace("\\\n", ""))


def run_printed(text, cwd, *more):
    """Run the command that a text prints, in a shell's place; return its results directory."""
    words = [*printed_command(text), *more]
    here = Path(sys.executable).parent, Path(mpiexec(1)[0]).parent
    path = os.pathsep.join([*map(str, here), os.environ["PATH"]])
    before = set(cwd.glob("pffbench-results/*"))
    done = subprocess.run(
        words, cwd=cwd, env=environment(PATH=path, COLUMNS="80"), capture_output=True, text=True,
        timeout=LONGEST, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    (made,) = set(cwd.glob("pffbench-results/*")) - before
    return made


@pytest.fixture
def place(tmp_path):
    """A folder with an experiment and a place for its files."""
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(EXPERIMENT))
    (tmp_path / "my scratch").mkdir()
    return tmp_path


def answer_of(run):
    """Return the answer as printed, whatever else the machine did during the run."""
    edit(run, lambda one: replace(one, machine=MachineState()))
    return "\n".join(lines_of(summarise(run).answer))


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
    first = pffbench_cli("run", *told, "--set", "dtype=float64", ranks=2, cwd=place)
    assert first.status == 0, first.said
    said = answer_of(place / "first")
    assert said.startswith("NO ANSWER: at least 7 rounds are needed"), said
    again = run_printed(said, place)
    summary = summarise(again)
    assert {case.repetitions for case in summary.cases} == {7}
    assert {entry.parameters["dtype"] for entry in summary.record.cases.values()} == {"float64"}
    too_short(again)
    said = answer_of(again)
    assert "use a larger shape_per_rank" in " ".join(said.split()), said
    larger = run_printed(said, place)
    shapes = [e.parameters["shape_per_rank"] for e in summarise(larger).record.cases.values()]
    assert all(rows >= 64 and columns == 64 for rows, columns in shapes)


def test_a_format_alone_is_compared(place):
    told = ("tiny.yaml", "--scratch", "my scratch", "--set", "backend=hdf5", "--set",
            "repetitions=7")  # fmt: skip
    alone = pffbench_cli("run", *told, "--out", "alone", ranks=1, cwd=place)
    assert alone.status == 0, alone.said
    said = answer_of(place / "alone")
    assert said.startswith("MEASURED: "), said
    made = summarise(run_printed(said, place))
    assert {entry.parameters["backend"] for entry in made.record.cases.values()} == {"hdf5", "zarr"}


def test_a_traced_run_is_measured_in_times(place):
    told = ("tiny.yaml", "--scratch", "my scratch", "--set", "counters=calls", "--out", "traced")
    traced = pffbench_cli("run", *told, ranks=1, cwd=place, env=pausing())
    assert traced.status == 0, traced.said
    said = answer_of(place / "traced")
    assert said.startswith("COUNTED: "), said
    assert "To measure times:" in said
    made = summarise(run_printed(said, place))
    assert {case.repetitions for case in made.cases} == {7}
    assert not made.record.traced
    assert all(case.phases["write_total"].seconds.median > 0 for case in made.cases)


def first_of_seven(place, change):
    """Make a run of seven rounds, and let its times be others."""
    told = ("tiny.yaml", "--scratch", "my scratch", "--set", "repetitions=7", "--out", "first")
    first = pffbench_cli("run", *told, ranks=1, cwd=place)
    assert first.status == 0, first.said
    edit(place / "first", change)
    return place / "first"


@pytest.mark.full  # test_busy_machine.py has one that is measured again
def test_a_run_on_a_busy_machine_is_measured_again_or_accepted(place):
    def others(one):
        return replace(with_phase(one, "write", seconds=1.0),
                       machine=MachineState(busy_others=0.5))  # fmt: skip

    first = summarise(first_of_seven(place, others))
    said = "\n".join(lines_of(first.answer))
    assert said.startswith("NO ANSWER: BUSY: others used 50% of the processors"), said
    assert "or add --accept-busy if there is none" in " ".join(said.split())
    again = run_printed(said, place, "--accept-busy")
    edit(again, others)
    made = summarise(again)
    assert made.record.cases.keys() == first.record.cases.keys()
    assert "BUSY" not in made.answer.headline, made.answer
    assert any(note.startswith("Accepted, as asked: BUSY") for note in made.answer.notes)


def test_more_rounds_decide_more(place):
    def wide(one):
        """In every second round one format is much slower, in the others the other one."""
        slower = (one.round % 2 == 0) == one.case.startswith("hdf5")
        seconds = (0.5 if slower else 0.1) * (1 + one.round / 100)
        return replace(one, machine=MachineState(), totals=dict.fromkeys(one.totals, seconds))

    first = summarise(first_of_seven(place, wide)).answer
    assert first.word == "NO DECISION", first
    assert first.why_command.startswith("More rounds make the price smaller"), first
    more = run_printed("\n".join(lines_of(first)), place)
    edit(more, wide)
    made = summarise(more)
    assert {case.repetitions for case in made.cases} == {28}
    assert made.answer.price < 0.6 * first.price + 0.4
