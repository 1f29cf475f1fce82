"""Check that this Python has a working parallel stack: ``mpiexec -n 2 python check_stack.py``.

An import is not enough: a serial HDF5 can be imported as well as a parallel one, and two copies of
HDF5 in one process may run for hours before they write wrong bytes. So every rank writes and reads
its part of a shared file through both libraries. Each problem is printed on one line, and the exit
status is 0 only if there is none.
"""

from __future__ import annotations

import argparse
import importlib
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

# The environment may be without pffbench. The module imported here needs the standard library only.
sys.path.append(str(Path(__file__).resolve().parents[1] / "src"))

from pffbench.proc import files_defining

ROWS, COLUMNS = 64, 32
#: Functions that identify the copies of a library under any file name.
FUNCTIONS = {"HDF5": "H5open", "MPI": "MPI_Get_library_version", "netCDF-C": "nc_inq_libvers"}


def problems_of_imports(netcdf: bool) -> list[str]:
    """Return the problems of imports: missing, serial or doubled libraries."""
    problems = []
    for name in ("numpy", "h5py", *["netCDF4"] * netcdf, "zarr"):
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 - any error of an import is a problem
            problems.append(f"{name} cannot be imported: {type(error).__name__}: {error}")
    modules = sys.modules
    if "h5py" in modules and not modules["h5py"].get_config().mpi:
        problems.append("h5py is built without MPI")
    if "netCDF4" in modules and not getattr(modules["netCDF4"], "__has_parallel4_support__", False):
        problems.append("netCDF4 is built without parallel HDF5 support")
    for label in ("HDF5", "MPI"):
        copies = files_defining(FUNCTIONS[label])
        if len(copies) > 1:
            problems.append(
                f"{len(copies)} different {label} libraries in one process: " + ", ".join(copies)
            )
    return problems


def write_and_read(
    comm: Any, label: str, access: Callable[[str, str, Any, bool], Any], path: str
) -> str | None:
    """Write this rank's rows and read its neighbour's with both transfers; return the problem."""
    import numpy as np

    def rows_of(rank: int) -> Any:
        first = rank * ROWS * COLUMNS
        return np.arange(first, first + ROWS * COLUMNS, dtype="i4").reshape(ROWS, COLUMNS)

    for collective in (False, True):
        name = f"{label}, {'collective' if collective else 'independent'} transfer"
        try:
            access(path, "write", rows_of(comm.rank), collective)
            comm.Barrier()
            neighbour = (comm.rank + 1) % comm.size
            values = access(path, "read", neighbour, collective)
        except Exception as error:  # noqa: BLE001 - reported, and the job ended, below
            # The other ranks may be waiting inside the library, and only an abort ends them.
            print(f"{name} failed on rank {comm.rank}: {type(error).__name__}: {error}")
            sys.stdout.flush()
            comm.Abort(1)
        right = bool(np.array_equal(values, rows_of(neighbour)))
        if not comm.allreduce(right, op=_mpi().LAND):
            return f"{name}: the values read differ from the values written"
        comm.Barrier()
        if comm.rank == 0:
            Path(path).unlink()
        comm.Barrier()
    return None


def _mpi() -> Any:
    return importlib.import_module("mpi4py.MPI")


def h5py_access(path: str, action: str, data: Any, collective: bool) -> Any:
    """Write this rank's rows (array ``data``) or read the rows of rank ``data`` with h5py."""
    import contextlib

    import h5py

    comm = _mpi().COMM_WORLD
    with h5py.File(path, "w" if action == "write" else "r", driver="mpio", comm=comm) as file:
        if action == "write":
            dataset = file.create_dataset("x", (comm.size * ROWS, COLUMNS), "i4")
            with dataset.collective if collective else contextlib.nullcontext():
                dataset[comm.rank * ROWS : (comm.rank + 1) * ROWS] = data
            return None
        dataset = file["x"]
        with dataset.collective if collective else contextlib.nullcontext():
            return dataset[data * ROWS : (data + 1) * ROWS]


