"""A stand-in for a Cray, made of Debian's MPI, HDF5 and netCDF-C.

It has what the set-up and the job scripts meet on a Cray: libraries of other names, a compiler
wrapper ``cc``, modules that bring all of it, no ``mpiexec``, and an ``srun`` that starts programs
in a job only.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Debian's names of the libraries and Cray's.
RENAMED = {
    r"libmpi\.so\.": "libmpi_gnu_123.so.12",
    r"libmpi_cxx\.so\.": "libmpicxx_gnu_123.so.12",
    r"libhdf5_openmpi\.so\.": "libhdf5_parallel_gnu_123.so.310",
    r"libhdf5_openmpi_hl\.so\.": "libhdf5_hl_parallel_gnu_123.so.310",
    r"libpnetcdf\.so\.": "libpnetcdf_gnu_123.so.4",
    r"libnetcdf_(p?netcdf|mpi)\.so\.": "libnetcdf_parallel_gnu_123.so.19",
}
#: Under these names the linker looks for the libraries.
LINKS = {
    "libmpi_gnu_123.so": "libmpi_gnu_123.so.12",
    "libhdf5.so": "libhdf5_parallel_gnu_123.so.310",
    "libhdf5_hl.so": "libhdf5_hl_parallel_gnu_123.so.310",
    "libnetcdf.so": "libnetcdf_parallel_gnu_123.so.19",
}
#: What a Cray has no program of.
FOREIGN = re.compile(
    r"(mpi(?!on)|orte|ompi|opal|shmem|osh|hydra|h5p?cc|n[cf].*-config|pkg-?config|pkgconf|srun$).*"
)
MODULES = {
    "PrgEnv-gnu": "export PE_ENV=GNU CRAYPE_VERSION=2.7.30",
    # Open MPI would take Debian's components, which need the library of the other name.
    "cray-mpich": "export MPICH_DIR={here} OMPI_MCA_mca_base_component_path={here}/lib/components "
    "LD_LIBRARY_PATH={here}/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}",
    "cray-hdf5-parallel": "export HDF5_DIR={here} HDF5_ROOT={here}",
    "cray-netcdf-hdf5parallel": "export NETCDF_DIR={here}",
}
INIT = """\
# What a login shell and, by BASH_ENV, every script defines, as Lmod does.
module() {{
    local name
    if [[ $1 != load ]]; then return 0; fi
    for name in "${{@:2}}"; do
        if [[ ! -r {here}/modules/$name ]]; then
            echo "Lmod has detected the following error:" \\
                "The following module(s) are unknown: \\"$name\\"" >&2
            return 1
        fi
        . "{here}/modules/$name"
        export LOADEDMODULES=${{LOADEDMODULES:+$LOADEDMODULES:}}$name
    done
}}
"""
WRAPPER = """\
#!/bin/bash
if [[ -z ${{MPICH_DIR:-}} ]]; then
    echo "cc: no MPI is loaded" >&2
    exit 1
fi
exec {gcc} -I{here}/include "$@" -L{here}/lib -Wl,--as-needed -lmpi_gnu_123
"""
SRUN = """\
#!/bin/bash
if [[ -z ${{SLURM_JOB_ID:-}} ]]; then
    echo "srun: error: Unable to allocate resources: Invalid account or" \\
        "account/partition combination specified" >&2
    exit 1
