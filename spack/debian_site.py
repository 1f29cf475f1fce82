#!/usr/bin/env python3
"""Describe this Debian or Ubuntu machine to Spack, so that its MPI, HDF5 and netCDF are used.

    python3 spack/debian_site.py [DIRECTORY]

Writes ``packages.yaml`` and ``prefixes/`` into the directory (default: spack/sites/debian beside
this script) and prints what to do next. Spack expects ``include``, ``lib`` and ``bin`` of a package
in one directory, whereas these distributions keep each flavour of HDF5 and netCDF in directories
of its own; a prefix is a directory of links to them. Nothing else is touched. Run it again after
an upgrade of the distribution.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent

#: What `make env` would install too, and what Spack needs besides; the first that is there counts.
NEEDED = (
    ("g++",),
    ("gfortran",),
    ("libopenmpi-dev",),
    ("openmpi-bin",),
    ("libhdf5-openmpi-dev",),
    ("libnetcdf-pnetcdf-dev", "libnetcdf-mpi-dev"),
    ("libopenblas-pthread-dev",),
    ("pkgconf", "pkg-config"),
    ("cmake",),
    ("ninja-build",),
)

PYTHONS = ("python3-dev", "python3.11-dev", "python3.12-dev", "python3.13-dev")

#: Spack's name of what is used as it is, and the package that has its headers or its command.
PLAIN = {
    "autoconf": "autoconf",
    "automake": "automake",
    "bison": "bison",
    "bzip2": "bzip2",
    "cmake": "cmake",
    "curl": "curl",
    "diffutils": "diffutils",
    "findutils": "findutils",
    "flex": "flex",
    "freetype": "libfreetype-dev",
    "gawk": "gawk",
    "gettext": "gettext",
    "git": "git",
    "gmake": "make",
    "libaec": "libaec-dev",
    "libjpeg-turbo": "libjpeg-dev",
    "libpng": "libpng-dev",
    "libtool": "libtool",
    "libyaml": "libyaml-dev",
    "m4": "m4",
    "ninja": "ninja-build",
    "openssl": "libssl-dev",
    "parallel-netcdf": "libpnetcdf-dev",
    "perl": "perl",
    "pkgconf": "pkgconf",
    "qhull": "libqhull-dev",
    "tar": "tar",
    "xz": "xz-utils",
    "zlib": "zlib1g-dev",
    "zstd": "libzstd-dev",
}

#: Where a virtual package has several providers, the one that the distribution has.
CHOICES = {
    "mpi": "openmpi",
    "blas": "openblas",
    "lapack": "openblas",
    "zlib-api": "zlib",
    "jpeg": "libjpeg-turbo",
    "pkgconfig": "pkgconf",
}


@dataclass(frozen=True)
class External:
    """One package that Spack is to take as it is."""

    name: str
    spec: str
    prefix: Path


def package_version(package: str) -> str | None:
    """Return the upstream version of an installed package: ``4.9.0`` of ``1:4.9.0-1+b1``."""
    command = ["dpkg-query", "--show", "--showformat", "${db:Status-Status} ${Version}", package]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    status, _, version = answer.stdout.partition(" ")
    if answer.returncode != 0 or status != "installed":
        return None
    match = re.match(r"(?:\d+:)?(\d+(?:\.\d+)*)", version)
    return match[1] if match else None


def first_installed(packages: tuple[str, ...]) -> tuple[str, str] | None:
    """Return the first installed package and its version."""
    for package in packages:
        version = package_version(package)
        if version is not None:
            return package, version
    return None


def version_of(*packages: str) -> str:
    """Return the version of a package that `missing` has found to be there."""
    found = first_installed(packages)
    assert found is not None, packages
    return found[1]


def usable_python() -> str | None:
    """Return the version of the distribution's Python with headers that is new enough."""
    for package in PYTHONS:
        version = package_version(package)
        if version is not None and tuple(map(int, version.split(".")[:2])) >= (3, 11):
            return version
    return None


def missing() -> list[str]:
    """Return the packages to install first."""
    names = [choices[0] for choices in NEEDED if first_installed(choices) is None]
    return names if usable_python() is not None else [*names, "python3-dev (3.11 or newer)"]


