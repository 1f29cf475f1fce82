# Copyright (c) 2026, the pffbench developers. See LICENSE for details.
#
# SPDX-License-Identifier: BSD-3-Clause

from spack_repo.builtin.packages.py_netcdf4.package import PyNetcdf4 as BuiltinPyNetcdf4

from spack.package import *


class PyNetcdf4(BuiltinPyNetcdf4):
    """The builtin recipe, which also compiles and imports with a netCDF-C 4.9.0 or 4.9.1 that the
    machine brings: these do not announce, or do not export, all that netCDF4-python asks for."""

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
