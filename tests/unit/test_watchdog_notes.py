"""What the watchdog writes into the record of a run whose ranks cannot any more."""

import os

import pytest

from drawn_runs import a_record
from pffbench.experiment.plan import Cost
from pffbench.job.heartbeat import Leases
from pffbench.job.watchdog_notes import note_death, note_hang, note_interrupted
from pffbench.job.watchdog_process import NodeWatchdog
from pffbench.record.run_json import CaseEntry, RunRecord

CASE, OTHER = "hdf5.hyperslab.one-shared.collective.matched.0123456789ab", "zarr.x.0123456789ab"


@pytest.fixture
def results(tmp_path):
    """A record of a run with two cases, which is running."""
    entry = CaseEntry({"backend": "hdf5"}, "g", Cost(1, 1, 1, 1, 1))
    a_record({CASE: entry, OTHER: entry}, status="running", valid=None).save(tmp_path)
    return tmp_path


@pytest.fixture
def leases():
    """Enter ranks that are in a step of a case; the first argument is that of the failed one."""
    file = os.memfd_create("leases")

    def enter(step="write", failed=None, case=CASE, ranks=3):
        made = Leases(file, ranks)
        for rank in range(ranks):
            holder = made.holder(rank, rank, 1, 0)
            holder.about("case, repetition 2", case, 2)
            holder.step(step, 1.0)
            if rank == failed:
                holder.failed("OSError: no room")
        return list(made)

    yield enter
    os.close(file)


def failure_of(results, case=CASE):
    return RunRecord.load(results).cases[case].failure


def test_a_case_that_hung_has_failed(results, leases):
    assert note_hang(str(results), leases(), "5 s", "in deep")
    failure = failure_of(results)
    assert (failure.phase, failure.rank, failure.repetition) == ("write", 0, 2)
    assert (failure.ranks_failed, failure.traceback) == (3, "in deep")
    assert failure.error == "TimeoutError: not ended after 5 s"
    (reason,) = RunRecord.load(results).reasons
    assert reason == f"{CASE} repetition 2: {failure}"
    assert failure_of(results, OTHER) is None


def test_the_rank_that_failed_is_named_and_not_those_that_waited(results, leases):
    assert note_hang(str(results), leases(failed=1), "5 s", "")
    failure = failure_of(results)
    assert (failure.rank, failure.ranks_failed) == (1, 1)
    assert failure.error == "OSError: no room; the other ranks waited for it in the library for 5 s"


def test_several_nodes_record_a_hang_once(results, leases):
    for _ in range(2):
        assert note_hang(str(results), leases(), "5 s", "")
    assert len(RunRecord.load(results).reasons) == 1


@pytest.mark.parametrize("more", [{"step": "recording"}, {"case": ""}])
def test_a_hang_outside_of_a_case_is_no_failure_of_one(results, leases, more):
    before = (results / "run.json").read_text()
    assert not note_hang(str(results), leases(**more), "5 s", "")
    assert (results / "run.json").read_text() == before


def test_a_case_in_which_ranks_died_twice_has_failed(results, leases):
    (gone, *_) = leases("close")
    note_death(str(results), gone)
    assert failure_of(results) is None
    note_death(str(results), gone)
    assert "died in this case 2 times" in failure_of(results).error
    assert RunRecord.load(results).died_in == [CASE, CASE]


@pytest.mark.parametrize("asked", [False, True])
def test_a_death_is_recorded_although_the_rank_died_before_anything_watched(results, asked):
    file = os.memfd_create("leases")
    if not (rank := os.fork()):
        holder = Leases(file, 1).holder(0, 0, os.getpid(), 0)
        holder.about("case, repetition 0", CASE, 0)
        if asked:
            holder.asked_to_end()
        os._exit(1)
    os.waitpid(rank, 0)
    NodeWatchdog(Leases(file, 1), "auto", results=str(results)).watch()
    assert RunRecord.load(results).died_in == ([] if asked else [CASE])
    os.close(file)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cases": 3}'])
def test_a_record_that_is_none_stays_as_it_is(tmp_path, leases, text):
    (tmp_path / "run.json").write_text(text)
    note_interrupted(str(tmp_path))
    note_death(str(tmp_path), leases()[0])
    assert not note_hang(str(tmp_path), leases(), "5 s", "")
    assert (tmp_path / "run.json").read_text() == text


def test_the_files_of_a_living_run_are_touched(tmp_path, leases, monkeypatch):
    monkeypatch.setattr("pffbench.job.watchdog_process.TOUCH", 0.0)
    (marker := tmp_path / "marker").touch()
    os.utime(marker, (1, 1))
    leases(ranks=1)
    file = os.memfd_create("leases")
    Leases(file, 1).holder(0, 0, os.getpid(), 0)
    alive = [str(marker), str(tmp_path / "absent")]
    looker = NodeWatchdog(Leases(file, 1), "auto", alive=alive)
    looker._touch()
    looker._toucher.join()
    assert marker.stat().st_mtime > 1e9
    assert not (tmp_path / "absent").exists()
    os.close(file)
