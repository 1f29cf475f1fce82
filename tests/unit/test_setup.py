"""The set-up's decisions and messages, without network, compilers or installations."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from launch import cannot_run, sampled

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
SETUP = ROOT / "setup"
#: Without what MPI leaves in the process's own environment once any test has started it in here:
#: a nested mpiexec would take itself for a rank. Python's copy was made before.
PLAIN = dict(os.environ)
#: Of `. .build/env.sh` and the user, which a set-up would follow.
OWN = ("VIRTUAL_ENV", "PFFBENCH_", "MPICC", "HDF5_", "NETCDF", "SPACK_ENV", "LOADEDMODULES")
#: Without a backslash, which netCDF-C replaces in paths.
HOSTILE = "it's `touch PWN` $(touch PWN) \""


def program(directory, name, body):
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / name
    file.write_text(f"#!/bin/bash\n{body}\n")
    file.chmod(0o755)


def checkout(directory, tools=True):
    """Copy what the set-up needs: it leaves .venv and .build in the checkout.

    With `tools` it has the uv of this checkout, which it would install anew in ten seconds.
    """
    directory.mkdir(parents=True)
    if tools and (ROOT / ".build" / "tools").exists():
        (directory / ".build").mkdir()
        (directory / ".build" / "tools").symlink_to(ROOT / ".build" / "tools")
    for name in ("setup", "src", "analysis", "configs"):
        ignored = shutil.ignore_patterns("*.egg-info")  # what is compiled stays so
        shutil.copytree(ROOT / name, directory / name, symlinks=True, ignore=ignored)
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, directory)
    return directory


def start(place, command, before=(), **variables):
    """Run a command of a checkout in the environment of a user who has set nothing."""
    kept = {name: value for name, value in PLAIN.items() if not name.startswith(OWN)}
    return subprocess.run(
        [*before, "bash", "-c", command], cwd=place, env={**kept, **variables},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=550,
    )  # fmt: skip


def function(script, tmp_path):
    """Run a piece of bash with the functions that the scripts share."""
    common = f". {SETUP}/common.sh; ROOT=$PWD BUILD=$PWD/.build VENV=$PWD/.venv;"
    return start(tmp_path, common + script, HOME=str(tmp_path))


# --- the lock files


def pins(name, python):
    """Return the versions that a lock file has for a Python."""
    found = {}
    for line in (SETUP / name).read_text().splitlines():
        requirement = Requirement(line)  # a hash or an address would tie the lock to one index
        if not requirement.marker or requirement.marker.evaluate({"python_full_version": python}):
            (version,) = requirement.specifier
            found[requirement.name] = version.version
    return found


@pytest.mark.parametrize("python", ["3.11.2", "3.13.5"])
def test_every_dependency_is_locked_at_an_allowed_version(python):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    locked = pins("requirements.lock", python)
    for requirement in map(Requirement, (entry for group in groups for entry in group)):
        name = requirement.name.lower()
        if name != "versioned-hdf5":  # its wheels cannot be used beside a parallel h5py
            assert locked.get(name, "none") in requirement.specifier, f"setup/lock --keep: {name}"
    build = pins("build.lock", python)
    assert [build[name] for name in ("numpy", "mpi4py")] == [locked["numpy"], locked["mpi4py"]]


# --- the scripts


def test_shellcheck():
    if not shutil.which("shellcheck"):
        cannot_run("shellcheck is not installed")
    names = ("bootstrap", "run", "env", "study", "lock", "test-tools", "netcdf_compat")
    command = ["shellcheck", "-x", *(SETUP / name for name in names), *(ROOT / "jobs").glob("*.sh"),
               ROOT / ".ci" / "run"]  # fmt: skip
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_help_lists_every_target():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split()
    shown = subprocess.run(["make", "-s", "-C", ROOT], capture_output=True, text=True).stdout
    for target in targets:
        assert f"make {target} " in shown


def test_a_wrong_option_or_name_is_refused_before_anything_is_made():
    refused = {
        "setup/bootstrap --test": (1, "setup/bootstrap has one option, --login"),
        f"setup/env {'a' * 300} h5py": (2, "is not a valid name: up to 100 letters"),
        "setup/env new --upgrade": (2, "'--upgrade' is not a requirement"),
        "setup/env new": (2, "give a name and at least one requirement"),
    }
    for command, (status, text) in refused.items():
        done = start(ROOT, command)
        assert (done.returncode, done.stdout) == (status, "")
        assert text in done.stderr


def test_a_failed_step_shows_the_compilers_error_and_the_log(tmp_path):
    script = """
    build() {
        echo "src/thing.c:12:3: fatal error: hdf5.h: No such file or directory"
        for i in {1..4000}; do echo "a traceback of the build tool, line $i"; done
        return 3
    }
    step thing "building thing" build || echo "status $?"
    """
    result = function(script, tmp_path)
    assert "building thing (log: .build/logs/thing.log)" in result.stdout
    assert "status 3" in result.stdout
    assert "fatal error: hdf5.h" in result.stderr
    assert f"the whole log: {tmp_path}/.build/logs/thing.log" in result.stderr
    assert len(result.stderr.splitlines()) < 40


def test_a_checkout_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / ".build").write_text("not a directory")
    done = function('lock "$BUILD/lock"', tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.strip().splitlines()
    assert re.search(r"/\.build/lock cannot be written \([A-Z][a-z ]+\)\. Make the", line), line


def test_a_second_set_up_waits_for_the_first(tmp_path):
    script = (
        'lock "$BUILD/lock"; touch told; (exec 9>&-; lock "$BUILD/lock"; echo second) >>told &'
        "until grep -q waiting told; do sleep 0.1; done;"
        "echo first >>told; exec 9>&-; wait; cat told"
    )
    said = function(script, tmp_path).stdout.splitlines()
    assert [line.rpartition(" ")[2] for line in said] == ["it", "first", "second"]


# --- what is missing


@pytest.fixture
def bare_debian(tmp_path):
    """A PATH with a package system that has nothing installed, and without compilers of MPI."""
    tools = tmp_path / "tools"
    tools.mkdir()
    wanted = "awk basename bash cat cut dirname env find flock grep id mkdir rm sed sha256sum sort"
    for name in f"{wanted} paste stat tail touch xargs".split():
        (tools / name).symlink_to(shutil.which(name))
    for name in ("dpkg-query", "apt-get", "apt-cache", "sudo"):
        program(tools, name, "exit 1")
    return str(tools)


def test_without_the_right_one_message_names_the_packages(tmp_path, bare_debian):
    place = checkout(tmp_path / "checkout")
    done = start(place, "setup/bootstrap", PATH=bare_debian, PFFBENCH_NO_SYSTEM="1")
    assert done.returncode == 1
    assert done.stderr.count("pffbench set-up:") == 1
    command = re.search(r"^ +apt-get update && apt-get install (.*)", done.stderr, re.M)[1]
    assert {"libopenmpi-dev", "libhdf5-openmpi-dev", "gcc"} <= set(command.split())
    assert "MPI compilers (mpicc, mpicc.openmpi, mpicc.mpich, cc): \n" in done.stderr
    assert "PFFBENCH_PYTHON" in done.stderr


def test_without_the_right_a_warning_names_the_packages_of_tests(tmp_path, bare_debian):
    place = checkout(tmp_path / "checkout")
    (place / ".venv").mkdir()
    (place / ".venv" / ".pffbench-kind").write_text("private\n")
    done = start(place, "setup/test-tools", PATH=bare_debian, PFFBENCH_NO_SYSTEM="1")
    assert done.returncode == 0, done.stderr
    assert "apt-get install --no-install-recommends" in done.stderr
    assert "hdf5-tools" in done.stderr
    assert "PFFBENCH_NO_SYSTEM is set" in done.stderr


@pytest.mark.full
def test_without_network_the_set_up_ends_at_once_and_says_why(tmp_path):
    alone = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
    if subprocess.run([*alone, "true"], capture_output=True).returncode:
        cannot_run("no process may be started without network here")
    done = start(
        checkout(tmp_path / "checkout", tools=False), "make env", alone, HOME=str(tmp_path),
        PFFBENCH_NO_SYSTEM="1", PIP_NO_CACHE_DIR="1", PIP_FIND_LINKS="",
    )  # fmt: skip
    assert done.returncode != 0
    assert done.stderr.count("pffbench set-up") == 1
    assert "no package index can be reached" in done.stderr


def test_old_bindings_of_an_active_environment_are_refused(tmp_path):
    lock = tmp_path / "lock"
    lock.write_text("numpy==2.4.6\nno-such-helper==1.0\npytest==9.0\n")
    project = tmp_path / "pyproject.toml"

    def missing(lowest):
        project.write_text(f'[project]\ndependencies = ["numpy>={lowest}", "pytest>=8"]\n')
        command = [sys.executable, SETUP / "missing.py", lock, project]
        return subprocess.run(command, capture_output=True, text=True)

    good, bad = missing("2.0"), missing("99.1")
    assert (good.returncode, good.stdout) == (0, "no-such-helper==1.0\n")
    assert bad.returncode == 1
    assert re.search(r"numpy .* \(needed: >= 99.1\)", bad.stderr)
    assert "numpy" not in bad.stdout


# --- an environment over the one of these tests


@pytest.mark.parallel
@pytest.mark.parametrize("tools", sampled([True, False], True), ids=["uv", "no uv"])
def test_an_active_environment_is_used_and_found_again(tmp_path, tools):
    place = checkout(tmp_path / HOSTILE, tools)
    active = {"VIRTUAL_ENV": sys.prefix}
    (place / ".venv").mkdir()
    done = start(place, "setup/bootstrap --login", **active)  # as without it, but for the ranks
    assert done.returncode == 1
    assert ".venv exists and was not made by this set-up, so it is left alone" in done.stderr
    (place / ".venv").rmdir()

    done = start(place, "setup/bootstrap", **active)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "it works and is used as it is: h5py " in done.stdout
    assert done.stdout.endswith("ready; to use it in this shell: . .build/env.sh\n")

    # Nothing is made again, neither by the next command nor in a shell that uses it.
    inside = ". .build/env.sh; setup/bootstrap; pffbench --version; type -P pffbench"
    done = start(place, f"setup/bootstrap; {inside}", **active)
    version, path = done.stdout.splitlines()
    assert version.startswith("pffbench ")
    assert path == f"{place}/.venv/bin/pffbench"
    assert not list(place.rglob("PWN"))


@pytest.mark.full
@pytest.mark.parallel
def test_at_a_login_node_no_program_of_mpi_is_started(tmp_path):
    place = checkout(tmp_path / "checkout")
    login = {"PFFBENCH_PYTHON": sys.executable, "PFFBENCH_MPIEXEC": "false"}
    done = start(place, "setup/bootstrap", **login)
    assert done.returncode == 1
    assert "has no working parallel stack" in done.stderr
    done = start(place, "setup/bootstrap --login", **login)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "In a job: srun -n 2 .venv/bin/python setup/check_stack.py" in done.stdout
    # The launcher that was named is kept, so the job makes nothing again.
    done = start(place, "setup/bootstrap", PFFBENCH_PYTHON=sys.executable)
    assert (done.returncode, done.stdout) == (0, "")


# --- netCDF-C's header and what it leaves out


@pytest.mark.parametrize(
    ("version", "announced", "linkable", "expected"),
    [
        # 4.9.0 as some distributions ship it: the functions without their macros, and no nc_rc_set.
        ((4, 9), (), ("nc_def_var_bzip2", "nc_def_var_blosc"), {"BZIP2", "BLOSC", "RC"}),
        # 4.9.2: all there and all announced.
        ((4, 9), ("NC_HAS_BZ2", "NC_HAS_BLOSC"), ("nc_rc_set",), set()),
        # 4.8.1: nothing there, nothing needed: netCDF4-python has stand-ins for old releases.
        ((4, 8), (), (), set()),
    ],
)
def test_compatibility_header(tmp_path, version, announced, linkable, expected):
    include = tmp_path / "include"
    include.mkdir()
    macros = [f"NC_VERSION_MAJOR {version[0]}", f"NC_VERSION_MINOR {version[1]}"]
    macros += [f"{name} 0" for name in announced]
    (include / "netcdf_meta.h").write_text("".join(f"#define {macro}\n" for macro in macros))
    names = "|".join(linkable) or "nothing"
    # The stand-in for the compiler "links" just the sources that use a named function.
    search = f'for a; do [[ $a != *.c ]] || exec grep -qE "{names}" "$a"; done; exit 1'
    program(tmp_path, "cc", search)
    command = [SETUP / "netcdf_compat", tmp_path / "cc", include, tmp_path, include]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"-DPFFBENCH_NC_(BZIP2|BLOSC|RC)", output)) == expected
    assert ("netcdf_compat.h" in output) == bool(expected)


# --- MPI's variables and the proof of the stack


def test_variables_of_mpi_are_defaults_and_not_set_in_a_job(tmp_path):
    def variables(**given):
        words = ["env", "-i", *(f"{name}={value}" for name, value in given.items()), "PATH=/bin"]
        done = start(tmp_path, f"{shlex.join(words)} sh -c '. {SETUP}/mpi-env.sh; env'")
        return dict(line.split("=", 1) for line in done.stdout.splitlines())

    plain = variables()
    assert plain["OMPI_MCA_mpi_yield_when_idle"] == "1"
    assert plain["OMP_NUM_THREADS"] == "1"
    assert variables(OMP_NUM_THREADS="4")["OMP_NUM_THREADS"] == "4"
    assert "OMPI_MCA_rmaps_base_oversubscribe" not in variables(SLURM_JOB_ID="7")


@pytest.mark.parallel
def test_a_launcher_of_another_mpi_is_named():
    # What the ranks of another MPI's launcher see: each is alone.
    command = [sys.executable, SETUP / "check_stack.py", "--ranks", "2"]
    result = subprocess.run(command, env=PLAIN, capture_output=True, text=True)
    assert result.returncode == 1
    assert "the launcher started 2 ranks but MPI sees 1" in result.stdout


def test_pip_installs_into_the_environment():
    """`setup/run pip install NAME` is what `doctor` and CONTRIBUTING advise."""
    said = subprocess.run(["pip", "--version"], capture_output=True, text=True, check=True).stdout
    assert f" from {Path(sys.prefix).resolve()}{os.sep}" in said
