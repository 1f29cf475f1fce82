"""Several environments in one interleaved run: real ones, one that dies, and bad ones."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import h5py
import numpy as np
import pytest

from launch import (
    REPOSITORY,
    entries_below,
    layer,
    mpiexec,
    only_with_open_mpi,
    pffbench_cli,
    pffbench_here,
    run_experiment,
    start_experiment,
    wait_until,
)
from pffbench.record.repetitions import FILE
from pffbench.results.summary import summarise
from planted import run_first

pytestmark = pytest.mark.parallel

#: Starts one process: `env` starts the command that follows it.
ALONE = "env"
#: What .envs/h5py-3.13 is made of.
WHEELS = ("h5py==3.13.*", "zarr==3.1.1")
#: The Python of the tests: parallel HDF5.
HERE = {"name": "here", "python": sys.executable}
SOURCE = REPOSITORY / "src"
MANY = {"workload": "datasets", "backend": "hdf5", "datasets": 20, "shape": [[64]]}
FILES = {**MANY, "files": "per_rank"}


def command(name, text):
    return {"name": name, "command": text}


def run_in(directory, environments, *arguments, launcher=ALONE, cases=(FILES,), **content):
    """Run an experiment in several environments; the coordinator is one process."""
    return run_experiment(
        directory, None, *arguments, environments=list(environments), launcher=launcher,
        cases=list(cases), **content,
    )  # fmt: skip


def accepted(run):
    """Return the summary of a run whose times count on a busy machine."""
    (run.out / "run.json").write_text(json.dumps(run.record | {"accept_busy": True}))
    return summarise(run.out)


def repetitions(run):
    """Return the numbers of the repetitions of each case."""
    numbers = defaultdict(set)
    for row in run.rows:
        numbers[row["case"]].add(int(row["repetition"]))
    return numbers


@pytest.fixture(scope="module")
def wheels():
    """Return the Python of an environment that `setup/env` has made of other wheels."""
    return layer("h5py-3.13", *WHEELS)


@pytest.fixture(scope="module")
def real(wheels, tmp_path_factory):
    """Two environments with other versions of h5py, HDF5 and zarr, on two ranks."""
    cases = [
        {**FILES, "backend": ["hdf5", "zarr"]},
        {**MANY, "files": "one", "arrays": "per_rank", "settings": "defaults"},
        # not with the HDF5 of a wheel
        {"workload": "hyperslab", "backend": "zarr", "files": "per_rank", "shape": [8, 8],
         "chunks": [[2, 8]], "zarr": {"shards": [[4, 8]]}},
    ]  # fmt: skip
    return run_in(
        tmp_path_factory.mktemp("real"),
        [HERE, {"name": "wheels", "python": str(wheels)}],
        launcher=" ".join(mpiexec(2)),
        cases=cases,
        repetitions=2,
        step_repetitions=1,
        warmup=1,
        counters=True,
    )


def test_shards_are_written_by_an_older_zarr_python_too(real):
    """3.1.1, whose arrays keep to themselves what later ones show of their settings."""
    assert real.status == 0, real.said
    entry = real.record["cases"][real.case(environment="wheels", workload="hyperslab")]
    assert entry["options"]["shards"] == [4, 8]
    assert not entry["failure"]
    assert not entry["invalid"]


def test_all_environments_run_all_their_cases_in_all_rounds_in_turns(real):
    assert real.status == 0, real.said
    assert "VALID: every byte verified, 7 cases, 2 rounds" in real.stdout
    numbers = repetitions(real)
    assert len(numbers) == 7
    assert set(map(tuple, map(sorted, numbers.values()))) == {(0, 1, 2)}
    first = Counter()
    for number in (1, 2):
        started = sorted(
            {(row["started"], row["case"].partition("@")[0], row["environment"])
             for row in real.rows if row["repetition"] == str(number)}
        )  # fmt: skip
        turns = [[own for *_, own in some] for _, some in groupby(started, key=itemgetter(1))]
        # Both run a case before any runs the next one; the wheels lack the third.
        assert sorted(map(len, turns)) == [1, 2, 2, 2]
        first.update(turn[0] for turn in turns if len(turn) == 2)
    assert sorted(first.values()) == [3, 3]
    assert all(row["case"].endswith(f"@{row['environment']}") for row in real.rows)
    assert {row["ranks"] for row in real.rows} == {"2"}
    assert entries_below(real.out.parent / "scratch") == []


def test_the_raw_files_have_every_case_of_every_environment(real):
    with h5py.File(real.out / "ranks.h5") as ranks:
        assert set(ranks) == {"host", *real.record["cases"]}
        assert all(ranks[case]["own"].shape[::2] == (3, 2) for case in real.record["cases"])
    assert {count["case"] for count in real.counts} == set(real.record["cases"])


def test_each_environment_has_its_provenance(real):
    libraries = {
        name: told["provenance"]["software"]["libraries"]
        for name, told in real.record["environments"].items()
    }
    assert list(libraries) == ["here", "wheels"]
    assert libraries["wheels"]["h5py"]["version"].startswith("3.13.")
    for library in ("h5py", "zarr"):
        assert libraries["here"][library] != libraries["wheels"][library]
    assert real.record["provenance"]["software"]["libraries"] == libraries["here"]
    assert all("mpiexec" in told["start"] for told in real.record["environments"].values())


def test_a_case_that_an_environment_cannot_run_is_left_out_of_it_with_the_reason(real):
    (left,) = real.record["left_out"]
    assert left["case"].endswith("@wheels")
    assert "parallel h5py" in left["reason"]
    assert "Limited: wheels: 1 case of hdf5 left out" in real.stdout


def test_other_commands_name_the_environments(real, tmp_path):
    assert "environment" in json.loads((real.out / "results.json").read_text())["cases"][0]["label"]
    out = Path(shutil.copytree(real.out, tmp_path / "run"))
    report = pffbench_here("report", out)
    assert report.status == 0, report.said
    page = (out / "report.html").read_text()
    assert "environment wheels" in page
    assert "3.13." in page
    same = pffbench_here("compare", real.out, out)
    assert same.status == 0, same.said
    again = pffbench_cli("run", "--resume", real.out)
    assert again.status == 2
    assert "the run is finished; there is nothing to go on with" in again.stderr


#: Ends a start of Python without a word from the given one on. The first sees which pffbench there
#: is, the second checks the experiment, and the others are steps.
DIES = """#!/bin/bash
echo >>"$0.starts"
if [ "$(wc -l <"$0.starts")" -ge {start} ]; then kill -9 $$; fi
exec {python} "$@"
"""


def test_an_environment_that_dies_is_a_failed_case_and_the_others_go_on(tmp_path):
    dying = tmp_path / "dying"
    dying.write_text(DIES.format(start=4, python=sys.executable))
    dying.chmod(0o755)
    run = run_in(tmp_path, [HERE, command("dying", str(dying))], repetitions=3)
    assert run.status == 1, run.said
    numbers = repetitions(run)
    case = run.case(environment="dying")
    assert numbers == {run.case(environment="here"): {0, 1, 2}, case: {0}}
    failure = run.record["cases"][case]["failure"]
    assert (failure["phase"], failure["repetition"]) == ("job step", 1)
    assert "signal 9" in failure["error"]
    assert all(case in reason for reason in run.record["reasons"])
    assert {row["valid"] for row in run.rows} == {"true"}
    assert "INVALID: " in run.stdout
    assert entries_below(tmp_path / "scratch") == []
    assert not (run.out / ".steps").exists()


#: Ends Python when a case begins that a variable names.
DIES_LATER = """
import os
from pffbench.run.preparation import Preparation
prepared = Preparation.repetition
def die(self, due):
    found = prepared(self, due)
    if due.case.parameters.backend == "posix":
        os._exit(7)
    return found
