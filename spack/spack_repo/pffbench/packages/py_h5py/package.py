# Copyright (c) 2026, the pffbench developers. See LICENSE for details.
#
# SPDX-License-Identifier: BSD-3-Clause

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyH5py(PythonPackage):
    """HDF5 from Python, with MPI; the builtin recipe stops at HDF5 1.14, although h5py has worked
    on HDF5 2 since 3.15. Its other versions and a serial build are not here."""

    homepage = "https://www.h5py.org/"
    pypi = "h5py/h5py-3.16.0.tar.gz"
    git = "https://github.com/h5py/h5py.git"

    license("BSD-3-Clause", checked_by="pffbench")

    version("3.16.0", sha256="a0dbaad796840ccaa67a4c144a0d0c8080073c34c76d5a6941d6818678ef2738")

    # Other recipes ask for it by name.
    variant("mpi", default=True, values=(True,), description="Build with MPI support")

    depends_on("c", type="build")
    depends_on("hdf5@1.10.7:1.14,2 +hl +mpi")
    depends_on("mpi")

    with default_args(type="build"):
        depends_on("py-cython@3")
        depends_on("py-packaging@23:")
        depends_on("py-pkgconfig@1.5.5:")
        depends_on("py-setuptools@77.0.1:")

    with default_args(type=("build", "run")):
        depends_on("python@3.10:")
        depends_on("py-mpi4py@3.1.2:")
        depends_on("py-numpy@1.25:2")

    def setup_build_environment(self, env: EnvironmentModifications) -> None:
        env.set("CC", self.spec["mpi"].mpicc)
        env.set("HDF5_DIR", self.spec["hdf5"].prefix)
        env.set("HDF5_MPI", "ON")
        # Otherwise setup.py asks for the versions of numpy and mpi4py that its wheels need.
        env.set("H5PY_SETUP_REQUIRES", "0")
