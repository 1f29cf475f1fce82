# Copyright (c) 2026, the pffbench developers. See LICENSE for details.
#
# SPDX-License-Identifier: BSD-3-Clause

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyIrisSampleData(PythonPackage):
    """Climate data in netCDF, which pffbench can take as input."""

    homepage = "https://github.com/SciTools/iris-sample-data"
    pypi = "iris-sample-data/iris_sample_data-2.5.2.tar.gz"

    license("OGL-UK-3.0", checked_by="pffbench")

    version("2.5.2", sha256="ce4fcab91eafc5f64dd6ad66c11f4fb9ae57a272c9801fd197be86531e3edd9b")

    with default_args(type="build"):
        depends_on("py-setuptools@45:")
        depends_on("py-setuptools-scm@6.2: +toml")
        depends_on("py-wheel")
