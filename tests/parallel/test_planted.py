"""Truths planted below the libraries: reads that read nothing, slow ranks, a cache warmed late."""

import csv

import pytest

from launch import run_experiment, sampled, sparse_file
from pffbench.backends.registry import backend_class
from pffbench.results.comparisons import compare_work
from pffbench.results.purposes import usable
from pffbench.results.summary import summarise
from pffbench.run.schedule import ENOUGH
from planted import planted
from sharing import keys_of

pytestmark = pytest.mark.parallel

BACKENDS = ["hdf5", "netcdf4", "zarr", "tensorstore", "mpiio", "posix"]
#: Bytes of a rank's part: (shape of it, chunks, bytes of the smallest call that moves data).
SIZES = {
    "1 KiB": ([1, 256], "auto", 1024),
    "16 KiB": ([16, 256], "auto", 2**14),
    "256 KiB": ([256, 256], [64, 256], 2**16),
    "4 MiB": ([64, 128, 128], [16, 128, 128], 2**20),
}
#: Part of the path of a repetition's files, whatever the case.
DATA = "independent."


def slab(shape, **more):
    return {"workload": "hyperslab", "shape_per_rank": shape, **more}


def slabs(shape, chunks, layout):
    """Return the cases of all backends, and those of pieces without chunks."""
    return [
        slab(shape, chunks=chunks, **keys_of(layout), backend=BACKENDS),
        slab(shape, chunks="contiguous", **keys_of(layout), backend=["hdf5", "netcdf4"]),
    ]


@pytest.mark.parametrize(
    ("size", "layout"),
    sampled(
        [(size, layout) for size in SIZES for layout in ("per_rank", "one-shared")],
        ("1 KiB", "per_rank"),
    ),
)  # fmt: skip
def test_a_read_that_reads_nothing_is_invalid(tmp_path, size, layout):
    """The system claims that it has read: neither memory nor an earlier repetition has the data."""
    shape, chunks, smallest = SIZES[size]
    done = run_experiment(
        tmp_path, 2, repetitions=2, env=planted(DATA, read="suppress", size=smallest),
        cases=slabs(shape, chunks, layout),
    )  # fmt: skip
    assert done.status == 1, done.said
    entries = done.record["cases"]
    assert len(entries) == len(BACKENDS) + 2
    passed = [name for name, e in entries.items() if not (e["invalid"] or e.get("failure"))]
    assert passed == []


@pytest.mark.parametrize(
    "backend",
    sampled([*BACKENDS, "blosc2"], "zarr"),
)
def test_a_rank_that_reads_nothing_keeps_no_other_one_waiting(tmp_path, backend):
    """Neither its data nor the metadata of the library: the cases end in the same job."""
    can = backend_class(backend).capabilities
    arrays = "shared" if "shared" in can.arrays else "per_rank"
    layouts = [{"files": "one", "arrays": arrays}, {"files": "per_rank"},
               {"files": {"count": 2}, "arrays": arrays}]  # fmt: skip
    done = run_experiment(
        tmp_path, 3, repetitions=2, hang_timeout="10 s",
        env=planted(DATA, read="suppress", size=1, rank=1),
        cases=[slab([16, 64], backend=backend, **keys) for keys in layouts],
    )  # fmt: skip
    assert done.status == 1, done.said
    entries = done.record["cases"].values()
    assert (len(entries), done.record["status"]) == (3, "finished")
    assert all(entry["invalid"] or entry["failure"] for entry in entries)


#: Further workloads, each with chunks of 64 KiB, as the slabs of 256 KiB have.
WORKLOADS = {
    "datasets": {
        "datasets": 4,
        "shape": [256, 256],
        "chunks": [64, 256],
        "files": "one",
        "arrays": "per_rank",
    },
    "slices": {"shape": [64, 64, 64], "chunks": [4, 64, 64], "axis": 0, "count": 8},
    "updates": {"shape": [512, 256], "chunks": [64, 256], "change": "first_half"},
    "chunk_cache": {"shape": [64, 256], "granules": 4, "chunks": [64, 256], "source": "integers"},
}


