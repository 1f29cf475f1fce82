"""Reads from disk: how often the device was read, by whom, and what stayed in memory."""

import re
import shlex
import subprocess
from pathlib import Path
from statistics import median

import pytest

from launch import run_experiment, sampled
from sharing import keys_of

pytestmark = pytest.mark.parallel

#: 2 MiB for each rank in chunks of 64 KiB: a file for each chunk with Zarr.
SLAB = {
    "workload": "hyperslab", "shape_per_rank": [32, 128, 128], "chunks": [1, 128, 128],
    "cache": "dropped", "durability": "sync",
}  # fmt: skip
FORMATS = ["hdf5", "netcdf4", "zarr"]


@pytest.fixture(scope="module")
def own_disk(disk):
    """A file system that nothing else uses; only root may mount one."""
    image, there = disk / "image", disk / "mounted"
    there.mkdir()
    with image.open("wb") as file:
        file.truncate(2**28)
    steps = (["mkfs.ext4", "-q", "-F", image], ["mount", "-o", "loop", image, there])
    try:
        for step in steps:
            subprocess.run(step, check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system of its own can be mounted here, which only root may")
    yield there
    subprocess.run(["umount", there], check=True, timeout=60)


def device_of(mounted):
    found = subprocess.run(
        ["findmnt", "-no", "SOURCE", mounted], check=True, capture_output=True, text=True
    )
    return found.stdout.strip()


def requests_and_bytes(mounted):
    """Return what the kernel says of the device."""
    name = Path(device_of(mounted)).name
    requests, _, sectors, *_ = Path(f"/sys/block/{name}/stat").read_text().split()
    return int(requests), 512 * int(sectors)


def run_there(tmp_path, mounted, *arguments, ranks=1, backends=FORMATS, **more):
    """Run cases that read from disk, with a file for each rank."""
    case = SLAB | {"files": "per_rank", "backend": backends}
    told = ["--scratch", mounted, *arguments]
    return run_experiment(tmp_path, ranks, *told, cases=[case], **more)


def note(done):
    """Return what the answer says of the device, as one line."""
    text = " ".join(done.stdout.split())
    end = r"(?:in memory|Zarr [\d.]+ [KM]iB)\."
    (found,) = re.findall(rf"Disk requests to read all data: .*?{end}", text)
    return found


def reads(done):
    """Return the rows of reading, by format."""
    found = {}
    for row in done.rows:
        if row["phase"] == "read":
            found.setdefault(row["backend"], []).append(row)
    return found


def bytes_besides_data(one):
    """Return what the device delivered beyond the blocks of data of the files."""
    return one["read"]["device_bytes"] - min(one["disk"]["stored"], one["read"]["resident_after"])


@pytest.mark.full
def test_device_reads_are_counted_for_each_repetition(own_disk, tmp_path):
    before = requests_and_bytes(own_disk)
    done = run_there(tmp_path, own_disk, ranks=2, repetitions=3)
    after = requests_and_bytes(own_disk)
    assert done.status == 0, done.said
    rows = reads(done)
    counts = {name: [int(row["device_reads"]) for row in some] for name, some in rows.items()}
    assert sum(map(sum, counts.values())) <= after[0] - before[0]
    fetched = sum(int(row["device_bytes"]) for some in rows.values() for row in some)
    assert 3 * len(FORMATS) * 2 * 2**21 <= fetched <= after[1] - before[1]
    middle = {name: round(median(some)) for name, some in counts.items()}
    assert middle["zarr"] >= 64 > middle["hdf5"]  # Zarr reads 32 chunks of each rank, each a file
    assert note(done) == (
        f"Disk requests to read all data: HDF5 {middle['hdf5']}, netCDF-4 {middle['netcdf4']}, "
        f"Zarr {middle['zarr']}. Directories and inodes were in memory and needed none."
    )


def test_reads_that_another_program_shares_are_not_counted(own_disk, tmp_path):
    """Another program reads the device while the run reads its files: bytes stay exact."""
    reader = f"dd if={device_of(own_disk)} of=/dev/null iflag=direct bs=4096"
    hook = f"(timeout 1 {reader} >/dev/null 2>&1 &)"
    done = run_there(tmp_path, own_disk, "--drop-hook", hook, backends="zarr", warmup=1)
    assert done.status == 0, done.said
    *_, one = done.repetitions  # the first one may also read parts of the program from disk
    assert "device_reads" not in one["read"]
    assert bytes_besides_data(one) == 0
    assert note(done) == (
        "Disk requests to read all data: not counted (shared device). "
        "Directories and inodes were in memory."
    )


def test_a_hook_that_drops_directories_is_seen_to_have_done_it(own_disk, tmp_path):
    """The hook drops what the kernel holds of this file system alone."""
    there, device = shlex.quote(str(own_disk)), device_of(own_disk)
    steps = [
        f"fsfreeze -f {there}", f"fsfreeze -u {there}",  # empties the journal
        f"mount -o remount,rw {there}", f"blockdev --flushbufs {device}",
    ]  # fmt: skip
    done = run_there(tmp_path, own_disk, "--drop-hook", " && ".join(steps), backends="zarr")
    assert done.status == 0, done.said
    (one,) = done.repetitions
    assert bytes_besides_data(one) >= 4096
    assert "They include directories and inodes: Zarr " in note(done)


@pytest.mark.parametrize("layout", sampled(["one-shared", "per_rank"], "per_rank"))
def test_a_hook_that_fills_the_cache_makes_the_run_invalid(disk, tmp_path, layout):
    """The hook runs last, so its effect is seen by what the device delivers."""
    scratch = disk / f"filled-{layout}"
    scratch.mkdir()
    hook = f"find {shlex.quote(str(scratch))} -type f -exec cat {{}} + > /dev/null"
    case = SLAB | {**keys_of(layout), "backend": ["hdf5", "zarr"]}
    told = ["--scratch", scratch, "--drop-hook", hook]
    done = run_experiment(tmp_path, 1, *told, cases=[case])
    assert done.status == 1, done.said
    reasons = [entry["invalid"] for entry in done.record["cases"].values()]
    assert len(reasons) == 2
    assert all("something else read the files" in reason for reason in reasons)
