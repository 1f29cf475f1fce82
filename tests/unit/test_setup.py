"""The set-up's decisions and messages, without network, compilers or installations."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from launch import cannot_run

ROOT = Path(__file__).resolve().parents[2]
SETUP = ROOT / "setup"
#: Without what MPI leaves in the process's own environment once any test has started it in here:
#: a nested mpiexec would take itself for a rank. Python's copy was made before.
PLAIN = dict(os.environ)
SCRIPTS = [
    SETUP / "bootstrap",
    SETUP / "run",
    SETUP / "env",
    SETUP / "ranks",
    SETUP / "study",
    SETUP / "lock",
    SETUP / "mpich",
    SETUP / "chroot",
    SETUP / "platform",
    SETUP / "netcdf_compat",
    SETUP / "mpi-env.sh",
    ROOT / ".ci" / "run",
    *sorted((SETUP / "lib").glob("*.sh")),
]
LIBRARIES = (
    "say", "state", "packages", "testtools", "python", "native", "wheels", "active", "zarr2",
    "versioned", "studies", "proof",
)  # fmt: skip


def bash(script, tmp_path, path=None, **variables):
    """Run a piece of bash that may use the functions of setup/lib, in a directory of its own."""
    env = {"PATH": path or os.environ["PATH"], "HOME": str(tmp_path), **variables}
    prelude = (
        f"set -euo pipefail; SETUP={SETUP}; ROOT={tmp_path};"
        f"BUILD={tmp_path}/.build; VENV={tmp_path}/.venv;"
        + "".join(f". {SETUP}/lib/{name}.sh;" for name in LIBRARIES)
    )
    return subprocess.run(
        ["bash", "-c", prelude + script], env=env, capture_output=True, text=True, timeout=300
    )


def program(directory, name, body):
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / name
    file.write_text(f"#!/bin/bash\n{body}\n")
    file.chmod(0o755)


@pytest.fixture
def bare_debian(tmp_path):
    """A PATH with a package system that has nothing installed; returns (PATH, directory)."""
    tools = tmp_path / "tools"
    program(tools, "dpkg-query", "exit 1")
    program(tools, "apt-get", "exit 100")
    program(tools, "apt-cache", "exit 100")
    program(tools, "sudo", "exit 1")
    return f"{tools}:{os.environ['PATH']}", tools


# --- the locks

#: One directory for each Python that has versions of its own.
LOCKS = sorted((SETUP / "locks").iterdir(), key=lambda p: [int(n) for n in p.name.split(".")])
by_python = pytest.mark.parametrize("locks", LOCKS, ids=lambda p: p.name)


def pins(lock):
    lines = lock.read_text().splitlines()
    found = {}
    for line in lines:
        match = re.fullmatch(r"([a-z0-9][a-z0-9-]*)==([^ ]+)( ; .*)?", line)
        # A hash, an option or an address would tie the lock to one index.
        assert match, f"{lock.name} holds more than pins: {line}"
        found[match[1]] = match[2]
    return found


@by_python
def test_every_dependency_is_locked_at_an_allowed_version(locks):
    sys.path.insert(0, str(SETUP))
    try:
        import missing
    finally:
        sys.path.remove(str(SETUP))
    locked = pins(locks / "requirements.lock")
    lowest = missing.floors(ROOT / "pyproject.toml")
    assert lowest["h5py"] == (3, 12)
    lowest.pop("versioned-hdf5")  # its wheels cannot be used beside a parallel h5py
    absent = sorted(set(lowest) - set(locked))
    assert not absent, (
        f"run `setup/lock --keep`: {absent} are in pyproject.toml and not in the lock"
    )
    for name, floor in lowest.items():
        assert missing.numbers(locked[name]) >= floor, name


@by_python
def test_what_is_compiled_against_is_what_runs(locks):
    run, build = pins(locks / "requirements.lock"), pins(locks / "build-requirements.lock")
    for name in ("numpy", "mpi4py"):
        assert build[name] == run[name]
    assert "uv" in build


@pytest.mark.parametrize(
    ("python", "expected"),
    [("(3, 11, 2)", "3.11"), ("(3, 12, 0)", "3.12"), ("(3, 13, 5)", "3.12")],
)
def test_a_python_gets_the_newest_versions_that_it_can_have(tmp_path, python, expected):
    # It is called with `-I -c CODE DIRECTORY`.
    start = f"import sys; sys.version_info = {python}; exec(sys.argv.pop(1))"
    program(tmp_path / "tools", "python", f'exec {sys.executable} -I -c "{start}" "$3" "$4"')
    done = bash(f"locks_of {tmp_path}/tools/python", tmp_path)
    assert done.stdout.strip() == str(SETUP / "locks" / expected), done.stderr


def test_the_series_that_need_a_newer_python_are_locked_for_it():
    old, new = (pins(locks / "requirements.lock") for locks in (LOCKS[0], LOCKS[-1]))
    assert old["zarr"].startswith("3.1.")
    assert not new["zarr"].startswith("3.1.")
    assert new["icechunk"].startswith("2.")
    # These have one series for all of them: a difference between two platforms is not theirs.
    for name in ("h5py", "netcdf4", "mpi4py", "tensorstore", "hdf5plugin"):
        assert old[name] == new[name]


@by_python
def test_zarr_python_2_is_the_studys_and_all_else_is_shared(locks):
    mine, shared = pins(SETUP / "zarr2-requirements.lock"), pins(locks / "requirements.lock")
    assert (mine["zarr"], mine["numcodecs"]) == ("2.18.7", "0.15.1")
    assert set(mine) & set(shared) == {"zarr", "numcodecs"}


# --- the scripts


def test_shellcheck():
    if not shutil.which("shellcheck"):
        cannot_run("shellcheck is not installed")
    command = ["shellcheck", "-x", "-a", *(s for s in SCRIPTS if s.parent.name != "lib")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_help_lists_every_target():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split()
    shown = subprocess.run(["make", "-s", "-C", ROOT], capture_output=True, text=True).stdout
    for target in targets:
        assert f"make {target} " in shown


# --- what is asked of an administrator


def test_without_the_right_one_message_names_the_packages(tmp_path, bare_debian):
    result = bash(
        "install_packages yes yes 'They are needed.'",
        tmp_path,
        path=bare_debian[0],
        PFFBENCH_NO_SYSTEM="1",
    )
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.count("pffbench set-up:") == 1
    command = re.search(r"^ +apt-get update && apt-get install (.*)", result.stderr, re.M)[1]
    for name in ("python3-dev", "libopenmpi-dev", "libhdf5-openmpi-dev", "libnetcdf-pnetcdf-dev"):
        assert name in command.split()
    assert "PFFBENCH_PYTHON" in result.stderr


def test_without_apt_the_message_says_what_is_needed(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "cat", "grep", "sed", "id"):
        (tools / name).symlink_to(shutil.which(name))
    result = bash("install_packages yes yes 'They are needed.'", tmp_path, path=str(tools))
    assert result.returncode == 1
    assert "no apt-get" in result.stderr
    assert "--enable-parallel" in result.stderr


def test_only_what_is_missing_is_asked_for(tmp_path, bare_debian):
    path, tools = bare_debian
    program(tools, "dpkg-query", '[[ "$*" == *libnetcdf* ]] || echo "install ok installed"')
    result = bash("missing_packages yes yes", tmp_path, path=path)
    assert result.stdout.split() == ["libnetcdf-pnetcdf-dev"]


def test_nothing_is_asked_for_when_all_packages_are_there(tmp_path, bare_debian):
    path, tools = bare_debian
    program(tools, "dpkg-query", 'echo "install ok installed"')
    script = "install_packages yes yes 'They are needed.'"
    result = bash(script, tmp_path, path=path, PFFBENCH_NO_SYSTEM="1")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_an_installed_flavour_of_netcdf_is_kept(tmp_path, bare_debian):
    # The two flavours exclude each other: asking for the other one would remove it.
    path, tools = bare_debian
    program(tools, "dpkg-query", '[[ "$*" == *-mpi-dev* ]] && echo "install ok installed"')
    result = bash("missing_packages no yes", tmp_path, path=path)
    assert not [name for name in result.stdout.split() if "netcdf" in name]


@pytest.mark.parametrize(
    ("distribution", "package"),
    [("3.10.6-1", "python3.11"), ("3.12.3-0", "python3"), (None, "python3")],
)
def test_the_python_package_is_new_enough(tmp_path, bare_debian, distribution, package):
    path, tools = bare_debian
    if distribution:
        answer = f'[[ "$*" != *" python3" ]] || echo "Version: {distribution}"'
        program(tools, "apt-cache", answer)
    assert bash("python_package", tmp_path, path=path).stdout.strip() == package


# --- failures


def test_a_failed_step_shows_the_compilers_error_and_the_log(tmp_path):
    script = """
    build() {
        echo "compiling"
        echo "src/thing.c:12:3: fatal error: hdf5.h: No such file or directory"
        for i in {1..4000}; do echo "a traceback of the build tool, line $i"; done
        return 3
    }
    step thing "building thing" build || echo "status $?"
    """
    result = bash(script, tmp_path)
    assert "building thing (log: .build/logs/thing.log)" in result.stdout
    assert "status 3" in result.stdout
    assert "fatal error: hdf5.h" in result.stderr
    assert f"the whole log: {tmp_path}/.build/logs/thing.log" in result.stderr
    assert len(result.stderr.splitlines()) < 40


# --- which environment


def state(tmp_path, **variables):
    return bash("state_key", tmp_path, **variables).stdout


def test_the_state_follows_what_it_depends_on(tmp_path):
    watched = tmp_path / "libhdf5.so"
    watched.write_text("one")
    (tmp_path / ".build").mkdir()
    (tmp_path / ".build" / "watch").write_text(f"{watched}\n")
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / ".pffbench-kind").write_text("private, /usr/bin/python3")
    before = state(tmp_path)
    assert before == state(tmp_path)
    assert before == state(tmp_path, VIRTUAL_ENV=f"{tmp_path}/.venv"), "it is our own"
    assert before != state(tmp_path, PFFBENCH_PYTHON=sys.executable)
    assert before != state(tmp_path, LOADEDMODULES="hdf5/1.14")
    watched.write_text("an update of the system")
    assert before != state(tmp_path)


def test_only_dependencies_of_the_project_are_a_reason_to_make_it_anew(tmp_path):
    project = ROOT / "pyproject.toml"
    copy = tmp_path / "pyproject.toml"

    def after(old, new):
        text = project.read_text()
        assert text.count(old) == 1, old
        copy.write_text(text.replace(old, new))
        return state(tmp_path)

    before = after("[project]", "[project]")
    assert before == after("timeout = 600", "timeout = 601")
    assert before == after("# The documentation site", "# What is read")
    assert before == after('keywords = ["HPC"', 'keywords = ["fast"')
    assert before != after('"zarr>=3.1,<4",', '"zarr>=3.2,<4",')
    assert before != after('analysis = ["vl', 'more = ["some"]\nanalysis = ["vl')
    assert before != after('requires-python = ">=3.11"', 'requires-python = ">=3.12"')


def test_libraries_that_were_named_are_kept_until_others_are(tmp_path):
    (tmp_path / ".build").mkdir()
    program(tmp_path / ".venv" / "bin", "python", 'echo "$0"')
    named = {"MPICC": "/mpi/it's mpicc", "HDF5_DIR": "/hdf5", "LOADEDMODULES": "gcc"}
    remember = "NATIVE_MPIEXEC=mpiexec; remember_state"
    assert bash(remember, tmp_path, **named).returncode == 0
    use = "use_chosen_libraries; up_to_date && echo kept || echo anew;echo ${MPICC:-} ${HDF5_DIR:-}"

    def then(**variables):
        return bash(use, tmp_path, **variables).stdout.splitlines()

    assert then(LOADEDMODULES="gcc") == ["kept", "/mpi/it's mpicc /hdf5"]
    assert then(LOADEDMODULES="gcc", NETCDF4_DIR="/netcdf") == ["anew", ""]
    assert then(LOADEDMODULES="gcc", MPICC="") == ["anew", ""]
    assert then(LOADEDMODULES="clang") == ["anew", ""]
    assert bash(remember, tmp_path, MPICC="").returncode == 0
    assert then() == ["kept", ""]


def test_a_shell_that_uses_the_environment_makes_nothing_anew(tmp_path):
    """As README tells: `. .build/env.sh`, then another `make bench`."""
    (tmp_path / ".build").mkdir()
    program(tmp_path / ".venv" / "bin", "python", 'echo "$0"')
    used = ". $BUILD/env.sh; up_to_date && echo kept || echo anew"
    for asked in ({}, {"PFFBENCH_MPIEXEC": "/mpi/mpiexec"}):
        made = bash("NATIVE_MPIEXEC=/mpi/mpiexec; remember_state", tmp_path, **asked)
        assert made.returncode == 0, made.stderr
        assert bash("up_to_date && echo kept", tmp_path, **asked).stdout == "kept\n"
        assert bash(used, tmp_path, **asked).stdout == "kept\n"
        again = f"{used}; NATIVE_MPIEXEC=/mpi/mpiexec; remember_state; {used}"
        assert bash(again, tmp_path, **asked).stdout == "kept\nkept\n"
        other = f"{used.partition(';')[0]}; PFFBENCH_MPIEXEC=/other; up_to_date || echo anew"
        assert bash(other, tmp_path, **asked).stdout == "anew\n"


def test_the_active_environment(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    program(other / "bin", "python", "exit 1")
    python = f"{other}/bin/python"
    own = tmp_path / ".venv"
    own.mkdir()

    def active(**variables):
        return bash("active_python || echo none", tmp_path, **variables).stdout.strip()

    assert active() == "none"
    assert active(VIRTUAL_ENV=str(other)) == python
    assert active(CONDA_PREFIX=str(other)) == python
    assert active(VIRTUAL_ENV=str(other), PFFBENCH_ENV="private") == "none"
    assert active(PFFBENCH_PYTHON=python, PFFBENCH_ENV="private") == python
    assert active(SPACK_ENV="/some/env") == shutil.which("python3")
    # A layer over another environment stays one when it is activated itself.
    (own / ".pffbench-kind").write_text(f"over {python}\n")
    assert active(VIRTUAL_ENV=str(own)) == python
    (own / ".pffbench-kind").write_text("private, /usr/bin/python3\n")
    assert active(VIRTUAL_ENV=str(own)) == "none"


def test_the_layer_with_zarr_python_2_is_as_old_as_what_it_lies_over(tmp_path):
    python = tmp_path / ".venv-zarr2" / "bin"

    def state():
        return bash("zarr2_up_to_date && echo new || echo old", tmp_path).stdout.strip()

    assert state() == "old"
    python.mkdir(parents=True)
    program(python, "python", "exit 0")
    assert state() == "old"
    (tmp_path / ".build").mkdir()
    for place in (".build/stamp", ".venv-zarr2/.stamp"):
        (tmp_path / place).write_text("one")
    assert state() == "new"
    (tmp_path / ".build" / "stamp").write_text("two")
    assert state() == "old"


@pytest.mark.parametrize(
    ("launcher", "expected"),
    [("mpiexec.mpich", "MPICH"), ("mpiexec", "system"), ("srun", "system")],
)
def test_mpiexec_in_the_environment_is_that_of_its_mpi(tmp_path, launcher, expected):
    (tmp_path / ".venv").mkdir()
    program(tmp_path / "tools", "mpiexec", "echo system")
    for directory, name, said in (("mpi", launcher, "MPICH"), (".venv/bin", "mpiexec", "old")):
        if (directory, name) != ("mpi", "mpiexec"):
            program(tmp_path / directory, name, f"echo {said}")
    script = f"NATIVE_MPIEXEC={tmp_path}/mpi/{launcher}; install_launcher; mpiexec"
    path = f"{tmp_path}/.venv/bin:{tmp_path}/tools:{os.environ['PATH']}"
    done = bash(script, tmp_path, path=path)
    assert done.stdout == f"{expected}\n", done.stderr


HOSTILE = "it's `touch PWN` $(touch PWN) \"\\"


def test_the_path_of_the_checkout_is_not_run_by_the_shell(tmp_path):
    place = tmp_path / HOSTILE
    (place / ".venv").mkdir(parents=True)
    program(place / ".venv" / "bin", "python", f'[[ $1 == -I ]] && echo "{tmp_path}" || echo "$@"')
    program(place / "mpi", "mpiexec.mpich", "echo MPICH")
    script = (
        "ROOT=$PLACE VENV=$PLACE/.venv; install_project; NATIVE_MPIEXEC=$PLACE/mpi/mpiexec.mpich;"
        'install_launcher; cd "$HOME"; "$VENV/bin/pffbench" plan; "$VENV/bin/mpiexec"'
    )
    done = bash(script, tmp_path, PLACE=str(place))
    assert done.stdout == "-P -m pffbench plan\nMPICH\n", done.stderr
    assert not (tmp_path / "PWN").exists()


def test_a_layer_over_a_path_with_an_apostrophe_finds_what_is_there(tmp_path):
    place = tmp_path / HOSTILE
    place.mkdir()
    (place / "of_the_base.py").write_text("print('found')\n")
    (tmp_path / ".build").mkdir()
    script = (
        f'layer_over {sys.executable}; "$VENV/bin/python" -I -c "import of_the_base";'
        'SETUP=$HOME NATIVE_MPIEXEC=; remember_state; grep -F "$PYTHONPATH" "$BUILD/watch"'
    )
    done = bash(script, tmp_path, PYTHONPATH=str(place))
    assert done.stdout == f"found\n{place}\n", done.stderr
    assert not (tmp_path / "PWN").exists()


# --- where nothing may be written


def test_a_checkout_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / ".build").write_text("no directory")
    done = bash('lock "$BUILD/lock"', tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.strip().splitlines()
    assert re.search(r"/\.build/lock cannot be written \([A-Z][a-z ]+\)\. Make the", line), line


def test_a_second_set_up_waits_for_the_first(tmp_path):
    script = (
        'cd "$HOME"; lock "$BUILD/lock" waiting; touch told;'
        '(exec 9>&-; lock "$BUILD/lock" waiting; echo second) >>told &'
        "until grep -q waiting told; do sleep 0.1; done;"
        "echo first >>told; exec 9>&-; wait; cat told"
    )
    said = [line.partition("] ")[2] or line for line in bash(script, tmp_path).stdout.splitlines()]
    assert said == ["waiting", "first", "second"]


def test_a_name_that_is_too_long_for_a_directory_is_refused():
    done = subprocess.run([SETUP / "env", "a" * 300, "h5py"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "is no name of an environment: up to 100 letters" in done.stderr


# --- without network


def copied(directory):
    """Copy what the set-up and a run need: it leaves .venv and .build in the checkout."""
    for name in ("setup", "src", "analysis", "configs"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, directory / name, ignore=ignored)
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, directory)
    return directory


def set_up(checkout, script, cache, network):
    """Run a script with nothing in the caches; without network only the machine itself is there."""
    alone = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
    if not network and subprocess.run([*alone, "true"], capture_output=True).returncode:
        cannot_run("no process may be started without network here")
    # Open MPI needs the loopback device.
    command = ["bash", "-c", f"set -e; {'' if network else 'ip link set lo up;'} {script}"]
    own = ("VIRTUAL_ENV", "PFFBENCH_", "UV_", *(() if network else ("PIP_FIND_LINKS",)))
    kept = {name: value for name, value in PLAIN.items() if not name.startswith(own)}
    return subprocess.run(
        command if network else [*alone, *command], cwd=checkout, capture_output=True, text=True,
        env={**kept, "XDG_CACHE_HOME": str(cache), "PFFBENCH_ENV": "private",
             "PFFBENCH_NO_SYSTEM": "1"},
    )  # fmt: skip


@pytest.mark.full
def test_without_network_the_set_up_ends_at_once_and_names_the_way_out(tmp_path):
    done = set_up(copied(tmp_path / "copy"), "make env", tmp_path / "cache", network=False)
    (sentence,) = (line for line in done.stderr.splitlines() if line.startswith("pffbench set-up"))
    assert "no package index can be reached" in sentence
    assert "setup/bootstrap --download DIR" in sentence
    assert "setup/bootstrap --from DIR" in sentence
    assert "Retrying" not in done.stdout + done.stderr
    assert done.returncode != 0


def test_a_directory_of_packages_that_is_not_there_is_refused(tmp_path):
    missing = str(tmp_path / "missing")
    done = subprocess.run([SETUP / "bootstrap", "--from", missing], capture_output=True, text=True)
    assert done.returncode == 1
    assert f"--from {missing}: there is no such directory" in done.stderr
    done = subprocess.run([SETUP / "bootstrap", "--download"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "--download needs a directory" in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_what_was_downloaded_is_all_that_an_environment_and_a_run_need(tmp_path):
    packages = tmp_path / "it's, packages"  # an address of it has neither space nor comma
    download = f"setup/bootstrap --download {shlex.quote(str(packages))}"
    done = set_up(copied(tmp_path / "with"), download, tmp_path / "cache-with", network=True)
    assert done.returncode == 0, done.stdout + done.stderr
    script = (
        f"setup/bootstrap --from {shlex.quote(str(packages))}; make env;"
        "make bench RANKS=2 ARGS='configs/smallest.yaml --out results --scratch .'"
    )
    done = set_up(copied(tmp_path / "without"), script, tmp_path / "cache-without", network=False)
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads((tmp_path / "without" / "results" / "run.json").read_text())
    assert record["valid"] is True


# --- what single studies need


def ready(tmp_path, study, **variables):
    script = f"study_ready {study} && echo ready || echo lacking"
    return bash(script, tmp_path, **variables).stdout.strip()


def test_each_study_is_ready_when_its_own_tools_are_there(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "cat"):
        (tools / name).symlink_to(shutil.which(name))
    plain = {"path": str(tools)}
    assert ready(tmp_path, "chunking-vs-memmap", **plain) == "ready"
    assert ready(tmp_path, "hdf5-compression-tuning-full", **plain) == "lacking"
    program(tools, "h5repack", "exit 0")
    assert ready(tmp_path, "hdf5-compression-tuning-full", **plain) == "ready"
    assert ready(tmp_path, "versioned-hdf5", **plain) == "lacking"
    for name, text in ((".build/stamp", "one"), (".venv/.versioned-hdf5", "one")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert ready(tmp_path, "versioned-hdf5", **plain) == "ready"
    (tmp_path / ".build" / "stamp").write_text("two")
    assert ready(tmp_path, "versioned-hdf5", **plain) == "lacking"


def test_a_study_with_zarr_python_2_needs_its_environment_unless_told_otherwise(tmp_path):
    place = tmp_path / "configs" / "studies" / "zarr2"
    place.mkdir(parents=True)
    (place / "some.yaml").touch()
    assert ready(tmp_path, "some") == "lacking"
    assert ready(tmp_path, "some", ZARR2="0") == "ready"


def test_h5repack_is_installed_with_its_package_or_asked_for(tmp_path):
    script = 'offer() { echo "offered: $2, or $1"; }; prepare_study hdf5-compression-tuning'
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "bash").symlink_to(shutil.which("bash"))
    done = bash(script, tmp_path, path=str(tools))
    assert done.stdout == "offered: hdf5-tools, or what is rewritten with h5repack is left out\n"
    program(tools, "h5repack", "exit 0")
    assert bash(script, tmp_path, path=str(tools)).stdout == ""


def test_a_tool_that_cannot_be_had_does_not_end_the_set_up(tmp_path):
    script = """
    find_native() { return 1; }
    prepare_study versioned-hdf5
    echo "status $?"
    """
    (tmp_path / ".build").mkdir()
    done = bash(script, tmp_path)
    assert done.returncode == 0
    assert "status 0" in done.stdout
    assert "no headers of the HDF5 that h5py uses" in done.stderr
    assert "what is kept with versioned-hdf5 is left out" in done.stderr


@by_python
def test_versioned_hdf5_is_built_with_what_runs(locks):
    mine, shared = pins(locks / "versions-requirements.lock"), pins(locks / "requirements.lock")
    build = pins(locks / "build-requirements.lock")
    assert "versioned-hdf5" in mine
    for name in set(mine) & set(shared | build):
        assert mine[name] == (shared | build)[name], name


def test_an_environment_that_is_not_ours_is_not_removed(tmp_path):
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "precious").touch()
    result = bash("make_venv private true", tmp_path)
    assert result.returncode == 1
    assert "left alone" in result.stderr
    assert (tmp_path / ".venv" / "precious").exists()


def test_old_bindings_of_an_active_environment_are_refused(tmp_path):
    lock = tmp_path / "lock"
    lock.write_text("numpy==2.4.6\nno-such-helper==1.0\npytest==9.0\n")
    project = tmp_path / "pyproject.toml"

    def run(numpy_floor):
        project.write_text(f'[project]\ndependencies = ["numpy>={numpy_floor}", "pytest>=8"]\n')
        command = [sys.executable, SETUP / "missing.py", lock, project]
        return subprocess.run(command, capture_output=True, text=True)

    good, bad = run("2.0"), run("99.1")
    assert (good.returncode, good.stdout) == (0, "no-such-helper==1.0\n")
    assert bad.returncode == 1
    assert "numpy" in bad.stderr
    assert ">= 99.1" in bad.stderr
    assert "numpy" not in bad.stdout


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


def mpi_variables(tmp_path, **variables):
    result = bash(f". {SETUP}/mpi-env.sh; env", tmp_path, **variables)
    return dict(line.split("=", 1) for line in result.stdout.splitlines() if "=" in line)


def test_mpi_environment(tmp_path):
    plain = mpi_variables(tmp_path)
    assert plain["OMPI_MCA_mpi_yield_when_idle"] == "1"
    assert plain["OMP_NUM_THREADS"] == "1"
    assert ("OMPI_ALLOW_RUN_AS_ROOT" in plain) == (os.geteuid() == 0)
    assert mpi_variables(tmp_path, OMP_NUM_THREADS="4")["OMP_NUM_THREADS"] == "4"
    assert "BLOSC_NTHREADS" not in plain  # it would overrule zarr2.blosc_threads
    in_job = mpi_variables(tmp_path, SLURM_JOB_ID="7")
    assert "OMPI_MCA_rmaps_base_oversubscribe" not in in_job


REFUSED = "srun: error: Unable to allocate resources: Invalid account or partition specified"


def proof(tmp_path, srun, alone="h5py 3 and netCDF4 1 share /lib/libhdf5.so", at_login="no"):
    """Prove an environment whose Python says `alone` without MPI, with this `srun`."""
    program(tmp_path / "tools", "srun", srun)
    for place in (".build/logs", ".venv/bin"):
        (tmp_path / place).mkdir(parents=True)
    program(
        tmp_path / ".venv" / "bin", "python",
        f'[[ "$*" == *--no-mpi* ]] && echo "{alone}" && [[ "{alone}" == *share* ]]',
    )  # fmt: skip
    script = f"AT_LOGIN={at_login}; NATIVE_MPIEXEC={tmp_path}/tools/srun; prove"
    return bash(script, tmp_path), (tmp_path / ".build" / "unproven").exists()


@pytest.mark.parametrize(
    ("srun", "at_login"),
    [(f"echo '{REFUSED}' >&2; exit 1", "no"), ("echo 'it must not be asked'; exit 1", "yes")],
)
def test_on_a_login_node_the_environment_is_made_and_the_proof_left_to_a_job(
    tmp_path, srun, at_login
):
    done, unproven = proof(tmp_path, srun, at_login=at_login)
    assert (done.returncode, done.stderr) == (0, "")
    assert unproven
    assert (REFUSED in done.stdout) is (at_login == "no")
    assert "the first job of jobs/submit does that before it measures" in done.stdout


def test_what_needs_no_mpi_is_checked_on_a_login_node_too(tmp_path):
    done, _ = proof(tmp_path, f"echo '{REFUSED}' >&2; exit 1", alone="h5py is built without MPI")
    assert done.returncode == 1
    assert "h5py is built without MPI" in done.stderr


@pytest.mark.parametrize(
    "said",
    ["h5py is built without MPI", "srun: error: node1: tasks 0-1: Segmentation fault", ""],
)
def test_a_program_that_did_start_and_failed_is_no_refusal(tmp_path, said):
    done, unproven = proof(tmp_path, f"echo '{said}'; exit 1")
    assert done.returncode == 1
    assert said in done.stderr
    assert "setup/bootstrap --login" in done.stderr
    assert not unproven


@pytest.mark.parallel
def test_the_running_environment_passes_the_check(tmp_path):
    launcher = os.environ.get("PFFBENCH_MPIEXEC") or shutil.which("mpiexec")
    script = (
        f". {SETUP}/mpi-env.sh; exec timeout 120 {launcher} -n 2 {sys.executable} "
        f"{SETUP}/check_stack.py --dir {tmp_path} --watch {tmp_path}/watch"
    )
    result = subprocess.run(["bash", "-c", script], env=PLAIN, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(r"^h5py .* and netCDF4 .* share /", result.stdout, re.MULTILINE)
    assert "libhdf5" in (tmp_path / "watch").read_text()


@pytest.mark.parallel
def test_a_launcher_of_another_mpi_is_named():
    # What the ranks of a foreign launcher see: each is alone.
    command = [sys.executable, SETUP / "check_stack.py", "--ranks", "2"]
    result = subprocess.run(command, env=PLAIN, capture_output=True, text=True)
    assert result.returncode == 1
    assert "the launcher started 2 ranks but MPI sees 1" in result.stdout


# How many ranks are started unless a number is given


def ranks(**options):
    """Return what `setup/ranks` prints, and the reason that it gives."""
    done = subprocess.run([SETUP / "ranks"], capture_output=True, text=True, check=True, **options)
    told = re.fullmatch(r"ranks: (\d+) \((.+); RANKS=N takes another number\)\n", done.stderr)
    assert done.stdout == f"{told[1]}\n"
    return int(told[1]), told[2]


def test_there_is_a_rank_for_each_core_and_four_at_most():
    count, why = ranks()
    assert 1 <= count <= min(4, len(os.sched_getaffinity(0)))
    assert why


def test_cores_that_may_not_be_used_get_no_rank():
    allowed = os.sched_getaffinity(0)
    one = ranks(preexec_fn=lambda: os.sched_setaffinity(0, {min(allowed)}))
    assert one == (1, "one for each core")
    assert os.sched_getaffinity(0) == allowed


def an_environment(tmp_path, cpus, siblings):
    """Return variables for a machine with these processors, and what `cat` says of each."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "sed").write_text(f'#!/bin/bash\n[[ $* != *Cpus_allowed* ]] || echo "{cpus}"\n')
    (tools / "cat").write_text(f"#!/bin/bash\n{siblings}\n")
    for tool in tools.iterdir():
        tool.chmod(0o755)
    return {"env": os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"}}


@pytest.mark.parametrize(
    ("cpus", "siblings", "expected"),
    [
        ("0-7", "exit 1", (4, "enough to compare formats; there are 8 cores")),
        ("0-1,4", "exit 1", (3, "one for each core")),
        # Processors 0 and 1 are threads of one core, as are 2 and 3.
        ("0-3", "[[ $1 == */cpu[01]/* ]] && echo 0-1 || echo 2-3", (2, "one for each core")),
    ],
)
def test_threads_of_a_core_are_one_and_more_than_four_are_not_needed(
    tmp_path, cpus, siblings, expected
):
    found = ranks(**an_environment(tmp_path, cpus, siblings))
    if "processor time" in found[1]:
        pytest.skip("this container has less processor time than processors")
    assert found == expected


def test_pip_installs_into_the_environment():
    """`setup/run pip install NAME` is what `doctor` and CONTRIBUTING tell."""
    told = subprocess.run(["pip", "--version"], capture_output=True, text=True, check=True).stdout
    assert f" from {Path(sys.prefix).resolve()}{os.sep}" in told
