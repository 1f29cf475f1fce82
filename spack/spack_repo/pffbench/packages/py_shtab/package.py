# Copyright (c) 2026, the pffbench developers. See LICENSE for details.
#
# SPDX-License-Identifier: BSD-3-Clause

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyShtab(PythonPackage):
    """Completion of commands in shells; the builtin recipe stops at 1.3.4."""

    homepage = "https://docs.iterative.ai/shtab/"
    pypi = "shtab/shtab-1.7.1.tar.gz"

    license("Apache-2.0", checked_by="pffbench")

    version("1.7.1", sha256="4e4bcb02eeb82ec45920a5d0add92eac9c9b63b2804c9196c1f1fdc2d039243c")

    depends_on("python@3.7:", type=("build", "run"))
    with default_args(type="build"):
        depends_on("py-setuptools@42:")
        depends_on("py-setuptools-scm@3.4: +toml")
        depends_on("py-wheel")
