"""Bad input ends at once: one clear sentence, exit status 2, nothing created."""

import os
import re

import pytest
import yaml

from launch import (
    DIGEST,
    entries_below,
    only_with_open_mpi,
    pffbench_cli,
    pffbench_here,
    run_experiment,
    sampled,
    write_experiment,
)
from pffbench.errors import UserError
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import load_experiment

pytestmark = pytest.mark.parallel

GOOD = {"workload": "hyperslab", "backend": "posix", "files": "per_rank",
        "shape_per_rank": [4, 4]}  # fmt: skip
SHARED = GOOD | {"files": "one", "arrays": "shared"}


def case(**changes):
    return {"cases": [GOOD | changes]}


def shared(**changes):
    return {"cases": [SHARED | changes]}


#: What the experiment says, and what the message must say; it always names the file.
EXPERIMENTS = {
    "unknown key": (case(fiels="one"),
                    r"cases\[0\]\.fiels: unknown key \(did you mean 'files'\?"),
    "unknown key at the top": ({**case(), "repetition": 3},
                               r"repetition: unknown key .*repetitions"),
    "unknown option": (case(hdf5={"alignmnt": 4}), r"hdf5\.alignmnt: unknown key .*'alignment'"),
    "negative size": (case(shape_per_rank=[4, -4]), r"shape_per_rank.*>= 1"),
    "size of nothing": (case(shape_per_rank=[]), r"shape_per_rank|empty list"),
    "too many axes": (case(shape_per_rank=[1, 1, 1, 1, 1]), r"shape_per_rank.*4"),
    "unknown backend": (case(backend="hdf6"), r"unknown backend 'hdf6' \(.*allowed: .*hdf5"),
    "unknown workload": (case(workload="slabs"), r"unknown workload 'slabs' .*hyperslab"),
    "unknown word": (case(durability="forever"), r"durability.*'forever'.*close, flush, sync"),
    "unknown word once": (case(files="per_node"),
                          r"files: .*'per_node'.*\(allowed: .*per_rank"),
    "unknown key of an option": (case(backend="hdf5", hdf5={"striping": {"pool": 1}}),
                                 r"unknown field pool.*\(allowed: count, size\)"),
    "suggestion only when near": (case(backend="hdf5", hdf5={"driver": "x"}),
                                  r"hdf5\.driver: unknown key \(allowed: "),
    "bad unit": ({**case(), "memory": "64 MiX"}, r"memory: .*unknown unit 'MiX' \(allowed: .*MiB"),
    "wrong type": ({**case(), "repetitions": "five"}, r"repetitions: .*'five'.*auto, whole"),
    "no repetitions": ({**case(), "repetitions": 0}, r"repetitions: .*>= 1"),
    "both shapes": (case(shape=[4, 4]), r"give either shape .* or shape_per_rank"),
    "no shape": ({"cases": [{k: v for k, v in GOOD.items() if k != "shape_per_rank"}]},
                 r"give either shape .* or shape_per_rank"),
    "no cases": ({"cases": []}, r"cases: .*length >= 1"),
    "empty sweep": (case(dtype=[]), r"an empty list sweeps nothing"),
    "uneven zip": (case(dtype=["int8", "int16"], durability=["flush"], zip=["dtype", "durability"]),
                   r"zip: the lists must be equally long \(dtype has 2, durability has 1\)"),
    "impossible transfer": (case(files="one", arrays="shared", transfer="collective"),
                            r"posix cannot do transfer collective \(it can: independent\)"),
    "collective alone": (case(backend="hdf5", transfer="collective"),
                         r"files: per_rank shares no file, so transfer must be independent"),
    "codec that is not there": (case(backend="zarr", codec="szip"),
                                r"zarr cannot do codec szip \(it can: blosc, gzip, none, zstd\)"),
    "large chunks": (case(backend="hdf5", chunks=[8, 4]),
                     r"chunks \[8, 4\] are larger than .*\[4, 4\]"),
    "chunks of other axes": (case(backend="hdf5", chunks=[4]), r"chunks \[4\] must have 2 axes"),
    "compressed independent": (shared(backend="hdf5", codec="gzip"),
                               r"only with transfer: collective"),
    "contiguous zarr": (case(backend="zarr", chunks="contiguous"), r"always chunked"),
    "shards of format 2": (case(backend="zarr", zarr={"format": 2, "shards": [4, 4]}),
                           r"format 2 has no shards"),
    "too much data": (case(shape_per_rank=[2**20, 2**20, 64]), r"needs about 281\.\d TiB .* free"),
    "too much memory": (case(backend="null", shape_per_rank=[2**20, 2**20, 64]),
                        r"of memory on each rank"),
    "no file for source": (case(source="file"), r"file: missing"),
    "missing file for source": (case(source="file", file="absent.nc"), r"absent\.nc"),
    "file without source": (case(file="x.nc"), r"file: .*go with source: file only"),
    "far read": (shared(backend="hdf5", read_start=[2, 2], read_shape=[4, 4]),
                 r"the part to read ends at \[6, 6\]"),
    "several lines of nonsense": (case(files="one\nshared"), r"files"),
}  # fmt: skip