def test_a_read_that_reads_nothing_is_invalid_in_every_workload_and_shared_file(tmp_path):
    shape, chunks, smallest = SIZES["256 KiB"]
    done = run_experiment(
        tmp_path, 2, repetitions=2, roofline=False,
        env=planted(DATA, read="suppress", size=smallest),
        cases=slabs(shape, chunks, "one-shared")
        + [{"workload": name, "backend": ["hdf5", "zarr"], **more}
           for name, more in WORKLOADS.items()],
    )  # fmt: skip
    assert done.status == 1, done.said
    entries = done.record["cases"].values()
    assert all(entry["invalid"] or entry["failure"] for entry in entries)
    others = [e for e in entries if e["parameters"]["workload"] != "hyperslab"]
    assert len(entries) - len(others) == len(BACKENDS) + 2
    assert {entry["parameters"]["workload"] for entry in others} == set(WORKLOADS)
    assert all(entry["invalid"] for entry in others)


def test_a_read_that_reads_nothing_is_invalid_where_chunks_are_left_out(tmp_path):
    """The kernel delivers less than the array there, and what is read is wrong."""
    done = run_experiment(
        tmp_path, 1, repetitions=2, roofline=False,
        env=planted(DATA, read="suppress", size=1024),
        cases=[{"workload": "hyperslab", "backend": ["zarr", "tensorstore"], "codec": "none",
                "settings": "defaults", "chunks": [1, 32, 32],
                **sparse_file(tmp_path, (4, 256, 256))}],
    )  # fmt: skip
    assert done.status == 1, done.said
    for entry in done.record["cases"].values():
        assert entry["disk"]["apparent"] < entry["cost"]["nbytes"]
        assert entry["invalid"]


def test_reads_within_a_cluster_that_read_nothing_are_invalid(tmp_path):
    """Reading is repeated after the first repetition: what the first read left does not help.

    60 calls are more than those of the first repetition, and fewer than those of all where a busy
    machine reads twice in each. A machine that is busier still reads once, and runs it again.
    """
    shape, chunks, smallest = SIZES["256 KiB"]
    for attempt in range(5):
        place = tmp_path / str(attempt)
        place.mkdir()
        done = run_experiment(
            place, 2, repetitions="auto", max_repetitions=5, warmup=1,
            env=planted(DATA, read="suppress", size=smallest, after=60),
            cases=[slab(shape, chunks=chunks, backend=["hdf5", "netcdf4", "zarr"])],
        )  # fmt: skip
        assert done.status == 1, done.said
        assert all(entry["invalid"] for entry in done.record["cases"].values())
        most = max(int(row["reads"]) for row in done.rows)
        if most > 1:
            break
    assert most > 1


def test_a_flipped_bit_is_invalid(tmp_path):
    shape, chunks, smallest = SIZES["256 KiB"]
    done = run_experiment(
        tmp_path, 1, env=planted(DATA, read="flip", size=smallest),
        cases=[slab(shape, chunks=chunks, backend=BACKENDS)],
    )  # fmt: skip
    assert done.status == 1, done.said
    assert all(entry["invalid"] for entry in done.record["cases"].values())