fi
exec {srun} "$@"
"""
PROFILE = """\
# shellcheck shell=bash disable=SC2034
SITE_SBATCH=() SITE_TASKS_PER_NODE= SITE_MPI=auto SITE_SRUN=() SITE_LOCAL=/tmp SITE_DROP_HOOK=
site_environment() {{ module load {modules}; }}
site_scratch() {{ echo {here}; }}
site_stripe() {{ lustre_stripe "$@"; }}
"""


def lacking() -> str | None:
    """Say what the stand-in cannot be made of here; None when all is there."""
    for name in ("patchelf", "gcc", "ompi_info", "srun"):
        if shutil.which(name) is None:
            return f"{name} is not installed"
    if not _debian_libraries():
        return "the libraries of this environment are not Debian's"
    return None


class Cray:
    """The stand-in in a directory that login and compute nodes see, with a checkout on it.

    Parameters
    ----------
    directory : Path
        Empty; everything is made in it.
    """

    def __init__(self, directory: Path) -> None:
        self.here = directory
        self.lib = directory / "lib"
        self.checkout = directory / "pffbench"
        self.profile = directory / "cray.sh"
        self._lay_libraries()
        self._lay_headers()
        self._lay_programs()
        self._lay_checkout()

    def environment(self, **changes: str) -> dict[str, str]:
        """Return the whole environment of a user who has just logged in."""
        network = r"PIP_.*|UV_.*|SSL_.*|.*_(CA_BUNDLE|proxy|PROXY)"
        kept = re.compile(rf"(HOME|LANG|USER|LOGNAME|{network})$")
        cache = os.environ.get("XDG_CACHE_HOME", f"{os.environ['HOME']}/.cache")
        return {
            "UV_CACHE_DIR": f"{cache}/uv",
            **{name: value for name, value in os.environ.items() if kept.match(name)},
            "PATH": f"{self.here}/bin:{self.here}/system",
            "BASH_ENV": f"{self.here}/init.sh",
            "XDG_CACHE_HOME": f"{self.here}/cache",
            **changes,
        }

    def shell(self, script: str, **changes: str) -> list[str]:
        """Return a command that runs a script as this user, whoever starts it."""
        variables = (f"{name}={value}" for name, value in self.environment(**changes).items())
        return ["env", "-i", *variables, "bash", "-euo", "pipefail", "-c", script]

    def login(self, script: str, timeout: float = 900) -> subprocess.CompletedProcess[str]:
        """Run a script on the login node, which has this machine's network."""
        return subprocess.run(
            self.shell(script), cwd=self.checkout, capture_output=True, text=True, timeout=timeout,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def _lay_libraries(self) -> None:
        originals = _debian_libraries()
        names = {soname: _new_name(soname) for soname in originals}
        for soname, file in originals.items():
            copy = self.lib / str(names[soname])
            copy.parent.mkdir(exist_ok=True)
            shutil.copy(file, copy)
            _patch(copy, names, ("--set-soname", copy.name), ("--set-rpath", str(self.lib)))
        for link, target in LINKS.items():
            (self.lib / link).symlink_to(target)
        (components := self.lib / "components").mkdir()
        told = _output("ompi_info", "--parsable", "--path", "pkglibdir").strip()
        for file in Path(told.rpartition(":")[2]).glob("*.so"):
            if "monitoring" not in file.name:  # these need a library that needs Debian's MPI
                _patch(Path(shutil.copy(file, components)), names, ("--set-rpath", str(self.lib)))

    def _lay_headers(self) -> None:
        (include := self.here / "include").mkdir()
        of_mpi = map(Path, _output("mpicc", "-showme:incdirs").split())
        others = [
            directory
            for pattern in ("*/hdf5/openmpi/include", "*/netcdf/*/include")
            for directory in Path("/usr/lib").glob(pattern)
        ]
        for directory in [*of_mpi, *others]:
            for file in directory.iterdir():
                if not (include / file.name).exists():
                    (include / file.name).symlink_to(file)

    def _lay_programs(self) -> None:
        (system := self.here / "system").mkdir()
        for directory in ("/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin"):
            for file in Path(directory).iterdir():
                if not FOREIGN.match(file.name) and not (system / file.name).is_symlink():
                    (system / file.name).symlink_to(file)
        (self.here / "modules").mkdir()
        for name, text in MODULES.items():
            (self.here / "modules" / name).write_text(text.format(here=self.here) + "\n")
        (self.here / "init.sh").write_text(INIT.format(here=self.here))
        self.profile.write_text(PROFILE.format(here=self.here, modules=" ".join(MODULES)))
        (tools := self.here / "bin").mkdir()
        for name, text in (("cc", WRAPPER), ("srun", SRUN)):
            real = {"gcc": shutil.which("gcc"), "srun": shutil.which("srun")}
            (tools / name).write_text(text.format(here=self.here, **real))
            (tools / name).chmod(0o755)

    def _lay_checkout(self) -> None:
        listed = _output("git", "-C", ROOT, "ls-files", "-co", "--exclude-standard")
        for name in listed.splitlines():
            file = ROOT / name
            if not name.startswith(("docs/", "tests/")) and (file.is_file() or file.is_symlink()):
                (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, self.checkout / name, follow_symlinks=False)


def _debian_libraries() -> dict[str, Path]:
    """Return the files of the libraries that this environment uses, by their sonames."""
    modules = [*Path(sys.prefix).glob("lib/python*/site-packages/netCDF4/_netCDF4*.so")]
    if not modules:
        return {}
    pairs = re.findall(r"^\s*(\S+) => (/\S+)", _output("ldd", modules[0]), re.MULTILINE)
    return {soname: Path(file) for soname, file in pairs if _new_name(soname)}


def _new_name(soname: str) -> str | None:
    return next((new for old, new in RENAMED.items() if re.match(old, soname)), None)


def _patch(file: Path, names: dict[str, str | None], *changes: tuple[str, ...]) -> None:
    """Let a file need the libraries by their new names."""
    needed = _output("patchelf", "--print-needed", file).split()
    file.chmod(0o755)
    replaced = [("--replace-needed", old, str(names[old])) for old in set(needed) & set(names)]
    for change in [*changes, *replaced]:  # one at a time: patchelf 0.14 garbles several
        subprocess.run(["patchelf", *change, file], check=True)


def _output(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
