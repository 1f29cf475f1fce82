"""A run that was stopped goes on where it was, repeats nothing and loses nothing."""

import os
import re
import signal
import time
from collections import Counter

import h5py
import numpy as np
import psutil
import pytest

from launch import lines_of, pffbench_cli, run_experiment, start_experiment

pytestmark = pytest.mark.parallel

REPETITIONS = 4
CASES = [
    {"workload": "hyperslab", "backend": "null", "files": "one", "arrays": ["shared", "per_rank"],
     "shape_per_rank": [4, 4], "null": {"delays": {"write": 0.15}}},
    {"workload": "hyperslab", "backend": "hdf5", "shape_per_rank": [4, 4]},
]  # fmt: skip


def stopped_by(number, directory, ranks=2, cases=CASES):
    """Start a run and send a signal to its rank 0 when some repetitions are done."""
    run = start_experiment(directory, ranks, repetitions=REPETITIONS, warmup=1, cases=cases)
    patience = time.monotonic() + 200
    while not ((run.out / "repetitions.jsonl").exists() and len(lines_of(run.out)) >= 4):
        assert time.monotonic() < patience, run.finish().said
        assert run.process.poll() is None, run.finish().said
        time.sleep(0.02)
    os.kill(process_of_rank_0(run.process.pid), number)
    return run.finish()


def process_of_rank_0(pid):
    for child in psutil.Process(pid).children(recursive=True):
        names = child.environ()
        rank = names.get("OMPI_COMM_WORLD_RANK", names.get("PMI_RANK"))
        if rank == "0" and "pffbench" in child.cmdline():
            return child.pid
    raise AssertionError("no process of rank 0")


def resume(done, ranks=2):
    return pffbench_cli("run", "--resume", done.out, "--scratch", done.out.parent / "scratch",
                        ranks=ranks, out=done.out)  # fmt: skip


def repetitions(done):
    return Counter((r["case"], int(r["repetition"])) for r in done.rows if r["phase"] == "remove")


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    return stopped_by(signal.SIGUSR1, tmp_path_factory.mktemp("stopped"))


@pytest.fixture(scope="module")
def refusal(stopped):
    """The attempt to go on with another number of ranks, before the right one."""
    before = {p.name: p.read_bytes() for p in stopped.out.iterdir()}
    done = resume(stopped, ranks=3)
    assert {p.name: p.read_bytes() for p in stopped.out.iterdir()} == before
    return done


@pytest.fixture(scope="module")
def torn(stopped, refusal):
    """A killed run: the line of the last repetition is cut."""
    path = stopped.out / "repetitions.jsonl"
    text = path.read_text()
    path.write_text(text[:-40])
    return stopped, text


@pytest.fixture(scope="module")
def resumed(torn):
    return resume(torn[0])


def test_a_signal_ends_the_run_after_the_repetition(stopped):
    assert stopped.status == 3, stopped.said
    assert stopped.record["status"] == "interrupted"
    assert stopped.record["reasons"] == []
    whole = repetitions(stopped)
    assert 4 <= len(whole) < 3 * (REPETITIONS + 1)
    assert list((stopped.out.parent / "scratch").iterdir()) == []


def test_the_end_tells_how_to_go_on(stopped):
    assert f"--resume {stopped.out}" in " ".join(stopped.stdout.split())


def test_other_ranks_are_refused_with_the_difference(refusal):
    assert refusal.status == 2, refusal.said
    assert re.search(r"pffbench: --resume .*: not the same run: it had 2 ranks, now there are 3",
                     refusal.stderr)  # fmt: skip


def test_a_resumed_run_completes(resumed):
    assert resumed.status == 0, resumed.said
    assert resumed.record["status"] == "finished"
    assert resumed.record["valid"] is True
    assert len(resumed.record["resumed"]) == len(resumed.record["startup"]["resumed"]) == 1
    cases = resumed.record["cases"]
    assert repetitions(resumed) == Counter((c, i) for c in cases for i in range(REPETITIONS + 1))