def test_invalid_cases_take_part_in_nothing(tmp_path):
    """netCDF-4 reads nothing, and so fast: it is in the table, and nowhere else."""
    shape, chunks, smallest = SIZES["4 MiB"]
    done = run_experiment(
        tmp_path, 2, repetitions=2, roofline=True,
        env=planted("netcdf4.hyperslab", read="suppress", size=smallest),
        cases=[slab(shape, chunks=chunks, backend=["hdf5", "netcdf4", "zarr"])],
    )  # fmt: skip
    assert done.status == 1, done.said
    assert "INVALID" in done.stdout
    assert done.record["floor"]["memory_copy_bytes_per_second"] > 0  # of which caches hold less
    summary = summarise(done.out)
    assert {cell.keys["backend"] for cell in summary.cells} == {"hdf5", "zarr", "mpiio"}
    assert "INVALID, takes part in nothing: netCDF-4" in (done.out / "summary.md").read_text()
    with (done.out / "summary.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["backend"] == "netcdf4"]
    assert {row["roofline"] for row in rows} == {""}
    assert all(row["invalid"] for row in rows)


def test_slow_writes_of_one_format_are_found(tmp_path):
    """Each write call of netCDF-4 takes 200 ms longer; nothing else differs by as much."""
    done = run_experiment(
        tmp_path, 1, repetitions="auto", warmup=0, price=1.0,
        env=planted("netcdf4.hyperslab", seconds=0.2, size=2**14),
        cases=[slab([16, 256], files="per_rank", backend=["hdf5", "netcdf4"])],
    )  # fmt: skip
    assert done.status == 0, done.said
    summary = summarise(done.out)
    # A busy machine has no answer, but the planted difference is larger.
    found = compare_work(usable(summary.cells, summary.run.resolution))
    (writing,) = [
        one for one in found.formats if one.cells[0][0].keys["column"] == "write and close"
    ]
    assert (writing.value, writing.base, writing.verdict.word) == ("netcdf4", "hdf5", "slower")
    counts = {entry["stopped_after"] for entry in done.record["cases"].values()}
    assert counts == {ENOUGH}  # it did not need all repetitions


def test_a_slow_rank_is_named_in_sync(tmp_path):
    done = run_experiment(
        tmp_path, 2, repetitions=3, env=planted(DATA, seconds=1.0, rank=1, size=2**30),
        cases=[slab([16, 256], files="per_rank", backend="posix", durability="sync")],
    )  # fmt: skip
    assert done.status == 0, done.said
    text = (done.out / "summary.md").read_text()
    (line,) = [x for x in text.splitlines() if "largest rank imbalance" in x]
    assert "sync of " in line
    assert "usually rank 1 (100%" in line


@pytest.mark.parametrize("backend", sampled(["hdf5", "netcdf4", "mpiio"], "hdf5"))
def test_a_slow_rank_is_named_in_a_collective_call(tmp_path, backend):
    """Where all ranks take equally long, the one that waits for its device uses no processor."""
    done = run_experiment(
        tmp_path, 2, repetitions=3, env=planted(".collective.", seconds=0.3, rank=0, size=2**16),
        cases=[slab([64, 256, 8], backend=backend, transfer="collective")],
    )  # fmt: skip
    assert done.status == 0, done.said
    text = (done.out / "summary.md").read_text()
    named = [x for x in text.splitlines() if "imbalance" in x or "the ranks wait for" in x]
    # The library writes in the phase `write` and flushes in `close`: rank 0 is late in both.
    late = [line for line in named if "write of" in line or "close of" in line]
    # A rank that waits shows it by the processor time that it takes, unless others have it.
    if "NO ANSWER: BUSY: " not in done.stdout:
        assert late, named
    assert all("rank 0" in line for line in late), named


def test_a_cache_that_was_warmed_after_the_check_is_invalid(disk, tmp_path):
    """Between the proof that it is empty and the read, another process reads the file."""
    scratch = disk / "warmed"
    scratch.mkdir()
    cases = [slab([64, 64, 64], files="per_rank", backend=["hdf5", "posix"],
                  cache="dropped", durability="sync")]  # fmt: skip
    told = ["--scratch", scratch]
    done = run_experiment(tmp_path, 2, *told, cases=cases, env=planted(DATA, warm=1, size=1))
    assert done.status == 1, done.said
    reasons = [e["invalid"] for e in done.record["cases"].values()]
    assert all("something else read the files" in reason for reason in reasons)
    as_usual = tmp_path / "as-usual"
    as_usual.mkdir()
    again = run_experiment(as_usual, 2, *told, cases=cases)
    assert again.status == 0, again.said
    for row in again.rows:
        if row["phase"] == "read":
            assert int(row["device_bytes"]) >= 0.99 * int(row["resident_after"])
