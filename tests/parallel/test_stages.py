"""A run in two stages: one job writes and keeps the files, another one on other nodes reads."""

import json
import os
import signal
from collections import defaultdict

import h5py
import numpy as np
import pytest

from launch import lines_of, pffbench_cli, run_experiment, start_experiment, wait_until
from pffbench.record.run_json import digest_of

pytestmark = pytest.mark.parallel

REPETITIONS = 2
CASES = [
    {"backend": ["hdf5", "netcdf4", "zarr", "mpiio"], "files": "one"},
    {"backend": ["hdf5", "posix"], "files": "per_rank"},
    {"backend": "zarr", "files": {"count": 2}},
]
WRITTEN = {"create", "define", "write", "flush", "close", "sync"}
READ = {"open", "open_array", "read", "close_read", "remove"}


def write(directory, ranks=3, **how):
    common = {"workload": "hyperslab", "shape_per_rank": [4, 16, 16], "cache": "separate"}
    content = {"repetitions": REPETITIONS, "common": common | {"durability": "sync"}}
    return run_experiment(
        directory, ranks, "--stage", "write", **(content | {"cases": CASES} | how)
    )


def elsewhere(run):
    """Have the record say that another host wrote, as if this one were another one."""
    path = run.out / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"wrote_on": ["another-host"]}))


def read(run, *more, ranks=3, **how):
    told = ["run", "--resume", run.out, "--stage", "read", *more]
    return pffbench_cli(*told, ranks=ranks, out=run.out, cwd=run.out.parent, **how)


def files_below(directory):
    return sorted(path for path in directory.rglob("*") if path.is_file())


def phases_by_repetition(run):
    found = defaultdict(list)
    for row in run.rows:
        found[row["case"], int(row["repetition"])].append(row["phase"])
    return found


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return write(tmp_path_factory.mktemp("stages"))


@pytest.fixture(scope="module")
def kept(written):
    """What lies in the scratch directory between the stages, and the rows of that time."""
    rows = (written.out / "repetitions.jsonl").read_text()
    return files_below(written.out.parent / "scratch"), rows


@pytest.fixture(scope="module")
def both(written, kept):
    elsewhere(written)
    for path in kept[0]:  # in memory, whatever the machine has done in the meantime
        path.read_bytes()
    return read(written)


def test_the_first_stage_writes_everything_and_keeps_it(written, kept):
    assert written.status == 0, written.said
    assert (written.record["status"], written.record["valid"]) == ("written", None)
    assert "--stage read" in " ".join(written.stdout.split())  # lines are broken anywhere
    found = phases_by_repetition(written)
    assert len(found) == len(written.record["cases"]) * REPETITIONS == 7 * REPETITIONS
    assert all(set(phases) == WRITTEN for phases in found.values()), found
    assert len(kept[0]) > 7 * REPETITIONS


def test_the_second_stage_reads_verifies_and_removes(written, kept, both):
    assert both.status == 0, both.said
    assert (both.record["status"], both.record["valid"]) == ("finished", True)
    assert (both.out / "repetitions.jsonl").read_text().startswith(kept[1])
    for phases in phases_by_repetition(both).values():
        assert set(phases[:6]) == WRITTEN
        assert set(phases[6:]) == READ
    for row in both.rows:
        if row["phase"] == "read":
            assert row["verified_bytes"] == row["bytes"] != "0"
    assert not list((both.out.parent / "scratch").iterdir())


def test_what_is_in_memory_all_the_same_is_not_called_cold(both):
    # This machine did write, whatever the record says: the proof sees the pages.
    states = {row["cache"] for row in both.rows if row["phase"] == "read"}
    assert states == {"unproved"}


def test_reading_is_recorded_beside_writing(both):
    reading = both.record["reading"]
    assert reading["topology"]["hosts"] == both.record["topology"]["hosts"]
    assert reading["provenance"]["software"]
    assert both.record["wrote_on"] == ["another-host"]
    with h5py.File(both.out / "ranks.h5") as file:
        assert len(file["host"]) == len(file["read_host"]) == 3
        for name in both.record["cases"]:
            group = file[name]
            assert set(group.attrs["phases"]) == WRITTEN | READ
            assert group["own"].shape == (REPETITIONS, 11, 3)
            assert np.isfinite(group["own"][()]).all()


def test_the_tables_hold_writing_and_reading(both):
    text = (both.out / "summary.csv").read_text()
    assert "write_total" in text
    assert "read_total" in text


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """A writing job that is warned after some repetitions."""
    directory = tmp_path_factory.mktemp("interrupted")
    common = {"workload": "hyperslab", "shape_per_rank": [4, 4], "cache": "separate"}
    run = start_experiment(
        directory, 2, "--stage", "write", repetitions=200, common=common,
        cases=[{"backend": ["hdf5", "posix"], "files": "per_rank"}],
    )  # fmt: skip
    wait_until(lambda: (run.out / "repetitions.jsonl").exists() and len(lines_of(run.out)) >= 4)
    run.process.send_signal(signal.SIGTERM)  # mpiexec hands it on to the ranks
    return run.finish()


