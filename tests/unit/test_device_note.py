"""What an answer says of reads from disk: how often the device was read, what stayed in memory."""

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from drawn_runs import BYTES, a_case, edit, timed_run
from pffbench.results.summary import summarise
from pffbench.storage.block_device import count_device_reads

#: Rounds of a run; enough for an answer.
ROUNDS = 20


def a_cold_run(directory, reads, besides=0, counts_device=True, **record):
    """Write a run that reads from disk.

    Parameters
    ----------
    reads : dict of str to int or None or list
        Device reads by format, in all rounds or by round; None where they are not counted.
    besides : int or dict of str to int
        Bytes fetched in addition to the pages of the files, by format.
    """
    cases = [
        (name, replace(entry, counts_device=counts_device, counts_reads=True))
        for name, entry in (a_case(backend, cache="dropped") for backend in reads)
    ]
    formats = {name: entry.backend for name, entry in cases}
    rng = np.random.default_rng(1)
    times = {name: [0.1 * np.exp(0.02 * rng.standard_normal(ROUNDS))] * 2 for name in formats}

    def read_from_disk(one):
        backend = formats[one.case]
        number = reads[backend]
        if isinstance(number, list):
            number = number[one.round % len(number)]
        more = besides[backend] if isinstance(besides, dict) else besides
        state = replace(one.read, cache="dropped", resident=0.0, resident_after=BYTES,
                        device_bytes=BYTES + more, device_reads=number)  # fmt: skip
        return replace(one, read=state)

    run = timed_run(directory, times, cases, **record)
    return edit(run, lambda one: one if one.warmup else read_from_disk(one))


def note(run):
    """Return the sentences of the answer about reads from disk."""
    notes = summarise(run).answer.notes
    (found,) = [text for text in notes if text.startswith("Disk requests to read all data: ")]
    return found


def test_each_format_has_its_number_of_device_reads(tmp_path):
    run = a_cold_run(tmp_path, {"hdf5": 25, "netcdf4": 27, "zarr": 52})
    assert note(run) == (
        "Disk requests to read all data: HDF5 25, netCDF-4 27, Zarr 52. "
        "Directories and inodes were in memory and needed none."
    )


def test_a_run_of_one_format_has_it_too(tmp_path):
    assert note(a_cold_run(tmp_path, {"zarr": 1})).startswith(
        "Disk requests to read all data: Zarr 1. "
    )


def test_the_number_is_the_median_of_the_repetitions_that_were_counted(tmp_path):
    run = a_cold_run(tmp_path, {"hdf5": [None, 25, 25, 900], "zarr": 52})
    assert "HDF5 25, Zarr 52." in note(run)


@pytest.mark.parametrize(
    ("reads", "words"),
    [
        ({"hdf5": None, "zarr": None}, ": not counted (shared device)."),
        ({"hdf5": 25, "zarr": None}, "HDF5 25, Zarr not counted (shared device)."),
    ],
)
def test_reads_of_other_programs_are_not_taken_for_those_of_the_run(tmp_path, reads, words):
    assert words in note(a_cold_run(tmp_path, reads))


@pytest.mark.parametrize(("kind", "named"), [("nfs4", "nfs4"), (None, "no device")])
def test_a_file_system_without_a_device_has_no_number(tmp_path, kind, named):
    found = note(
        a_cold_run(
            tmp_path, {"hdf5": None, "zarr": None}, counts_device=False,
            provenance={"filesystem": {"type": kind}} if kind else {},
        )
    )  # fmt: skip
    requests = f"Disk requests to read all data: not counted ({named})."
    assert found == f"{requests} Directories may be cached."


def test_directories_that_were_read_are_named_with_their_bytes(tmp_path):
    run = a_cold_run(tmp_path, {"hdf5": 28, "zarr": 56}, {"hdf5": 8192, "zarr": 77824})
    assert note(run).endswith("They include directories and inodes: HDF5 8 KiB, Zarr 76 KiB.")


def test_a_run_that_reads_from_the_page_cache_says_nothing_of_it(tmp_path):
    cases = [a_case("hdf5"), a_case("zarr")]
    rng = np.random.default_rng(1)
    times = {name: [rng.uniform(0.1, 0.11, ROUNDS)] * 2 for name, _ in cases}
    notes = summarise(timed_run(tmp_path, times, cases)).answer.notes
    assert not any("Device reads" in text for text in notes)


@pytest.mark.parametrize("path", ["/dev/shm", "/proc", "/no/such/directory"])
def test_what_has_no_device_is_not_counted(path):
    assert all(np.isnan(count_device_reads(path)))


def test_the_count_is_the_one_of_the_kernel(disk):
    found = count_device_reads(str(disk))
    if np.isnan(found.requests):
        pytest.skip("the file system of the temporary directory has no device here")
    device = Path(disk).stat().st_dev
    text = Path(f"/sys/dev/block/{device >> 8 & 0xFFF}:{device & 0xFF}/stat").read_text()
    assert found.requests <= int(text.split()[0])
    assert found.nbytes <= 512 * int(text.split()[2])
