"""A run goes on only as the run that it was, and tells when it is not what was asked for."""

import json
import os
import re
import shlex
import shutil
import signal
import time
from pathlib import Path

import pytest

from faults import SLAB, finished
from launch import (
    Finished,
    lines_of,
    pffbench_cli,
    pffbench_here,
    run_experiment,
    sampled,
    start,
    start_experiment,
)
from pffbench.record.run_json import digest_of

pytestmark = pytest.mark.parallel

#: Whatever comes first in a round, one of the slow cases is left.
CASES = [
    SLAB | {"backend": "null", "settings": ["matched", "defaults"],
            "null": {"delays": {"write": 1.5}}},
    SLAB | {"backend": "hdf5"},
]  # fmt: skip


def stop_run(directory, *arguments, **content):
    """Return a run that was stopped within its first round, by its own rule."""
    told = {"repetitions": 2, "warmup": 0, "cases": CASES, **content}
    # A slow case begins within this time, and needs longer.
    done = run_experiment(directory, None, "--max-time", "1.4 s", *arguments, **told)
    assert done.status == 3, done.said
    assert len(finished(done)) in (1, 2), done.said
    return done


@pytest.fixture(scope="module")
def once_stopped(tmp_path_factory):
    done = stop_run(tmp_path_factory.mktemp("stopped"))
    return done, (done.out / "run.json").read_bytes()


@pytest.fixture
def stopped(once_stopped, tmp_path):
    """A copy of that run for a test to change and to go on with."""
    done, record = once_stopped
    out = Path(shutil.copytree(done.out, tmp_path / "results"))
    (out / "run.json").write_bytes(record)
    return Finished(done.status, done.stdout, done.stderr, out)


def resume(done, *arguments):
    return pffbench_cli("run", "--resume", done.out, *arguments, out=done.out)


def change(done, **changes):
    """Change what run.json says, at places such as a.b.c; a digest that is empty is made anew."""
    path = done.out / "run.json"
    record = json.loads(path.read_text())
    for place, value in changes.items():
        *parents, name = place.split("__")
        entry = record
        for parent in parents:
            entry = entry[parent]
        entry[name] = value
    record["experiment_digest"] = record["experiment_digest"] or digest_of(record["experiment"])
    path.write_text(json.dumps(record))


def files(done):
    return {p.name: p.read_bytes() for p in done.out.iterdir()}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"experiment__repetitions": 3, "ranks": 3},
         ["it had 3 ranks, now there are 1", "the experiment in run.json was changed"]),
        ({"experiment__repetitions": "many", "experiment_digest": ""}, ["value 'many' - at"]),
        ({"cases": {}}, ["3 cases are new, such as"]),
        ({"topology__hosts": ["elsewhere"]}, ["the ranks of the run were on elsewhere, and these"]),
        ({"provenance__software__python__version": "2.7",
          "provenance__software__libraries__h5py__hdf5": "1.2.3"},
         ["python version was 2.7, now it is", "h5py hdf5 was 1.2.3, now it"]),
        ({"provenance__software__libraries__numpy__version": "0.9"}, ["numpy was 0.9, now it is"]),
    ],
    ids=["ranks and experiment", "repetitions", "cases", "hosts", "software", "NumPy"],
)  # fmt: skip
def test_another_run_is_refused_and_nothing_changes(once_stopped, changes, told):
    done, record = once_stopped
    (done.out / "run.json").write_bytes(record)
    change(done, **changes)
    before = files(done)
    again = resume(done)
    assert again.status == 2, again.said
    assert str(done.out) in again.stderr
    for difference in told:
        assert difference in again.stderr
    assert "Traceback" not in again.stderr
    assert files(done) == before
    assert not list((done.out.parent / "scratch").iterdir())


def test_a_job_on_other_hosts_measures_a_round_again_that_was_cut_short(stopped):
    """Ways are compared within a round, so no round is of two machines."""
    early, *_ = stopped.repetitions
    change(stopped, topology__hosts=["elsewhere"])
    refused = resume(stopped)
    (command,) = re.findall(r"to it with: pffbench (.*)$", refused.stderr, re.MULTILINE)
    again = pffbench_cli(*shlex.split(command), out=stopped.out)
    assert again.status == 0, again.said
    assert again.record["valid"] is True
    assert again.record["topology"]["hosts"] != ["elsewhere"]
    same = [r for r in again.repetitions if (r["case"], r["round"]) == (early["case"], 0)]
    assert len(same) == 1
    assert same[0]["started"] > early["started"]
    assert "resumed on other hosts (" in again.stdout


