# Copyright (c) 2026, the pffbench developers. See LICENSE for details.
#
# SPDX-License-Identifier: BSD-3-Clause

import os
import pathlib
import shutil

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *

# The checkout that this recipe belongs to.
_CHECKOUT = pathlib.Path(__file__).resolve().parents[5]


class PyPffbench(PythonPackage):
    """MPI-parallel benchmark of the file formats that scientists write large arrays to: parallel
    HDF5, parallel netCDF4 and Zarr."""

    # What is committed in the checkout; in the environment of spack.yaml, its working tree.
    git = _CHECKOUT.as_uri()

    license("BSD-3-Clause", checked_by="pffbench")

    version("main", branch="main")

    variant("analysis", default=True, description="Jinja2 for pages and programs, pandas")
    variant("data", default=False, description="Real climate data as input")
    variant("filters", default=False, description="Blosc, Zstandard and LZ4 in HDF5 and netCDF-4")
    variant("hdf5_2", default=False, description="HDF5 2 instead of 1.14 or the machine's")
    variant("pnetcdf", default=False, description="Classic netCDF formats in parallel, by PnetCDF")
    variant("tensorstore", default=False, description="TensorStore, beside zarr-python")

    depends_on("py-setuptools@77:", type="build")

    # A launcher of the same MPI is needed to run.
    depends_on("mpi", type=("build", "link", "run"))

    with default_args(type=("build", "run")):
        depends_on("python@3.11:")
        depends_on("py-h5py@3.12: +mpi")
        depends_on("py-mpi4py@4:")
        depends_on("py-msgspec@0.19:")
        depends_on("py-netcdf4@1.6.5: +mpi")
        depends_on("py-numpy@2:")
        depends_on("py-psutil@5.9:")
        depends_on("py-pyyaml@6:")
        depends_on("py-rich@13:")
        depends_on("py-zarr@3.1:3")
        depends_on("py-jinja2@3.1:", when="+analysis")
        depends_on("py-pandas@2.2:", when="+analysis")
        depends_on("py-iris-sample-data@2.5:", when="+data")
        depends_on("py-hdf5plugin@5.1:", when="+filters")
        depends_on("py-tensorstore@0.1.70:", when="+tensorstore")

    # Reached through h5py and netCDF4; named because there must be one of each, with MPI.
    depends_on("hdf5 +mpi")
    depends_on("netcdf-c +mpi")
    depends_on("hdf5@2:", when="+hdf5_2")
    depends_on("netcdf-c +parallel-netcdf", when="+pnetcdf")

    @property
    def import_modules(self):
        modules = ["pffbench", "pffbench.cli", "pffbench.record.run_json", "pffbench_analysis"]
        return [*modules, "pffbench_environments", "pffbench_footprint", "pffbench_studies"]

    @run_before("install")
    def forget_earlier_build(self):
        """In a develop build, setuptools would install what its last build left in the checkout,
        deleted modules too."""
        shutil.rmtree(os.path.join(self.build_directory, "build", "lib"), ignore_errors=True)

    def test_version(self):
        """the command starts"""
        pffbench = which(self.prefix.bin.pffbench, required=True)
        pffbench("--version")

    def test_plan(self):
        """the default experiment is valid and planned"""
        pffbench = which(self.prefix.bin.pffbench, required=True)
        text = pffbench("plan", output=str.split, error=str.split)
        assert all(name in text for name in ("hdf5", "netcdf4", "zarr"))

    def test_comparison(self):
        """one process writes, reads and verifies in every format"""
        python = self.spec["python"].command
        python(
            *["-m", "pffbench", "run", "--out", "results", "--scratch", "."],
            *["--set", "repetitions=1"],
        )