def test_no_finished_repetition_is_repeated(torn, resumed):
    stopped, text = torn
    before = text.splitlines()[:-1]
    assert (stopped.out / "repetitions.jsonl").read_text().splitlines()[: len(before)] == before


def test_the_torn_line_is_kept_beside(torn, resumed):
    stopped, text = torn
    aside = (stopped.out / "repetitions.jsonl.unfinished").read_text()
    assert aside.splitlines() == [text[:-40].splitlines()[-1]]


def test_every_repetition_is_in_ranks_h5_once(resumed):
    with h5py.File(resumed.out / "ranks.h5") as file:
        for name in resumed.record["cases"]:
            numbers = file[name]["repetition"][()].tolist()
            assert sorted(numbers) == list(range(REPETITIONS + 1)), name
            assert file[name]["own"].shape[0] == len(numbers)


def test_a_finished_run_cannot_be_resumed(resumed):
    again = resume(resumed)
    assert again.status == 2
    assert "the run is finished" in again.stderr


@pytest.mark.full  # test_stages.py ends a run so too
def test_sigterm_ends_a_run_like_sigusr1(tmp_path):
    done = stopped_by(signal.SIGTERM, tmp_path, ranks=2)
    assert done.status == 3, done.said
    assert done.record["status"] == "interrupted"


def test_a_run_that_was_killed_goes_on(tmp_path):
    killed = stopped_by(signal.SIGKILL, tmp_path)
    assert killed.status != 0
    assert killed.record["status"] == "running"
    left = list((tmp_path / "scratch").iterdir())
    assert len(left) == 1  # the killed run could not clean up
    assert (killed.out / "run.lock").exists()
    (left[0] / "half-written.h5").write_bytes(b"x")
    done = resume(killed)
    assert done.status == 0, done.said
    assert done.record["status"] == "finished"
    assert done.record["valid"]
    assert set(repetitions(done).values()) == {1}
    assert len(repetitions(done)) == len(done.record["cases"]) * (REPETITIONS + 1)
    assert not list((tmp_path / "scratch").iterdir())
    assert not (done.out / "run.lock").exists()


def test_no_repetition_begins_that_would_end_too_late(tmp_path):
    slow = {"workload": "hyperslab", "backend": "null", "shape_per_rank": [4, 4],
            "null": {"delays": {"write": 2.0}}}  # fmt: skip
    stopped = run_experiment(
        tmp_path, None, "--max-time", "7 s", repetitions=40, warmup=0, cases=[slow]
    )
    assert stopped.status == 3, stopped.said
    assert stopped.record["status"] == "interrupted"
    assert 1 <= len(repetitions(stopped)) <= 3
    (remark,) = [text for text in stopped.record["remarks"] if text.startswith("stopped before")]
    assert "of the time that the run may take were left" in remark
    assert f"--resume {stopped.out}" in " ".join(stopped.stdout.split())


def test_a_time_that_makes_no_sense_is_refused(tmp_path):
    refused = pffbench_cli("run", "--max-time", "20 minuets", cwd=tmp_path)
    assert refused.status == 2
    assert "--max-time: '20 minuets' has the unknown unit 'minuets'" in refused.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.full
def test_a_run_whose_input_file_was_replaced_is_refused(tmp_path):
    file = tmp_path / "mine.npy"
    np.save(file, np.arange(16.0).reshape(4, 4))
    of_file = {"workload": "hyperslab", "backend": "hdf5", "shape": [4, 4], "source": "file",
               "file": str(file)}  # fmt: skip
    stopped = stopped_by(signal.SIGUSR1, tmp_path, ranks=1, cases=[CASES[0], of_file])
    assert stopped.status == 3, stopped.said
    begun = file.read_bytes()
    np.save(file, np.arange(1.0, 17.0).reshape(4, 4))
    refused = resume(stopped, ranks=1)
    assert refused.status == 2, refused.said
    assert (f"not the same run: the file {file} has other contents than when the run began"
            in " ".join(refused.stderr.split()))  # fmt: skip
    file.write_bytes(begun)
    done = resume(stopped, ranks=1)
    assert done.status == 0, done.said