def test_of_two_that_go_on_at_the_same_moment_one_does(tmp_path):
    slow = [SLAB | {"backend": "null", "null": {"delays": {"write": 0.5}}}]
    first = start_experiment(tmp_path, None, repetitions=20, warmup=0, cases=slow)
    until(lambda: lines_of(first.out), first)
    early = resume(first)
    assert early.status == 2
    assert "another run writes there (process" in early.stderr
    os.kill(first.process.pid, signal.SIGUSR1)
    done = first.finish()
    assert done.status == 3, done.said
    assert not (done.out / "run.lock").exists()
    before = len(finished(done))
    command = ["-m", "pffbench", "run", "--resume", done.out, "--max-time", "2 s"]
    both = [start(command, out=done.out) for _ in range(2)]
    ended = [one.finish() for one in both]
    assert sorted(one.status for one in ended) == [2, 3], ended[0].said + ended[1].said
    assert set(finished(ended[0]).values()) == {1}
    assert len(finished(ended[0])) > before
    assert not (done.out / "run.lock").exists()


def until(there, started, seconds=200):
    end = time.monotonic() + seconds
    while True:
        try:
            if there():
                return
        except OSError:
            pass
        assert time.monotonic() < end, started.finish().said
        assert started.process.poll() is None, started.finish().said
        time.sleep(0.02)


# Honesty


FORGETFUL = """
import sys
from pffbench.record.repetitions import RepetitionsLog
append, calls = RepetitionsLog.append, []
def appended(self, repetition):
    calls.append(1)
    if len(calls) != 2:
        append(self, repetition)
RepetitionsLog.append = appended
from pffbench.cli import main
main(sys.argv[1:])
"""


def test_fewer_repetitions_than_asked_for_make_a_run_not_valid(tmp_path):
    """A repetition is never written: nobody says that all is well."""
    case = SLAB | {"backend": "null"}
    done = start_experiment(
        tmp_path, None, program=("-c", FORGETFUL), repetitions=4, warmup=0, cases=[case]
    ).finish()
    assert done.status == 1, done.said
    (reason,) = done.record["reasons"]
    assert reason.endswith(": 3 of 4 repetitions are recorded")


def test_a_repetition_that_vanishes_during_a_run_is_measured_again(tmp_path):
    # So long that none is recorded while the file is changed.
    slow = [SLAB | {"backend": "null", "null": {"delays": {"write": 1.5}}}]
    started = start_experiment(tmp_path, None, repetitions=4, warmup=0, cases=slow)
    until(lambda: len(lines_of(started.out)) >= 2, started)
    log = started.out / "repetitions.jsonl"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[1:]))
    done = started.finish()
    assert done.status == 3, done.said
    assert "repetitions.jsonl was changed by another program" in done.stderr
    again = resume(done)
    assert again.status == 0, again.said
    assert sorted(finished(again).values()) == [1] * 4


def test_stopping_early_by_a_rule_is_no_fault(tmp_path):
    done = run_experiment(tmp_path, None, repetitions=50, warmup=0, time_budget="0.2 s",
                          cases=[SLAB | {"backend": "null"}])  # fmt: skip
    assert done.status == 0, done.said
    (entry,) = done.record["cases"].values()
    assert 0 < entry["stopped_after"] < 50
    assert [r for r in done.record["stops"] if "time budget" in r]


BACKWARDS = """
import itertools, sys
from pffbench.observe.clock import PhaseClock
ticks = itertools.count(1e6, -0.001)
PhaseClock.__init__.__defaults__ = (lambda: next(ticks), *PhaseClock.__init__.__defaults__[1:])
from pffbench.cli import main
main(sys.argv[1:])
"""


def test_a_clock_that_runs_backwards_makes_a_run_not_valid(tmp_path):
    case = SLAB | {"backend": "posix", "files": "per_rank"}
    started = start_experiment(tmp_path, None, program=("-c", BACKWARDS), cases=[case])
    done = started.finish()
    assert done.status == 1, done.said
    assert [r for r in done.record["reasons"] if "the clock of rank 0 ran backwards in write" in r]
    assert {row["valid"] for row in done.rows} == {"false"}


HARMED = """
import os, shutil, sys
from pathlib import Path
from pffbench.run.recorder import Recorder
record, calls = Recorder.record, []
def recorded(self, gathered):
    record(self, gathered)
    calls.append(1)
    if len(calls) == 3:
        harm(Path(self.directory))
def harm(out):
    away, new = out.with_name("away"), out.with_name("new")
    HARM
Recorder.record = recorded
from pffbench.cli import main
main(sys.argv[1:])
"""
ANOTHER_RUN = """shutil.copytree(out, new); (new / "run.json").write_text("another run")
    out.rename(away); new.rename(out)"""
