"""Write files as the benchmark does, or as a user does by hand, and leave them to be looked at.

    mpiexec -n 3 python write_store.py pffbench DIRECTORY EXPERIMENT.yaml
    mpiexec -n 3 python write_store.py by-hand DIRECTORY

The first writes the cases of an experiment through the same workloads and backends as a run, each
into DIRECTORY/NAME, with their names in `question`, separated by blanks.
"""

import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

from pffbench.backends.base import define_arrays
from pffbench.backends.registry import backend_class
from pffbench.data import make_source
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import load_experiment
from pffbench.workloads.registry import workload

COMM = MPI.COMM_WORLD
SHAPE = (6, 8)


def write_all(directory, experiment):
    loaded = load_experiment(experiment)
    make_plan(loaded, COMM.size)  # refuses what is impossible
    names = loaded.experiment.question.split()
    for name, (_, case) in zip(names, loaded.cases, strict=True):
        write(directory / name, case)


def write(directory, case):
    p = case.parameters
    directory.mkdir(exist_ok=True)
    pattern = workload(p.workload)
    backend = backend_class(p.backend)(case.options, p.settings)
    alone = p.files == "per_rank"
    stem = f"rank-{COMM.rank}" if alone else "shared"
    store = backend.create(str(directory / (stem + backend.suffix)), None if alone else COMM)
    arrays = define_arrays(store, pattern.arrays(p, COMM.size).specs(COMM.rank))
    source = make_source(p.source, p.dtype, seed=1)
    for access in pattern.arrays(p, COMM.size).writes(COMM.rank):
        spec, box = access.spec, access.box
        data = np.empty(box.shape, spec.dtype)
        source.fill(data, spec.number, spec.data_start(box), spec.logical_shape)
        arrays[spec.name].writer(box, data, p.transfer == "collective")()
    store.close()
    COMM.Barrier()


def write_by_hand(directory):
    """Write one array a rank, as the libraries' own tutorials do."""
    import h5py
    import netCDF4
    import zarr

    names = [f"array_000_rank_{rank:06d}" for rank in range(COMM.size)]
    mine = names[COMM.rank]
    data = np.full(SHAPE, COMM.rank + 1, "f4")
    with h5py.File(directory / "shared.h5", "w", driver="mpio", comm=COMM) as file:
        datasets = {name: file.create_dataset(name, SHAPE, "f4") for name in names}
        datasets[mine][...] = data
    with h5py.File(directory / f"rank-{COMM.rank}.h5", "w") as file:
        file.create_dataset(mine, SHAPE, "f4")[...] = data
    axes = ("axis0_6", "axis1_8")
    with netCDF4.Dataset(directory / "shared.nc", "w", parallel=True, comm=COMM) as file:
        for axis, n in zip(axes, SHAPE, strict=True):
            file.createDimension(axis, n)
        variables = {name: file.createVariable(name, "f4", axes) for name in names}
        variables[mine][...] = data
    with netCDF4.Dataset(directory / f"rank-{COMM.rank}.nc", "w") as file:
        for axis, n in zip(axes, SHAPE, strict=True):
            file.createDimension(axis, n)
        file.createVariable(mine, "f4", axes)[...] = data
    for zarr_format in (2, 3):
        path = str(directory / f"rank-{COMM.rank}.zarr{zarr_format}")
        group = zarr.create_group(path, zarr_format=zarr_format)
        group.create_array(mine, shape=SHAPE, dtype="f4")[...] = data


if __name__ == "__main__":
    place = Path(sys.argv[2])
    if sys.argv[1] == "pffbench":
        write_all(place, sys.argv[3])
    else:
        write_by_hand(place)