Preparation.repetition = die
"""


@pytest.mark.full
def test_of_a_step_that_dies_the_case_at_hand_fails_and_the_other_cases_count(tmp_path):
    paths = run_first(tmp_path / "first", DIES_LATER)["PYTHONPATH"]
    dying = command("dying", f"env PYTHONPATH={paths} {sys.executable}")
    cases = [{**FILES, "backend": ["hdf5", "posix", "npy"]}]
    run = run_in(tmp_path, [HERE, dying], cases=cases, repetitions=2)
    assert run.status == 1, run.said
    numbers = repetitions(run)
    case = run.case(environment="dying", backend="posix")
    assert case not in numbers
    assert "status 7" in run.record["cases"][case]["failure"]["error"]
    for backend in ("hdf5", "npy"):  # from the next round on
        assert numbers[run.case(environment="dying", backend=backend)] == {1}
        assert numbers[run.case(environment="here", backend=backend)] == {0, 1}
    assert entries_below(tmp_path / "scratch") == []


@pytest.mark.full
def test_a_signal_ends_the_run_after_the_step_at_hand(tmp_path):
    started = start_experiment(
        tmp_path, None, environments=[HERE, {**HERE, "name": "other"}], launcher=ALONE,
        cases=[FILES], repetitions=500,
    )  # fmt: skip
    lines = started.out / FILE
    wait_until(lambda: lines.exists() and "@other" in lines.read_text())
    started.process.send_signal(signal.SIGTERM)
    run = started.finish()
    assert run.status == 3, run.said
    assert run.record["status"] == "interrupted"
    assert run.record["reasons"] == []
    assert "INTERRUPTED: every byte verified" in run.stdout
    assert entries_below(tmp_path / "scratch") == []
    assert not (run.out / ".steps").exists()


@pytest.mark.full
def test_an_input_file_that_is_replaced_between_rounds_makes_the_run_invalid(tmp_path):
    file, other = tmp_path / "mine.npy", tmp_path / "other.npy"
    np.save(file, np.arange(16.0))
    np.save(other, np.arange(1.0, 17.0))
    case = {"workload": "hyperslab", "backend": "hdf5", "shape": [[16]], "source": "file",
            "file": str(file)}  # fmt: skip
    started = start_experiment(
        tmp_path, None, environments=[HERE, {**HERE, "name": "other"}], launcher=ALONE,
        cases=[case], repetitions=2, step_repetitions=1,
    )  # fmt: skip
    lines = started.out / FILE
    wait_until(lambda: lines.exists() and "@" in lines.read_text())
    other.replace(file)
    run = started.finish()
    assert run.status == 1, run.said
    assert any(f"{file} has other contents" in text for text in run.record["reasons"])


def test_ranks_whose_coordinator_is_gone_end_and_remove_their_files(tmp_path):
    started = start_experiment(
        tmp_path, None, environments=[HERE, {**HERE, "name": "other"}],
        launcher=" ".join(mpiexec(2)), cases=[FILES], repetitions=500,
    )  # fmt: skip
    steps = [started.out / ".steps" / name / "run" for name in ("here", "other")]
    wait_until(lambda: all((step / "run.json").exists() for step in steps))
    started.process.kill()
    started.process.wait()
    # Files are removed first, the record is written last: wait for both records.
    wait_until(lambda: "running" not in statuses_of(steps))
    assert statuses_of(steps) == ["interrupted", "interrupted"]
    assert entries_below(tmp_path / "scratch") == []


def statuses_of(steps):
    """Return the statuses of runs by their records."""
    return [json.loads((step / "run.json").read_text())["status"] for step in steps]


SLOW = """
import time
from pffbench.backends.hdf5 import HighLevelArray
writer = HighLevelArray.writer
def slow(self, *arguments):
    call = writer(self, *arguments)
    def write():
        time.sleep(0.02)
        return call()
    return write