#: Text that is no experiment at all.
TEXTS = {
    "syntax": ("name: x\ncases:\n  - {backend: [hdf5\n", r"line \d+: not valid YAML"),
    "twice": ("name: x\nname: y\ncases: [{}]\n",
              r"line 2: not valid YAML: .*'name' is given twice"),
    "no name": ("cases: [{}]\n", r"experiment.yaml: name is missing \(required: name, cases\)"),
    "empty": ("", r"an experiment is a mapping"),
    "binary": (b"\x80\x81\xff", r"not a text file"),
}  # fmt: skip


def assert_refused(directory, *arguments, ranks=None, env=None):
    """Run, and see that it is refused as every bad input is; return the sentence."""
    before = entries_below(directory)
    done = pffbench_cli("run", *arguments, cwd=directory, ranks=ranks, env=env)
    assert done.status == 2, done.said
    assert done.stdout == ""
    told = [line for line in done.stderr.splitlines() if line.startswith("pffbench: ")]
    assert len(told) == 1, done.said
    assert "Traceback" not in done.stderr
    if ranks is None:
        assert done.stderr.splitlines() == told  # the sentence and nothing else
    assert entries_below(directory) == before
    assert not DIGEST.search(told[0])
    return told[0]


@pytest.fixture
def good(tmp_path):
    """A directory with an experiment that nothing is wrong with."""
    write_experiment(tmp_path, unsupported="refuse", **case())
    return tmp_path


def assert_refused_by(check, expected):
    """See that a check refuses the experiment of the current directory, in a sentence."""
    with pytest.raises(UserError) as caught:
        check("experiment.yaml")
    assert str(caught.value).startswith("experiment.yaml:")
    assert re.search(expected, str(caught.value))


@pytest.mark.parametrize("what", [what for what in EXPERIMENTS if not what.startswith("too much")])
def test_a_bad_experiment_cannot_be_planned(tmp_path, monkeypatch, what):
    content, expected = EXPERIMENTS[what]
    write_experiment(tmp_path, unsupported="refuse", **content)
    monkeypatch.chdir(tmp_path)
    assert_refused_by(lambda file: make_plan(load_experiment(file), 1), expected)


#: A run of these is started; what makes the other sentences is the same in all of them.
STARTED = ("too much data", "too much memory", "impossible transfer", "several lines of nonsense")


@pytest.mark.parametrize("what", STARTED)
def test_a_bad_experiment_is_refused(tmp_path, what):
    content, expected = EXPERIMENTS[what]
    write_experiment(tmp_path, unsupported="refuse", **content)
    message = assert_refused(tmp_path, "experiment.yaml")
    assert re.search(expected, message), message
    if not what.startswith("too much"):  # these name the case and the directory
        assert message.startswith("pffbench: experiment.yaml: "), message