@pytest.mark.full
def test_an_interrupted_writer_keeps_what_it_wrote_and_goes_on(interrupted):
    assert interrupted.record["status"] == "interrupted", interrupted.said
    (place,) = (interrupted.out.parent / "scratch").iterdir()
    whole = len(phases_by_repetition(interrupted))
    assert len([path for path in place.iterdir() if path.is_dir()]) == whole
    path = interrupted.out / "run.json"
    record = json.loads(path.read_text())
    record["experiment"]["repetitions"] = whole // 2 + 3
    record["experiment_digest"] = digest_of(record["experiment"])  # else the change is noticed
    path.write_text(json.dumps(record))
    early = read(interrupted, ranks=2)
    assert early.status == 2
    assert "not everything is written" in early.stderr
    kept = (interrupted.out / "repetitions.jsonl").read_text()
    done = pffbench_cli("run", "--resume", interrupted.out, ranks=2, out=interrupted.out)
    assert done.status == 0, done.said
    assert done.record["status"] == "written"
    assert (done.out / "repetitions.jsonl").read_text().startswith(kept)
    elsewhere(done)
    end = read(done, ranks=2)
    assert end.status == 0, end.said
    assert (end.record["status"], end.record["valid"]) == ("finished", True)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What one process has written, for others to try to read."""
    cases = [{"backend": "posix", "files": "per_rank"}]
    return write(tmp_path_factory.mktemp("alone"), ranks=None, cases=cases)


def refused(run, *how):
    """See that a start of one process changes nothing, and return why it says that it does not."""
    before = {path: path.read_bytes() for path in files_below(run.out.parent)}
    again = pffbench_cli("run", "--resume", run.out, *how, out=run.out)
    assert again.status == 2, again.said
    assert {path: path.read_bytes() for path in files_below(run.out.parent)} == before
    return again.stderr


def test_going_on_without_reading_is_refused(alone):
    assert "everything is written; read it, from other nodes, --stage read" in refused(alone)


def test_the_host_that_wrote_does_not_read(alone):
    assert f"{os.uname().nodename} wrote these data" in refused(alone, "--stage", "read")


@pytest.fixture(scope="module")
def to_read(alone):
    """The same, as if another host had written it."""
    elsewhere(alone)
    return alone


def test_data_that_are_gone_are_missed_before_anything_is_touched(to_read, tmp_path):
    (place,) = (to_read.out.parent / "scratch").iterdir()
    first = sorted(path for path in place.iterdir() if path.is_dir())[0]
    away = first.rename(tmp_path / "away")
    assert f"{first} is gone" in refused(to_read, "--stage", "read")
    away.rename(first)


@pytest.fixture(scope="module")
def changed(to_read):
    """The run that has read what was changed in between."""
    scratch = to_read.out.parent / "scratch"
    file = next(p for p in files_below(scratch) if p.stat().st_size >= 4096)
    data = bytearray(file.read_bytes())
    data[100] ^= 1
    file.write_bytes(data)
    return read(to_read, ranks=None)


def test_data_that_were_changed_in_between_make_the_run_invalid(changed):
    assert changed.status == 1, changed.said
    assert changed.record["valid"] is False


def test_a_run_that_is_read_is_finished(changed):
    assert "the run is finished" in refused(changed, "--stage", "read")


@pytest.mark.parametrize(
    ("how", "cache", "expected"),
    [
        ([], "separate", "with cache: separate another job reads"),
        (["--stage", "write"], "warm", "--stage needs cache: separate in all cases"),
        (["--stage", "read"], "separate", "add --resume DIR"),
    ],
)
def test_stage_and_cache_state_must_fit(tmp_path, how, cache, expected):
    case = {"workload": "hyperslab", "shape_per_rank": [4, 4], "backend": "posix"}
    done = run_experiment(
        tmp_path, None, *how, cases=[case | {"files": "per_rank", "cache": cache}]
    )
    assert done.status == 2, done.said
    assert expected in done.stderr
    assert not done.out.exists()
    assert not list((tmp_path / "scratch").iterdir())


def test_a_run_in_one_stage_is_not_read_by_another_job(tmp_path):
    case = {"workload": "hyperslab", "shape_per_rank": [4, 4], "backend": "null"}
    run = run_experiment(tmp_path, None, cases=[case], repetitions=1)
    path = run.out / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "interrupted"}))
    assert "what a run with --stage write has left" in refused(run, "--stage", "read")


def test_files_that_became_shorter_are_told_from_wrong_data(tmp_path):
    cases = [{"backend": "mpiio"}, {"backend": "posix", "files": "per_rank"}]
    done = write(tmp_path, ranks=2, cases=cases, repetitions=1, warmup=0)
    elsewhere(done)
    for path in (tmp_path / "scratch").rglob("*.raw"):
        os.truncate(path, path.stat().st_size - 96)
    rest = read(done, ranks=2)
    assert rest.status == 1, rest.said
    failures = [entry["failure"] for entry in rest.record["cases"].values()]
    assert [(f["phase"], f["ranks_failed"]) for f in failures] == [("read", 1), ("read", 2)]
    assert all("a call moved 4000 of 4096 bytes of " in f["error"] for f in failures), failures


def test_an_open_number_of_repetitions_is_settled_before_writing(tmp_path):
    cases = [{"backend": "npy", "files": "one"}]
    run = write(tmp_path, ranks=None, repetitions="auto", cases=cases)
    assert json.loads((run.out / "run.json").read_text())["experiment"]["repetitions"] == 10
    elsewhere(run)
    counted = {row["repetition"] for row in read(run, ranks=None).rows if row["phase"] == "read"}
    assert counted == {str(i) for i in range(10)}