HighLevelArray.writer = slow
"""


@pytest.mark.full
def test_a_planted_slow_environment_is_found_with_the_right_sign(tmp_path):
    paths = run_first(tmp_path / "first", SLOW)["PYTHONPATH"]
    slow = command("slow", f"env PYTHONPATH={paths} {sys.executable}")
    run = run_in(tmp_path, [slow, HERE], repetitions=8, step_repetitions=2)
    assert run.status == 0, run.said
    found = accepted(run)
    assert found.answer.way == {"environment": "here"}
    assert "HDF5, environment here" in found.answer.sentence
    (write,) = [c for c in found.compared.changes if c.cells[0][0].keys["total"] == "write"]
    assert (write.by, write.value, write.verdict.word) == ("environment", "slow", "slower")
    assert write.verdict.rounds == 8


def bad(name, sentence, environments=(HERE, {**HERE, "name": "other"}), **content):
    sample = name in ("name-twice", "no-python", "no-launcher", "no-packages")
    marks = () if sample else pytest.mark.full
    return pytest.param(environments, content, sentence, id=name, marks=marks)


@pytest.mark.parametrize(
    ("environments", "content", "sentence"),
    [
        bad("name-twice", "here is the name of another one too", (HERE, HERE)),
        bad("no-way", "give one of python, activate, command", (HERE, {"name": "a"})),
        bad("two-ways", "give one of", (HERE, {"name": "a", "python": "x", "command": "y"})),
        bad("unknown-key", "unknown field", (HERE, {"name": "a", "pyhton": "x"})),
        bad("no-python", "no/python: there is no such program",
            (HERE, {"name": "a", "python": "no/python"})),
        bad("no-script", "there is no such file", (HERE, {"name": "a", "activate": "no.sh"})),
        bad("no-command", "it names no program", (HERE, command("a", " "))),
        bad("no-start", "no Python starts there", (HERE, command("a", "false"))),
        bad("no-launcher", "launcher: no-mpiexec: there is no such program",
            launcher="no-mpiexec -n 2"),
        bad("stage", "with --stage", cases=({**FILES, "cache": "separate"},)),
        bad("no-packages", "environment a: ModuleNotFoundError: No module named",
            (HERE, command("a", "{python} -S"))),
        bad("other-pffbench", "a has pffbench 0.0.1",
            (HERE, command("a", "env PYTHONPATH={fake} {python}"))),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence_and_makes_nothing(tmp_path, environments, content, sentence):
    fake = tmp_path / "fake"
    (fake / "pffbench").mkdir(parents=True)
    (fake / "pffbench" / "__init__.py").write_text('__version__ = "0.0.1"\n')
    places = {"fake": fake, "python": sys.executable}
    given = [
        {key: value.format(**places) for key, value in entry.items()} for entry in environments
    ]
    run = run_in(tmp_path, given, **content)
    assert_refused(run, sentence)
    assert not run.out.exists()
    assert entries_below(tmp_path / "scratch") == []


def assert_refused(run, sentence):
    assert run.status == 2, run.said
    # What is started is told before.
    assert run.stdout == "" or (run.stdout.startswith("starts: ") and run.stdout.count("\n") == 1)
    (line,) = run.stderr.splitlines()
    assert line.startswith("pffbench: ")
    assert sentence in line


def test_an_environment_that_can_run_no_case_is_refused(wheels, tmp_path):
    environments = [HERE, {"name": "wheels", "python": str(wheels)}]
    run = run_in(
        tmp_path,
        environments,
        launcher=" ".join(mpiexec(2)),
        cases=[{**MANY, "files": "one", "arrays": "per_rank"}],
    )
    assert_refused(run, "environment wheels: ")
    assert "all 1 cases are impossible" in run.stderr
    assert not run.out.exists()


def set_up(*arguments):
    return subprocess.run(
        [REPOSITORY / "setup" / "env", *arguments], capture_output=True, text=True, timeout=200
    )


def test_an_environment_of_wheels_is_made_once_and_a_bad_requirement_makes_nothing(wheels):
    before = wheels.parents[1].stat().st_ctime_ns
    again = set_up("h5py-3.13", *WHEELS)
    assert (again.returncode, again.stdout) == (0, ""), again.stderr
    assert wheels.parents[1].stat().st_ctime_ns == before
    wrong = set_up("wrong", "h5py==")
    assert wrong.returncode == 2
    (line,) = wrong.stderr.splitlines()
    assert line.startswith("setup/env: h5py== cannot be installed from wheels: Failed to parse")
    assert not (REPOSITORY / ".envs" / "wrong").exists()


def test_under_a_launcher_it_says_how_to_start(tmp_path):
    run = run_experiment(tmp_path, 2, environments=[HERE], launcher=ALONE, cases=[FILES])
    assert run.status == 2, run.said
    assert "start it as one process without mpiexec or srun" in run.stderr
    assert not run.out.exists()


def test_an_environment_with_another_mpi_than_the_launcher_is_refused(tmp_path):
    # What ranks of another MPI see of the launcher: nothing.
    alone = f"env -i HOME={Path.home()} PATH={os.environ['PATH']} {sys.executable}"
    run = run_in(tmp_path, [command("other", alone)], launcher=" ".join(mpiexec(2)))
    assert_refused(run, "environment other: each of its ranks runs alone under the launcher")
    assert not run.out.exists()


@pytest.mark.slow
def test_the_component_of_mpi_io_can_be_compared(tmp_path):
    only_with_open_mpi("other MPI libraries have one component")
    environments = [
        command(name, f"env OMPI_MCA_io={asked} {sys.executable}")
        for name, asked in (("ompio", "ompio"), ("romio", "^ompio"))
    ]
    case = {"workload": "hyperslab", "shape": [16, 16, 16], "decomposition": "block",
            "transfer": "collective", "chunks": "contiguous", "backend": "hdf5",
            "hdf5": {"hints": {"cb_nodes": 1}}}  # fmt: skip
    launcher = " ".join(mpiexec(2))
    done = run_in(tmp_path, environments, cases=[case], launcher=launcher, step_repetitions=1)
    assert done.status == 0, done.said
    found = {
        entry["parameters"]["environment"]: entry["transfer_facts"]["mpi_io_component"][:5]
        for entry in done.record["cases"].values()
    }
    assert found == {"ompio": "ompio", "romio": "romio"}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("package", "good", "bad", "case", "found"),
    [
        # The first wheel with HDF5 2; faster since zarr-python#3560.
        ("h5py", "3.13.0", "3.16.0", "many-datasets", "3.16.0 is the first slow version"),
        ("zarr", "3.1.0", "3.1.6", "shard-write", "3.1.4 is the first fast version"),
    ],
)
def test_bisect_ends_at_the_right_version(tmp_path, package, good, bad, case, found):
    searched = pffbench_cli(
        "bisect", "--good", f"{package}=={good}", "--bad", f"{package}=={bad}",
        "--case", REPOSITORY / "configs" / f"{case}.yaml", "--launcher", ALONE,
        "--out", tmp_path / "out", "--scratch", tmp_path, timeout=3000,
    )  # fmt: skip
    assert searched.status == 0, searched.said
    assert f"FOUND: {package} {found}" in searched.stdout
