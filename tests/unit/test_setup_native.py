"""How the set-up recognises an MPI library: by what a linked program loads, under any name."""

import os
import shutil
import subprocess
import sys

import pytest
from test_setup import checkout, start

from launch import sampled

pytestmark = pytest.mark.long

#: Functions of the libraries that the probe program calls or that the set-up looks for.
MPI = ("MPI_Init", "MPI_Finalize", "MPI_Get_library_version")
HDF5 = ("H5open", "H5Pcreate", "H5Pset_fapl_mpio")
NETCDF = ("nc_create_par", "nc_inq_libvers")
HEADERS = {
    "mpi.h": "#define MPI_COMM_WORLD 0\n#define MPI_INFO_NULL 0\nint MPI_Init(), MPI_Finalize();",
    "hdf5.h": "#define H5P_FILE_ACCESS 0\nint H5Pcreate(), H5Pset_fapl_mpio();",
    "H5pubconf.h": "#define H5_HAVE_PARALLEL 1",
    "netcdf.h": "#define NC_NETCDF4 0",
    "netcdf_par.h": "int nc_create_par();",
    "netcdf_meta.h": "#define NC_HAS_PARALLEL4 1",
}


def library(directory, name, functions, *needed):
    """Compile a shared library that has this name and does nothing; return its file."""
    file = directory / name
    source = "".join(f"int {function}() {{ return 0; }}\n" for function in functions)
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-x", "none", f"-Wl,-soname,{name}",
         "-Wl,--no-as-needed", *needed, f"-Wl,-rpath,{directory}", "-o", file],
        input=source, text=True, check=True,
    )  # fmt: skip
    (directory / (name.partition(".so")[0] + ".so")).symlink_to(file)
    return file


def centre(tmp_path, mpi, *, netcdf_mpi=None):
    """Lay out a parallel HDF5 and netCDF-C and a wrapper `cc`, as modules of a Cray do."""
    lib, include, tools = (tmp_path / name for name in ("lib", "include", "bin"))
    for place in (lib, include, tools):
        place.mkdir()
    for name, text in HEADERS.items():
        (include / name).write_text(text + "\n")
    first = library(lib, mpi, MPI)
    second = library(lib, netcdf_mpi, MPI) if netcdf_mpi else first
    library(lib, "libmpifort_gnu_123.so.12", ("mpi_init_",), first)
    hdf5 = library(lib, "libhdf5.so.310", HDF5, first)
    library(lib, "libnetcdf.so.19", NETCDF, hdf5, second)
    wrapper = tools / "cc"
    wrapper.write_text(
        f'#!/bin/bash\nexec gcc -w -I{include} "$@" -Wl,--no-as-needed {first} '
        f"{lib}/libmpifort_gnu_123.so.12 -Wl,-rpath,{lib}\n"
    )
    wrapper.chmod(0o755)
    return {
        "PATH": f"{tools}:{os.environ['PATH']}", "HDF5_DIR": str(tmp_path),
        "NETCDF4_DIR": str(tmp_path), "MPICC": "cc -shared",
    }  # fmt: skip


def find(tmp_path, variables):
    """Start a set-up that ends at the first download; return what it said."""
    place = checkout(tmp_path / "checkout")
    none = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "UV_OFFLINE": "1", "UV_NO_CACHE": "1"}
    return start(place, "setup/bootstrap", PFFBENCH_NO_SYSTEM="1", **none, **variables)


def using(done):
    """Return the line that names what was found."""
    return next((line for line in done.stdout.splitlines() if "] using " in line), done.stderr)


@pytest.mark.parametrize(
    "name", sampled(["libmpi_gnu_123.so.12", "libmpich.so.12"], "libmpich.so.12")
)
def test_an_mpi_of_any_name_is_recognised(tmp_path, name):
    done = find(tmp_path, centre(tmp_path, name))
    here = f"{tmp_path}/bin/cc, HDF5 in {tmp_path}/lib, netCDF-C in {tmp_path}/lib"
    assert using(done).endswith(here)


def test_two_mpi_libraries_in_one_program_are_refused(tmp_path):
    variables = centre(tmp_path, "libmpi_gnu_123.so.12", netcdf_mpi="libmpi.so.40")
    done = find(tmp_path, variables)
    assert done.returncode == 1
    assert "does not load one MPI and one HDF5 but" in done.stderr
    for name in ("libmpi_gnu_123.so.12", "libmpi.so.40"):
        assert f" {tmp_path}/lib/{name} " in done.stderr


def test_a_program_whose_mpi_the_loader_does_not_find_is_refused(tmp_path):
    variables = centre(tmp_path, "libmpi_gnu_123.so.12")
    wrapper = tmp_path / "bin" / "cc"
    (elsewhere := tmp_path / "elsewhere").mkdir()
    library(elsewhere, "libmpi_of_a_module.so.12", MPI)
    wrapper.write_text(wrapper.read_text().replace('"$@"', f'"$@" -L{elsewhere} -lmpi_of_a_module'))
    done = find(tmp_path, variables)
    assert done.returncode == 1
    assert "the loader does not find libmpi_of_a_module.so.12 in" in done.stderr
    assert "CRAY_LD_LIBRARY_PATH" in done.stderr


@pytest.mark.full
def test_mpi_and_hdf5_can_do_without_netcdf_unless_one_is_named(tmp_path):
    variables = centre(tmp_path, "libmpi_gnu_123.so.12")
    (tmp_path / "include" / "netcdf_meta.h").write_text("#define NC_HAS_PARALLEL4 0\n")
    done = find(tmp_path, variables)
    assert done.returncode == 1
    lacks = f"{tmp_path}: no include/netcdf_meta.h with NC_HAS_PARALLEL4 and lib/libnetcdf.so"
    assert lacks in done.stderr
    shutil.rmtree(tmp_path / "checkout")
    done = find(tmp_path, variables | {"NETCDF4_DIR": ""})
    assert using(done).endswith(f"{tmp_path}/bin/cc, HDF5 in {tmp_path}/lib")
    assert "made without the backend netcdf4" in done.stderr


def test_a_compiler_that_is_named_and_not_there_is_not_replaced_by_another(tmp_path):
    done = find(tmp_path, {"MPICC": "mpicc.nowhere"})
    assert done.returncode == 1
    assert "MPICC=mpicc.nowhere cannot link a program against a parallel HDF5" in done.stderr
    assert "MPI compilers (mpicc.nowhere): \n" in done.stderr


def loaded(*files):
    """What a process that has loaded these files takes for MPI libraries."""
    script = (
        "import ctypes, sys\nfrom pffbench.provenance.software import loaded_libraries\n"
        "keep = [ctypes.CDLL(file) for file in sys.argv[1:]]\n"
        "print(*(file.rpartition('/')[2] for file in loaded_libraries().get('libmpi', [])))"
    )
    command = [sys.executable, "-c", script, *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_a_process_knows_its_mpi_libraries_by_any_name_and_not_their_bindings(tmp_path):
    cray = library(tmp_path, "libmpi_gnu_123.so.12", MPI)
    fortran = library(tmp_path, "libmpifort_gnu_123.so.12", ("mpi_init_",), cray)
    other = library(tmp_path, "libmpi.so.40", MPI)
    assert loaded(fortran) == ["libmpi_gnu_123.so.12"]
    assert loaded(fortran, other) == ["libmpi.so.40", "libmpi_gnu_123.so.12"]
    assert loaded() == []