GONE = {
    "it is removed": "shutil.rmtree(out)",
    "it is renamed": "out.rename(away)",
    "another one has its name": "out.rename(away); out.mkdir()",
    "a link has its name": "out.rename(away); new.mkdir(); out.symlink_to(new)",
    "a file has its name": "out.rename(away); out.write_text('')",
    "another run has its name": ANOTHER_RUN,
    "its records are removed": "(out / 'repetitions.jsonl').unlink()",
    "its records are cut": "os.truncate(out / 'repetitions.jsonl', 100)",
}


@pytest.mark.parametrize("harm", sampled(GONE, "another run has its name", "its records are cut"))
def test_a_results_directory_that_is_another_one_now_is_left_alone(tmp_path, harm):
    code = HARMED.replace("HARM", GONE[harm])
    case = SLAB | {"backend": ["posix", "npy"], "files": "per_rank"}
    done = start_experiment(
        tmp_path, None, program=("-c", code), cases=[case], repetitions=3
    ).finish()
    assert done.status == 3, done.said
    (line,) = (line for line in done.stderr.splitlines() if "pffbench:" in line)
    assert "results cannot be written to" in line
    assert "repetitions.jsonl was" in line
    assert line.endswith("nothing is written to what is there now")
    assert "Traceback" not in done.said
    out, new = tmp_path / "results", tmp_path / "new"
    assert not new.is_dir() or not list(new.iterdir())
    if harm == "another run has its name":
        assert (out / "run.json").read_text() == "another run"
        kept = (out / "repetitions.jsonl").read_bytes()
        assert kept == (tmp_path / "away" / "repetitions.jsonl").read_bytes()
    elif out.is_dir():
        assert {path.name for path in out.iterdir()} <= {
            "run.json",
            "repetitions.jsonl",
            "ranks.h5",
        }
    assert not list((tmp_path / "scratch").iterdir())


TIMES_GONE = {
    "removed": "(out / 'ranks.h5').unlink()",
    "a FIFO": "os.mkfifo(new); new.rename(out / 'ranks.h5')",
    "a link": "shutil.copy(out / 'ranks.h5', away); new.symlink_to(away); "
    "new.rename(out / 'ranks.h5')",
}


@pytest.mark.parametrize("harm", sampled(TIMES_GONE, "a link"))
def test_a_run_whose_times_of_ranks_are_replaced_ends_and_is_resumed(tmp_path, harm):
    code = HARMED.replace("HARM", TIMES_GONE[harm])
    case = SLAB | {"backend": ["posix", "npy"], "files": "per_rank"}
    done = start_experiment(
        tmp_path, None, program=("-c", code), cases=[case], repetitions=3
    ).finish()
    assert done.status == 3, done.said
    assert "ranks.h5 was removed, renamed or replaced; what was recorded is kept" in done.stderr
    kept = (tmp_path / "away").read_bytes() if harm == "a link" else b""
    rest = pffbench_cli(
        "run", "--resume", done.out, "--scratch", tmp_path / "scratch", out=done.out
    )
    assert (rest.status, rest.record["valid"]) == (0, True), rest.said
    assert set(finished(rest).values()) == {1}
    assert finished(done).keys() <= finished(rest).keys()
    assert not kept or (tmp_path / "away").read_bytes() == kept


def test_damaged_times_of_ranks_and_another_commit_stop_no_command(stopped):
    change(stopped, provenance__software__pffbench__commit="abc")
    path = stopped.out / "ranks.h5"
    damaged = path.read_bytes()[: path.stat().st_size // 2]
    path.write_bytes(damaged)
    for command in (
        ("report", stopped.out),
        ("compare", stopped.out, stopped.out),
        ("clean", "--scratch", stopped.out.parent),
    ):
        done = pffbench_here(*command)
        assert done.status in (0, 2), done.said
        assert "Traceback" not in done.said
    assert path.read_bytes() == damaged
    again = resume(stopped)
    assert (again.status, again.record["valid"]) == (0, True), again.said
    assert [r for r in again.record["remarks"] if "began with pffbench at commit abc and" in r]
    (told,) = [text for text in again.record["remarks"] if "ranks.h5" in text]
    assert "it is kept as ranks.h5.damaged, and begun anew" in told
    assert path.with_name("ranks.h5.damaged").read_bytes() == damaged
    report = pffbench_here("report", stopped.out)
    assert report.status == 0, report.said