def multiarch() -> str:
    """Return the name of the machine in library paths, such as ``x86_64-linux-gnu``."""
    command = ["/usr/bin/gcc", "-print-multiarch"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def link(place: Path, target: Path) -> None:
    """Make or renew a link; a target that is not there is an error of this script's knowledge."""
    if not target.exists():
        sys.exit(
            f"debian_site.py: {target} was expected and is not there; is its package complete?"
        )
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    place.symlink_to(target)


def openmpi(prefix: Path, libraries: Path) -> str:
    """Make the prefix of Open MPI and return its spec."""
    link(prefix / "include", libraries / "openmpi/include")
    link(prefix / "lib", libraries / "openmpi/lib")
    for name in ("mpicc", "mpicxx", "mpic++", "mpif77", "mpif90", "mpifort", "mpirun", "mpiexec"):
        link(prefix / "bin" / name, Path("/usr/bin") / f"{name}.openmpi")
    link(prefix / "bin/ompi_info", Path("/usr/bin/ompi_info"))
    version = version_of("libopenmpi-dev")
    older = "+cxx+legacylaunchers" if int(version.split(".")[0]) < 5 else ""
    return f"openmpi@{version}+fortran+romio{older}~cuda fabrics=ofi,ucx schedulers=slurm"


def hdf5(prefix: Path, libraries: Path) -> str:
    """Make the prefix of the parallel HDF5 and return its spec."""
    link(prefix / "include", Path("/usr/include/hdf5/openmpi"))
    link(prefix / "lib", libraries / "hdf5/openmpi")
    link(prefix / "bin/h5pcc", Path("/usr/bin/h5pcc.openmpi"))
    for name in ("h5dump", "h5ls", "h5diff", "h5repack", "h5stat"):
        if Path("/usr/bin", name).exists():
            link(prefix / "bin" / name, Path("/usr/bin") / name)
    version = version_of("libhdf5-openmpi-dev")
    subfiling = "~subfiling" if tuple(map(int, version.split(".")[:2])) >= (1, 14) else ""
    return f"hdf5@{version}+mpi+hl+cxx+fortran+shared+tools+szip~java~threadsafe{subfiling}"


def netcdf_c(prefix: Path, libraries: Path) -> str:
    """Make the prefix of the parallel netCDF-C, with an ``nc-config``, and return its spec."""
    found = first_installed(("libnetcdf-pnetcdf-dev", "libnetcdf-mpi-dev"))
    assert found is not None
    package, version = found
    flavour = package.split("-")[1]
    own = libraries / "netcdf" / flavour
    link(prefix / "include", own / "include")
    link(prefix / "lib/libnetcdf.so", own / "libnetcdf.so")
    script = prefix / "bin/nc-config"
    script.parent.mkdir(exist_ok=True)
    script.write_text(
        f"""#!/bin/sh
case $1 in
--version) echo "netCDF {version}" ;;
--prefix) echo "{prefix}" ;;
--includedir) echo "{prefix}/include" ;;
--libdir) echo "{prefix}/lib" ;;
--cflags) echo "-I{prefix}/include -I{prefix.parent}/hdf5/include" ;;
--libs) echo "-L{prefix}/lib -lnetcdf" ;;
--has-hdf5 | --has-nc4 | --has-nc2 | --has-cdf5 | --has-parallel | --has-parallel4) echo yes ;;
--has-*) echo no ;;
esac
"""
    )
    script.chmod(0o755)
    return f"netcdf-c@{version}+mpi+shared{'+' if flavour == 'pnetcdf' else '~'}parallel-netcdf"


def openblas(prefix: Path, libraries: Path) -> str:
    """Make the prefix of OpenBLAS and return its spec."""
    link(prefix / "lib", libraries / "openblas-pthread")
    link(prefix / "include", Path("/usr/include") / libraries.name / "openblas-pthread")
    return f"openblas@{version_of('libopenblas-pthread-dev')}+shared+fortran threads=pthreads"


#: Packages whose files lie apart, and who makes a prefix of them.
SPLIT: dict[str, Callable[[Path, Path], str]] = {
    "openmpi": openmpi,
    "hdf5": hdf5,
    "netcdf-c": netcdf_c,
    "openblas": openblas,
}


def externals(directory: Path) -> Iterator[External]:
    """Make the prefixes and yield every package that Spack need not build."""
    libraries = Path("/usr/lib") / multiarch()
    for name, make in SPLIT.items():
        prefix = directory / "prefixes" / name
        yield External(name, make(prefix, libraries), prefix)
    python = (
        f"python@{usable_python()}+bz2+ctypes+lzma+pyexpat+readline+shared+sqlite3+ssl+uuid+zlib"
    )
    yield External("python", python, Path("/usr"))
    for name, package in PLAIN.items():
        version = package_version(package)
        if version is not None:
            yield External(name, f"{name}@{version}", Path("/usr"))


def lines(found: list[External]) -> Iterator[str]:
    """Write the configuration; by hand, since only the standard library is there."""
    yield "# Written by spack/debian_site.py; a change here is lost when it runs again."
    yield "packages:"
    names = {external.name for external in found}
    for virtual, provider in CHOICES.items():
        if provider in names:
            built = "buildable: false, " if virtual == "mpi" else ""
            yield f"  {virtual}: {{{built}require: [{provider}]}}"
    for external in found:
        yield f"  {external.name}:"
        yield "    buildable: false"
        yield "    externals:"
        yield f'    - spec: "{external.spec}"'
        yield f'      prefix: "{external.prefix}"'


def main() -> int:
    """Write the site, or say what to install first (status 1)."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directory", nargs="?", type=Path, default=HERE / "sites/debian")
    directory = parser.parse_args().directory.resolve()
    if shutil.which("dpkg-query") is None:
        print("debian_site.py: this is no Debian or Ubuntu; see spack/sites", file=sys.stderr)
        return 1
    lacking = missing()
    if lacking:
        print(
            f"debian_site.py: first install: apt-get install {' '.join(lacking)}", file=sys.stderr
        )
        return 1
    found = list(externals(directory))
    (directory / "packages.yaml").write_text("\n".join(lines(found)) + "\n")
    print(f"{directory}/packages.yaml: {len(found)} packages of this machine. Next:")
    print(f"    export PFFBENCH_SPACK_SITE={os.path.relpath(directory, HERE / 'sites')}")
    print("    spack env activate . && spack install")
    return 0


if __name__ == "__main__":
    sys.exit(main())
