# Copyright (c) 2026, the pffbench developers. See LICENSE for details.
#
# SPDX-License-Identifier: BSD-3-Clause

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyTensorstore(PythonPackage):
    """Reading and writing of large multi-dimensional arrays; the builtin recipe stops at 0.1.54,
    which is older than NumPy 2. Of later versions this is the newest that a Bazel of Spack's
    builds (0.1.78 wants Bazel 8). It was concretized, never built."""

    homepage = "https://google.github.io/tensorstore/"
    pypi = "tensorstore/tensorstore-0.1.76.tar.gz"
    git = "https://github.com/google/tensorstore.git"

    license("Apache-2.0", checked_by="pffbench")

    version("0.1.76", sha256="ed0d565e7a038a84b1b5b5d9f7397caec200b53941d8889f44b7f63dd6abffe7")

    depends_on("c", type="build")
    depends_on("cxx", type="build")

    with default_args(type="build"):
        # .bazelversion asks for 7.6.1, which Spack does not have.
        depends_on("bazel@7.6")
        depends_on("py-setuptools@64:")
        depends_on("py-setuptools-scm@8.1:")

    with default_args(type=("build", "run")):
        depends_on("python@3.10:")
        depends_on("py-ml-dtypes@0.3.1:")
        depends_on("py-numpy@2:")

    def patch(self):
        """The build starts Bazel through bazelisk, which takes tools/bazel where there is one."""
        symlink(self.spec["bazel"].command.path, join_path("tools", "bazel"))