def write_text(directory, content):
    data = content if isinstance(content, bytes) else content.encode()
    (directory / "experiment.yaml").write_bytes(data)


@pytest.mark.parametrize("what", TEXTS)
def test_a_file_that_is_no_experiment_cannot_be_read(tmp_path, monkeypatch, what):
    content, expected = TEXTS[what]
    write_text(tmp_path, content)
    monkeypatch.chdir(tmp_path)
    assert_refused_by(load_experiment, expected)


def test_a_variable_that_is_not_in_the_file_is_refused(tmp_path):
    import h5py

    with h5py.File(tmp_path / "mine.h5", "w") as file:
        file["here"] = [[1.0, 2.0]]
    write_experiment(tmp_path, **case(source="file", file="mine.h5", variable="there"))
    message = assert_refused(tmp_path, "experiment.yaml")
    assert "'there'" in message
    assert "here" in message.replace("there", "")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["absent.yaml"], r"absent\.yaml: cannot be read: No such file"),
        (["experiment.yaml", "--set", "bakend=hdf5"], r"--set bakend=hdf5: unknown key 'bakend'"),
        (["experiment.yaml", "--scratch", "absent/place"], r"absent/place.* does not exist"),
        (["experiment.yaml", "--scratch", "experiment.yaml"], r"not a directory"),
        (["experiment.yaml", "--out", "."], r"--out \.: already there and not an empty directory"),
        (["--resume", "absent"], r"--resume absent is not a results directory"),
        (["experiment.yaml", "--out", "experiment.yaml/x"], r"--out experiment\.yaml/x"),
    ],
)  # fmt: skip
def test_a_bad_command_line_is_refused(good, arguments, expected):
    assert re.search(expected, assert_refused(good, *arguments))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("nonsense", r"--set nonsense: write it as key=value"),
        ("repetitions=[1", r"--set .*not valid YAML"),
        ("repetitions=-1", r"repetitions: .*>= 1"),
    ],
)
def test_a_bad_change_cannot_be_planned(good, change, expected):
    """A run makes the same plan."""
    done = pffbench_here("plan", "experiment.yaml", "--set", change, cwd=good)
    assert (done.status, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert re.search(expected, line), line


def test_a_scratch_directory_that_cannot_be_written_is_refused(good):
    locked = good / "locked"
    locked.mkdir(mode=0o500)
    # To root every directory is writable; but nobody makes one in /proc.
    null = ["--set", 'backend="null"']
    place = "/proc" if os.geteuid() == 0 else str(locked)
    assert place in assert_refused(good, "experiment.yaml", *null, "--scratch", place)


def test_extra_cold_reads_are_left_out_on_a_file_system_in_memory(tmp_path):
    cases = [{"workload": "hyperslab", "backend": ["hdf5", "npy"], "shape": [8, 8], "cache": cache}
             for cache in ("warm", "dropped")]  # fmt: skip
    finished = run_experiment(
        tmp_path, None, "--scratch", "/dev/shm", repetitions=2, cold_reads="extra", cases=cases
    )
    assert finished.status == 0, finished.said
    assert "Limited: reads from the device left out: /dev/shm is tmpfs" in finished.stdout
    assert "from the device)" not in finished.stdout
    assert {e["parameters"]["cache"] for e in finished.record["cases"].values()} == {"warm"}


def test_the_cache_of_a_file_system_in_memory_cannot_be_dropped(good):
    if not os.path.isdir("/dev/shm"):
        pytest.skip("/dev/shm is missing")
    before = set(os.listdir("/dev/shm"))
    told = assert_refused(
        good, "experiment.yaml", "--set", "cache=dropped", "--scratch", "/dev/shm"
    )
    assert "dropped is impossible on tmpfs" in told
    assert not {n for n in set(os.listdir("/dev/shm")) - before if n.startswith("pffbench")}


@pytest.mark.parametrize(
    "claim",
    [
        {"PMI_SIZE": "4", "PMI_RANK": "0"},
        {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": "0",
         "SLURM_STEP_NUM_TASKS": "4"},
    ],
)  # fmt: skip
def test_singletons_are_refused(good, claim):
    """Each of 4 processes is a world of its own: launcher and MPI do not fit together."""
    told = assert_refused(good, "experiment.yaml", env=claim)
    assert re.search(
        r"started 4 processes \(\w+=4\), but (MPI knows of 1|Open MPI was not told)", told
    )


def test_only_one_of_the_singletons_speaks_and_its_status_is_the_jobs(good):
    # The others must not fail before it: srun ends all tasks of a step at the first failure.
    before = sorted(good.iterdir())
    step = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "4"}
    for claim in ({"PMI_SIZE": "4", "PMI_RANK": "2"}, step):
        done = pffbench_cli("run", "experiment.yaml", cwd=good, env=claim)
        assert (done.status, done.stdout, done.stderr) == (0, "", "")
        assert sorted(good.iterdir()) == before


