"""Irregular decompositions: what files hold, how many calls are made, what is refused and found."""

import json

import h5py
import netCDF4
import numpy as np
import pytest
import zarr

from launch import PROGRAMS, pffbench_cli, pffbench_here, run_experiment, sampled, write_experiment
from pffbench.geometry.maps import DecompositionMap
from pffbench.workloads.map_files import write_npz, write_text

pytestmark = pytest.mark.parallel

SHAPE = (3, 17, 23)
PROCESSES = 5
BOTH = ["independent", "collective"]
COMMON = {"workload": "hyperslab", "files": "one", "dtype": "int32"}


def owners(*, holes):
    """Return the process of each element, or -1; process 1 has none, others unequally many."""
    random = np.random.default_rng(3)
    cuts = np.sort(random.choice(np.arange(1, np.prod(SHAPE)), 200, replace=False))
    who = random.choice([0, 2, 3, 4], 201, p=[0.5, 0.2, 0.2, 0.1])
    if holes:
        who[random.random(201) < 0.3] = -1
    return np.repeat(who, np.diff([0, *cuts, np.prod(SHAPE)]))


def stretches(who, wanted):
    """Return first element and length of each stretch of the wanted processes."""
    mine = np.isin(who, wanted).astype(int)
    edges = np.flatnonzero(np.diff([0, *mine, 0]))
    return list(zip(edges[::2].tolist(), (edges[1::2] - edges[::2]).tolist(), strict=True))


def write_map(path, who):
    found = [stretches(who, [process]) for process in range(PROCESSES)]
    counts = np.array([len(some) for some in found])
    flat = np.array([one for some in found for one in some])
    made = DecompositionMap(SHAPE, counts, flat[:, 0].copy(), flat[:, 1].copy())
    (write_text if path.suffix == ".txt" else write_npz)(path, made)
    return str(path)


def read_array(path):
    """Read the first array of a file as a program does that knows nothing of pffbench."""
    if path.suffix == ".h5":
        with h5py.File(path) as file:
            return file["array_000"][...]
    if path.suffix == ".nc":
        with netCDF4.Dataset(path) as file:
            file.set_auto_mask(False)
            return np.asarray(file["array_000"][...])
    if path.suffix == ".zarr":
        return zarr.open_group(path, mode="r")["array_000"][...]
    if path.is_dir():
        (path,) = path.glob("array_000*")
        return np.load(path)
    return np.fromfile(path, np.int32)


@pytest.mark.parametrize("ranks", sampled([1, 2, 3, 4], 2))
def test_every_backend_stores_and_reads_each_element_where_it_belongs(tmp_path, ranks):
    """Uneven parts, a rank with nothing, both forms of the map, with and without holes."""
    whole, partly = owners(holes=False), owners(holes=True)
    maps = [
        {"file": write_map(tmp_path / "whole.npz", whole)},
        {"file": write_map(tmp_path / "whole.txt", whole)},
        {"file": write_map(tmp_path / "partly.npz", partly), "holes": "allow"},
    ]
    data = np.arange(1, np.prod(SHAPE) + 1, dtype=np.int32)
    np.save(tmp_path / "data.npy", data.reshape(SHAPE))
    chunked = {"chunks": [[2, 5, 7]], "rearranger": "chunk_owner", "writers": ["all", {"count": 1}]}
    cases = [
        {"backend": ["hdf5", "netcdf4", "mpiio"], "transfer": BOTH, "decomposition": maps[2]},
        {"backend": ["hdf5", "netcdf4"], "transfer": "collective", "decomposition": maps[0]},
        {"backend": ["hdf5", "netcdf4"], "chunks": [[2, 5, 7]], "decomposition": maps[2]},
        {"backend": "posix", "decomposition": maps},
        {"backend": ["hdf5", "netcdf4", "zarr"], **chunked, "decomposition": maps[2]},
        {"backend": ["npy", "mpiio"], "rearranger": "box", "decomposition": maps[0]},
    ]
    common = COMMON | {"source": "file", "file": "data.npy", "cache": "separate"}
    done = run_experiment(tmp_path, ranks, "--stage", "write", common=common,
                          cases=cases[3:] if ranks == 1 else cases, timeout=240)  # fmt: skip
    assert done.status == 0, done.said
    assert done.record["left_out"] == []
    for case, entry in done.record["cases"].items():
        of_map = entry["parameters"]["decomposition"]["file"]
        mine = (whole if "whole" in of_map else partly) >= 0
        (path,) = (tmp_path / "scratch").glob(f"*/*{case}/shared.*")
        assert (read_array(path).reshape(-1)[mine] == data[mine]).all(), case
    record = done.record | {"wrote_on": ["another-host"]}  # where the data are not in memory
    (done.out / "run.json").write_text(json.dumps(record))
    read = pffbench_cli("run", "--resume", done.out, "--stage", "read",
                        ranks=ranks, out=done.out, cwd=tmp_path)  # fmt: skip
    assert read.status == 0, read.said
    assert read.record["valid"] is True


