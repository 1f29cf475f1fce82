# Copyright (c) 2026, the pffbench developers. See LICENSE for details.
#
# SPDX-License-Identifier: BSD-3-Clause

from spack_repo.builtin.packages.py_netcdf4.package import PyNetcdf4 as BuiltinPyNetcdf4

from spack.package import *


class PyNetcdf4(BuiltinPyNetcdf4):
    """The builtin recipe, which also compiles and imports on libraries that the machine brings: a
    netCDF-C 4.9.0 or 4.9.1, which does not announce, or does not export, all that netCDF4-python
    asks for; and an HDF5 whose MPI the recipe would not know of, as an external has no
    dependencies, although hdf5.h includes mpi.h."""

    depends_on("mpi", when="+mpi")

    def flag_handler(self, name, flags):
        injected, environment, build_system = super().flag_handler(name, flags)
        if name == "cflags" and self.spec.satisfies("@1.7: ^netcdf-c@4.9.0:4.9.1"):
            injected.extend(self.compatibility_flags())
        return injected, environment, build_system

    def compatibility_flags(self):
        """Ask the script that `make env` uses, which tries what compiles and links; it and its
        header lie in setup/ and are links here."""
        probe = Executable(join_path(self.package_dir, "netcdf_compat"))
        netcdf, hdf5 = self.spec["netcdf-c"].prefix, self.spec["hdf5"].prefix
        return probe(
            self.spec["mpi"].mpicc, netcdf.include, netcdf.lib, hdf5.include, output=str
        ).split()