# On several ranks


def test_bad_input_is_told_once_on_several_ranks(tmp_path):
    write_experiment(tmp_path, unsupported="refuse", **case(fiels="one"))
    assert "did you mean 'files'" in assert_refused(tmp_path, "experiment.yaml", ranks=2)


ZARR = SHARED | {"backend": "zarr", "shape_per_rank": [6, 4]}


def test_chunks_and_shards_that_ranks_would_share_are_refused_with_legal_ones(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)

    def planned(entry):
        """Return the sentence with which a plan of two ranks is refused."""
        write_experiment(tmp_path, unsupported="refuse", cases=[entry])
        with pytest.raises(UserError) as caught:
            make_plan(load_experiment("experiment.yaml"), 2)
        return str(caught.value)

    legal = []
    for chunks, settings in (([5, 4], "matched"), ("auto", "defaults")):
        entry = ZARR | {"chunks": chunks, "settings": settings}
        told = planned(entry)
        assert "would be shared by ranks" in told
        found = re.search(r"(\[[\d, ]+\])$", told)[1]
        legal.append(entry | {"chunks": yaml.safe_load(found)})
    entry = ZARR | {"chunks": [1, 4], "zarr": {"shards": [4, 4]}}
    assert "the nearest legal shard shape is [3, 4]" in planned(entry)
    legal.append(entry | {"zarr": {"shards": [3, 4]}})
    write_experiment(tmp_path, unsupported="refuse", cases=legal)
    out = tmp_path / "out"
    done = pffbench_cli("run", "experiment.yaml", "--out", out, cwd=tmp_path, ranks=2, out=out)
    assert done.status == 0, done.said
    assert len(done.record["cases"]) == 3


def long_path(directory, length):
    """Make a directory whose path has so many bytes."""
    path = directory
    while len(str(path)) < length:
        more = length - len(str(path)) - 1
        path /= "x" * (more if more <= 100 else min(100, more - 2))
    path.mkdir(parents=True)
    return path


MPI_IO = {"workload": "hyperslab", "files": "one", "arrays": "shared", "shape_per_rank": [4, 4]}


@pytest.mark.parametrize("backend", sampled(["hdf5", "netcdf4", "mpiio"], "netcdf4"))
def test_a_scratch_path_that_is_too_long_for_open_mpi_is_refused(tmp_path, backend):
    """Open MPI 4 overflows a buffer there and aborts all ranks."""
    only_with_open_mpi()
    scratch = long_path(tmp_path, 180)
    write_experiment(tmp_path, cases=[MPI_IO | {"backend": backend}])
    told = assert_refused(tmp_path, "experiment.yaml", "--scratch", scratch, ranks=2)
    assert re.search(r"too long by \d+ bytes for .* Open MPI crashes at paths of more than", told)
    assert "set OMPI_MCA_sharedfp=individual" in told
    individual = {"OMPI_MCA_sharedfp": "individual"}
    told = ["run", "experiment.yaml", "--scratch", scratch, "--out", "out"]
    done = pffbench_cli(*told, cwd=tmp_path, ranks=2, env=individual)
    assert done.status == 0, done.said