@pytest.mark.full
def test_time_steps_go_by_the_map_and_are_read_by_another_decomposition(tmp_path):
    of_map = {"file": write_map(tmp_path / "map.npz", owners(holes=False))}
    cases = [
        {"backend": ["hdf5", "posix"], "read_decomposition": ["slab", "block"]},
        {"backend": "netcdf4", "transfer": BOTH, "datasets": 2},
        {"backend": ["hdf5", "zarr"], "chunks": [[1, 2, 5, 7]], "rearranger": "chunk_owner",
         "zarr": {"shards": [1, 2, 10, 14]}, "source": "smooth", "dtype": "float32"},
    ]  # fmt: skip
    common = COMMON | {"steps": 2, "decomposition": of_map}
    done = run_experiment(tmp_path, 4, common=common, cases=cases)
    assert done.status == 0, done.said
    assert done.record["left_out"] == []
    assert done.record["valid"] is True


def test_stretches_longer_than_a_call_may_be_are_cut(tmp_path):
    """1173 elements of 4 bytes on 3 ranks, at most 1000 bytes a call, unequally many on each."""
    of_map = {"file": write_map(tmp_path / "map.npz", owners(holes=False))}
    cases = [{"backend": ["hdf5", "mpiio", "netcdf4"], "transfer": BOTH, "decomposition": of_map}]
    done = run_experiment(tmp_path, 3, common=COMMON, cases=cases,
                          program=(PROGRAMS / "small_calls.py",))  # fmt: skip
    assert done.status == 0, done.said
    assert done.record["valid"] is True
    calls = [int(row["operations"]) for row in done.rows if row["phase"] == "write"]
    assert len(calls) == 6
    assert min(calls) > 3


def test_overlaps_that_are_allowed_hold_the_same_data(tmp_path):
    made = DecompositionMap(SHAPE, *(np.array(n) for n in ([1, 2], [0, 500, 900], [900, 600, 273])))
    write_npz(tmp_path / "map.npz", made)
    of_map = {"file": "map.npz", "overlaps": "allow"}
    cases = [{"backend": ["hdf5", "netcdf4", "mpiio", "posix"], "decomposition": of_map}]
    done = run_experiment(tmp_path, 2, common=COMMON, cases=cases)
    assert done.status == 0, done.said
    refused = pffbench_here("plan", tmp_path / "experiment.yaml", "--ranks", 2,
                            "--set", "decomposition.overlaps=refuse", cwd=tmp_path)  # fmt: skip
    assert refused.status == 2, refused.said
    assert "processes 0 and 1 both have element 500" in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1


def write_overlaps(path):
    """Write a map by which ranks 0 and 3 read elements of others, too, each as boxes."""
    random, shape = np.random.default_rng(1), (6, 7, 11)
    who, mine = random.integers(0, 4, np.prod(shape)), []
    for rank, more in enumerate([range(20), (), (), range(5, 35)]):
        elements = np.unique(np.concatenate([np.flatnonzero(who == rank), list(more)]).astype(int))
        first = np.flatnonzero(np.diff(elements, prepend=-2) != 1)
        mine.append((elements[first], np.diff(first, append=len(elements))))
    offsets, lengths = (np.concatenate(parts) for parts in zip(*mine, strict=True))
    counts = np.array([len(starts) for starts, _ in mine])
    write_npz(path, DecompositionMap(shape, counts, offsets, lengths))
    return {"file": path.name, "overlaps": "allow"}