def netcdf4_access(path: str, action: str, data: Any, collective: bool) -> Any:
    """Write this rank's rows (array ``data``) or read the rows of rank ``data`` with netCDF4."""
    import netCDF4

    comm = _mpi().COMM_WORLD
    mode: Literal["w", "r"] = "w" if action == "write" else "r"
    with netCDF4.Dataset(path, mode, parallel=True, comm=comm, info=_mpi().Info()) as file:
        if action == "write":
            file.createDimension("y", comm.size * ROWS)
            file.createDimension("x", COLUMNS)
            variable = file.createVariable("v", "i4", ("y", "x"))
            variable.set_collective(collective)
            variable[comm.rank * ROWS : (comm.rank + 1) * ROWS] = data
            return None
        variable = file["v"]
        variable.set_auto_maskandscale(False)
        variable.set_collective(collective)
        return variable[data * ROWS : (data + 1) * ROWS]


def check_alone(netcdf: bool) -> list[str]:
    """Return the problems that are visible without MPI, which a login node may forbid."""
    try:
        importlib.import_module("mpi4py").rc.initialize = False
        _mpi()
    except Exception as error:  # noqa: BLE001 - a missing libmpi is a RuntimeError
        return [f"mpi4py cannot load MPI: {type(error).__name__}: {error}"]
    return problems_of_imports(netcdf)


def check(ranks: int, directory: str, netcdf: bool) -> list[str]:
    """Return the problems of the stack, the same on every rank."""
    try:
        mpi = _mpi()
    except Exception as error:  # noqa: BLE001 - a missing libmpi is a RuntimeError
        return [f"mpi4py cannot start MPI: {type(error).__name__}: {error}"]
    comm = mpi.COMM_WORLD
    if comm.size != ranks:
        # Each process would be a separate job without a neighbour.
        return [
            f"the launcher started {ranks} ranks but MPI sees {comm.size}: the launcher does not "
            "belong to the MPI library " + ", ".join(files_defining(FUNCTIONS["MPI"]))
        ]
    everywhere = comm.allgather(problems_of_imports(netcdf))
    problems = sorted({text for part in everywhere for text in part})
    if problems:
        return problems
    temporary = tempfile.mkdtemp(prefix="check-", dir=directory) if comm.rank == 0 else None
    temporary = comm.bcast(temporary)
    for label, access in (("h5py", h5py_access), ("netCDF4", netcdf4_access))[: 1 + netcdf]:
        problem = write_and_read(comm, label, access, f"{temporary}/{label}.file")
        if problem:
            problems.append(problem)
    comm.Barrier()
    if comm.rank == 0:
        shutil.rmtree(temporary, ignore_errors=True)
    return problems


def summary(netcdf: bool) -> str:
    """Return one line with the versions and libraries that were checked."""
    import h5py
    import zarr

    mpi = (_mpi().Get_library_version()).replace("\0", "").splitlines()[0].partition(",")[0]
    hdf5 = ", ".join(files_defining(FUNCTIONS["HDF5"]))
    modules, libraries = f"h5py {h5py.__version__} uses", f"HDF5 {h5py.version.hdf5_version}"
    if netcdf:
        import netCDF4

        modules = f"h5py {h5py.__version__} and netCDF4 {netCDF4.__version__} share"
        libraries += f", netCDF-C {netCDF4.__netcdf4libversion__}"
    return f"{modules} {hdf5} ({libraries}, {mpi}); zarr {zarr.__version__}"


def main() -> int:
    """Run the check and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--ranks", type=int, default=2, help="ranks that the launcher starts")
    parser.add_argument("--dir", default=None, help="where the test files go (default: temporary)")
    parser.add_argument(
        "--watch", help="write the paths of the checked libraries to this file, one per line"
    )
    parser.add_argument(
        "--no-mpi", action="store_true", help="check the libraries only, in one process"
    )
    parser.add_argument(
        "--no-netcdf", action="store_true", help="the environment is made without netCDF4"
    )
    options = parser.parse_args()
    netcdf = not options.no_netcdf
    if options.no_mpi:
        problems = check_alone(netcdf)
    else:
        problems = check(options.ranks, options.dir, netcdf)
    started = "mpi4py.MPI" in sys.modules and not options.no_mpi
    rank = _mpi().COMM_WORLD.rank if started else 0
    if rank == 0:
        for problem in problems:
            print(problem)
        if not problems:
            print(summary(netcdf))
            if options.watch:
                files = [f for name in FUNCTIONS.values() for f in files_defining(name)]
                Path(options.watch).write_text("".join(f"{f}\n" for f in files), "utf-8")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
