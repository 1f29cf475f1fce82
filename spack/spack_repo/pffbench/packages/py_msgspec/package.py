# Copyright (c) 2026, the pffbench developers. See LICENSE for details.
#
# SPDX-License-Identifier: BSD-3-Clause

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyMsgspec(PythonPackage):
    """Serialization and validation of JSON, MessagePack, YAML and TOML by type annotations."""

    homepage = "https://jcristharif.com/msgspec/"
    pypi = "msgspec/msgspec-0.22.0.tar.gz"
    git = "https://github.com/jcrist/msgspec.git"

    license("BSD-3-Clause", checked_by="pffbench")

    version("0.22.0", sha256="0a13624a4969159fe35d8c2a3d377b2b61bbd8585e327440d5e52725affcce38")

    depends_on("c", type="build")

    depends_on("python@3.10:", type=("build", "link", "run"))
    with default_args(type="build"):
        depends_on("py-setuptools@80:")
        depends_on("py-setuptools-scm@8:")