@pytest.fixture(scope="module", params=sampled(["default", "ROMIO"], "default"))
def four_ranks(request, tmp_path_factory):
    """A run of maps with holes, and with overlaps that are read collectively."""
    directory = tmp_path_factory.mktemp("four")
    holes = {"file": write_map(directory / "holes.npz", owners(holes=True)), "holes": "allow"}
    cases = [
        {"backend": ["posix", "hdf5"], "decomposition": holes},
        {"backend": "posix", "rearranger": "box", "decomposition": holes},
        {"backend": ["hdf5", "netcdf4", "mpiio"], "transfer": "collective",
         "decomposition": write_overlaps(directory / "overlaps.npz")},
    ]  # fmt: skip
    env = {"OMPI_MCA_io": "^ompio"} if request.param == "ROMIO" else {}
    done = run_experiment(directory, 4, common=COMMON, cases=cases, unsupported="skip",
                          counters=True, env=env)  # fmt: skip
    assert done.status == 0, done.said
    assert done.record["valid"] is True
    return done


def test_overlaps_are_read_collectively_or_refused_with_the_way_out(request, four_ranks):
    done = four_ranks
    library = done.record["provenance"]["mpi_io"]
    if "ROMIO" not in request.node.name and library["library"] == "Open MPI" and library[
        "library_version"].startswith("4."):  # fmt: skip
        (left,) = done.record["left_out"]
        assert left["case"].startswith("netcdf4.")
        assert "or ROMIO (OMPI_MCA_io=^ompio)" in left["reason"]
    else:
        assert done.record["left_out"] == []


def test_calls_are_counted_and_are_those_of_the_map(four_ranks):
    done, who = four_ranks, owners(holes=True)
    each = [len(stretches(who, mine)) for mine in ([0], [1], [2], [3, 4])]
    assert each[1] == 0
    counted = {
        (row["case"], row["phase"], row["counter"]): [float(row["total"]), float(row["largest"])]
        for row in done.counts
    }
    for backend in ("posix", "hdf5"):
        case = done.case(backend=backend, rearranger="none", transfer="independent")
        assert counted[case, "write", "stretches"] == [sum(each), max(each)]
        assert counted[case, "write", "write_calls"] == [sum(each), max(each)]
        assert counted[case, "read", "stretches"] == [sum(each), max(each)]
        told = done.record["cases"][case]["transfer_facts"]["stretches"]
        assert f"5 processes on 4 ranks: 0 to {max(each)} stretches a rank" in told
    through = done.case(backend="posix", rearranger="box")
    assert counted[through, "write", "write_calls"] == [3, 1]  # slabs of 3 rows
    assert "write calls" in (done.out / "summary.md").read_text()
    assert "5 processes on 4 ranks" in (done.out / "summary.md").read_text()


def test_a_stretch_that_is_lost_is_found(tmp_path):
    of_map = {"file": write_map(tmp_path / "map.npz", owners(holes=False))}
    cases = [
        {"backend": ["posix", "netcdf4"]},
        {"backend": "hdf5", "chunks": [[2, 5, 7]], "rearranger": "chunk_owner"},
    ]
    program, common = (PROGRAMS / "lost_stretch.py",), COMMON | {"decomposition": of_map}
    done = run_experiment(tmp_path, 3, program=program, common=common, cases=cases)
    assert done.status == 1, done.said
    assert len(done.record["cases"]) == 3
    for entry in done.record["cases"].values():  # the file of posix ends early
        assert entry["invalid"] or entry["failure"], entry


REFUSED = {
    "ranks share chunks, and zarr loses data then; name rearranger: chunk_owner": {
        "backend": "zarr", "chunks": [2, 5, 7]
    },
    "npy moves boxes only": {"backend": "npy"},
    "chunk_owner needs a chunk shape": {"backend": "hdf5", "rearranger": "chunk_owner"},
    "fewer than the 6 ranks": {"backend": "hdf5", "ranks": 6},
}  # fmt: skip


@pytest.mark.parametrize("why", REFUSED)
def test_what_is_impossible_with_a_map_is_refused_in_one_sentence(tmp_path, why):
    given = dict(REFUSED[why])
    ranks = given.pop("ranks", 4)
    of_map = {"file": write_map(tmp_path / "map.npz", owners(holes=False))}
    path = write_experiment(
        tmp_path, common=COMMON | {"decomposition": of_map}, cases=[given], unsupported="refuse"
    )
    done = pffbench_here("plan", path, "--ranks", ranks)
    assert done.status == 2, done.said
    assert why in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
