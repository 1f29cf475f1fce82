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


def test_shellcheck():
    if not shutil.which("shellcheck"):
        cannot_run("shellcheck is not installed")
    command = ["shellcheck", "-x", "-a", *(s for s in SCRIPTS if s.parent.name != "lib")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


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


# --- the proof of the stack


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
