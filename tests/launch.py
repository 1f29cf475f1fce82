"""Starting pffbench as its users do, under the real mpiexec, and reading what it leaves behind."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn
from unittest.mock import patch

import msgspec
import numpy as np
import pytest
import yaml

import pffbench
from pffbench.cli import main
from pffbench.commands import plan
from pffbench.job.launcher import reason_against_mpi
from pffbench.phases import READ_PHASES
from pffbench.results.document import FILE as RESULTS
from pffbench.results.document import Results

REPOSITORY = Path(__file__).resolve().parents[1]
#: The experiments of the repository; those that redo a study need the package of the studies.
SHIPPED = [
    path
    for path in sorted((REPOSITORY / "configs").rglob("*.yaml"))
    if find_spec("pffbench_studies") is not None
    or path.relative_to(REPOSITORY).parts[1] not in ("studies", "paper")
]
PROGRAMS = REPOSITORY / "tests" / "parallel" / "programs"
#: Seconds after which a process hangs, far more than any takes on a machine with other work.
LONGEST = 300
#: Where the package lies that the tests are to run, for processes that start elsewhere.
_SOURCE = str(Path(pffbench.__file__).parents[1])
_MPI_ENVIRONMENT = REPOSITORY / "setup" / "mpi-env.sh"
#: What makes starts of Open MPI cheap: it looks for no network of a cluster, and starts no daemon
#: for a process without a launcher.
_CHEAP = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_ess_singleton_isolated": "1"}
#: Changes of the environment with which a process without a launcher has that daemon, as at users.
WITH_DAEMON = {"OMPI_MCA_ess_singleton_isolated": None}


@cache
def _mpi_environment():
    """Return what setup/mpi-env.sh exports, which lets a small machine start many ranks."""
    command = ["sh", "-c", '. "$0" && env -0', str(_MPI_ENVIRONMENT)]
    # os.environ is given, because MPI, which netCDF4 starts in the process of the tests, puts
    # variables beside it that make an mpiexec below it fail without a word.
    told = subprocess.run(command, capture_output=True, check=True, timeout=120, env=os.environ)
    entries = told.stdout.decode().split("\0")
    return dict(entry.partition("=")[::2] for entry in entries if "=" in entry)


@cache
def compiled(source):
    """Return the path to a library that is preloaded, compiled where its source has changed."""
    target = REPOSITORY / ".build" / "preloaded" / f"{source.stem}.so"
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        target.parent.mkdir(parents=True, exist_ok=True)
        own = target.with_suffix(f".{os.getpid()}")  # other processes of the tests compile it too
        command = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-o", own, source, "-ldl"]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
        own.replace(target)
    return str(target)


def environment(**changes):
    """Return the environment for a new process: None takes a variable away.

    Ranks that wait sleep. There are more ranks than cores, and those that wait would take the cores
    from those that work. A network of a cluster takes Open MPI a third of the time in which a small
    run starts and ends, and its daemon takes as long as a process without a launcher.
    """
    found = {**os.environ, **_mpi_environment()}
    paths = [_SOURCE, *filter(None, [os.environ.get("PYTHONPATH")])]
    found["PYTHONPATH"] = os.pathsep.join(paths)
    for name in ("SCRATCH", "PFFBENCH_SCRATCH", "COLUMNS"):
        found.pop(name, None)
    found |= {name: text for name, text in _CHEAP.items() if name not in found}
    found.update({name: value for name, value in changes.items() if value is not None})
    preloaded = [found.get("LD_PRELOAD"), compiled(PROGRAMS / "waiting.c")]
    found["LD_PRELOAD"] = ":".join(filter(None, preloaded))
    return {k: v for k, v in found.items() if k not in changes or changes[k] is not None}


def mpiexec(ranks):
    """Return the command that starts this many ranks of what follows it."""
    program = os.environ.get("PFFBENCH_MPIEXEC") or shutil.which("mpiexec")
    assert program, "no mpiexec: run the tests with `make test`, which sets everything up"
    return [program, "-n", str(ranks)]


#: End of a case's name, which messages for people leave out.
DIGEST = re.compile(r"(matched|defaults)\.[0-9a-f]{12}\b")


def check_results(directory):
    """See that the `results.json` of a real run, if there is one, fits the type of its schema.

    The schema itself, which is made of the type, needs many times as long: `test_results_real.py`.
    """
    if directory is not None and (path := Path(directory) / RESULTS).is_file():
        msgspec.json.decode(path.read_bytes(), type=Results)


@cache
def _launcher_version():
    (program, *_) = mpiexec(1)
    return subprocess.run([program, "--version"], capture_output=True, text=True).stdout


def with_open_mpi():
    """Whether the tests run with Open MPI."""
    return "Open MPI" in _launcher_version() or "OpenRTE" in _launcher_version()


def only_with_open_mpi(why="this is of Open MPI alone"):
    """Skip a test of what other MPI libraries do not do."""
    if not with_open_mpi():
        pytest.skip(f"{why}, and the tests run with another MPI")


@dataclass(frozen=True)
class Finished:
    """A process that ended: what it said, and the results directory that it left."""

    status: int
    stdout: str
    stderr: str
    out: Path | None = None

    @property
    def said(self):
        """Everything that it printed, for the message of a failed assertion."""
        return f"exit status {self.status}\n{self.stdout}\n{self.stderr}"

    @cached_property
    def record(self):
        """What run.json says."""
        return json.loads((self.out / "run.json").read_text())

    @cached_property
    def repetitions(self):
        """The lines of repetitions.jsonl as plain data."""
        return lines_of(self.out)

    @cached_property
    def rows(self):
        """A mapping of text for each phase of each repetition, with the facts of both."""
        return [row for one in self.repetitions for row in _rows(one, self.record)]

    @cached_property
    def counts(self):
        """A mapping of text for each count of each repetition."""
        return [
            {"case": one["case"], "repetition": str(one["round"]),
             "warmup": str(one.get("warmup", False)).lower(), "phase": count["phase"],
             "counter": count["name"], "total": _plain(count["total"]),
             "largest": _plain(count.get("largest", 0))}
            for one in self.repetitions
            for count in one.get("counts", ())
        ]  # fmt: skip

    def phases(self, case):
        """Return the rows of a case by phase, one row for each repetition."""
        found = defaultdict(list)
        for row in self.rows:
            if row["case"] == case:
                found[row["phase"]].append(row)
        return dict(found)

    def case(self, **wanted):
        """Return the name of the one case with these parameters or options."""
        names = [
            name
            for name, entry in self.record["cases"].items()
            if wanted.items() <= _comparable({**entry["options"], **entry["parameters"]}).items()
        ]
        assert len(names) == 1, f"{wanted} fits {names}"
        return names[0]


def lines_of(out):
    """Return the whole lines of the repetitions.jsonl of a results directory as plain data."""
    text = (Path(out) / "repetitions.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


_NAMED = ("backend", "workload", "files", "arrays", "transfer", "settings")


def _rows(one, record):
    """Yield a mapping of text for each phase of a repetition."""
    entry = record["cases"][one["case"]]
    given = {"warmup": False, "valid": True, "part": "all", "peak_memory": -1} | {
        key: value for key, value in one.items() if not isinstance(value, dict | list)
    }
    p = entry["parameters"]
    common = given | one.get("machine", {}) | {
        "repetition": one["round"], "group": entry["group"], "ranks": record["ranks"],
        "environment": p.get("environment", ""), "array_count": entry["cost"]["arrays"],
        "nodes": len(set(record["topology"]["nodes"])),
        **{key: p.get(key, "") for key in _NAMED},
    }  # fmt: skip
    read, disk = one.get("read", {}), one.get("disk", {})
    for times in one["phases"]:
        row = {"bytes": 0, "operations": 0, "slowest_rank": 0, "cpu_seconds": 0.0,
               "minor_faults": 0, "idlest_rank": 0, "idle_seconds": 0.0} | times  # fmt: skip
        reads = times["phase"] in READ_PHASES
        row |= {"reads": read.get("times", 1) if reads else 1}
        if times["phase"] == "read":
            row |= {"resident": "", "verified_bytes": 0, "device_bytes": "", "resident_after": "",
                    "new_memory": ""} | {k: v for k, v in read.items() if k != "times"}  # fmt: skip
        if times["phase"] == "close" and disk:
            files = disk["files"]
            row |= {"disk_bytes": disk["stored"], "disk_files": files,
                    "disk_inodes": files + disk.get("directories", 0)}  # fmt: skip
        row |= {"slowest_host": record["topology"]["hosts"][row["slowest_rank"]]}
        yield defaultdict(str, {key: _plain(value) for key, value in (common | row).items()})


def _plain(value):
    """Return a value as text; whole numbers without a fraction."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _comparable(entry):
    return {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()
            if not isinstance(v, dict)}  # fmt: skip


@dataclass
class Started:
    """A process that is running."""

    process: subprocess.Popen
    out: Path | None
    command: list = field(repr=False)

    def finish(self, timeout=LONGEST):
        """Wait for the end; a process that does not come to one fails the test."""
        try:
            stdout, stderr = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            stdout, stderr = self._stop()
            pytest.fail(f"no end within {timeout} s: {self.command}\n{stdout}\n{stderr}")
        check_results(self.out)
        return Finished(self.process.returncode, stdout, stderr, self.out)

    def _stop(self):
        self.process.send_signal(signal.SIGTERM)  # mpiexec passes it on to its ranks
        try:
            return self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.communicate()


def start(command, *, ranks=None, cwd=None, out=None, env=None, python=sys.executable):
    """Start a Python program; under mpiexec when ranks are given."""
    full = [*(mpiexec(ranks) if ranks else []), str(python), *map(str, command)]
    process = subprocess.Popen(
        full, cwd=cwd, env=environment(**(env or {})), text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    return Started(process, out, full)


def run(command, *, timeout=LONGEST, **how):
    """Run a Python program to its end."""
    return start(command, **how).finish(timeout)


def pffbench_cli(*arguments, **how):
    """Run the command line of pffbench in one process, or under mpiexec when ranks are given."""
    return run(["-m", "pffbench", *arguments], **how)


lack_of_mpi = cache(reason_against_mpi)


def pffbench_here(*arguments, cwd=".", env=None):
    """Run a command that starts no MPI in this process, without the time of a further start.

    `test_cli.py`, `test_terminal.py` and `test_reading_commands.py` start them as programs. Whether
    MPI can be loaded here, which each plan asks a process of its own, is asked once.
    """
    changes = dict.fromkeys(("SCRATCH", "PFFBENCH_SCRATCH", "COLUMNS")) | (env or {})
    given = {name: text for name, text in (os.environ | changes).items() if text is not None}
    stdout, stderr = io.StringIO(), io.StringIO()
    with (
        chdir(cwd), patch.dict(os.environ, given, clear=True),
        redirect_stdout(stdout), redirect_stderr(stderr), pytest.raises(SystemExit) as ended,
        patch.object(plan, "reason_against_mpi", reason_against_mpi if env else lack_of_mpi),
    ):  # fmt: skip
        main(list(map(str, arguments)))
    return Finished(ended.value.code, stdout.getvalue(), stderr.getvalue())


#: Runs commands one after the other, each of which loads other packages anew.
_IN_TURN = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from pffbench import plugins
from pffbench.cli import main
from pffbench.commands import plan
from pffbench.job.launcher import reason_against_mpi
ended = []
for command in json.loads(sys.argv[1]):
    plugins.loaded.cache_clear()
    said = io.StringIO(), io.StringIO()
    with redirect_stdout(said[0]), redirect_stderr(said[1]):
        try:
            main(command)
        except SystemExit as end:
            ended.append((end.code, *(text.getvalue() for text in said)))
json.dump(ended, sys.stdout)
"""


def pffbench_in_turn(*commands, before="", **how):
    """Run commands in one process, after some code; return what each said, by the command."""
    told = [tuple(map(str, command)) for command in commands]
    done = run(["-c", before + _IN_TURN, json.dumps(told)], **how)
    assert done.status == 0, done.said
    ended = (Finished(*one) for one in json.loads(done.stdout))
    return dict(zip(told, ended, strict=True))


def write_experiment(directory, **content):
    """Write an experiment file: one repetition of each case in turn unless told otherwise."""
    base = {"name": "test", "repetitions": 1, "warmup": 0, "unsupported": "skip",
            "roofline": False}  # fmt: skip
    path = Path(directory) / "experiment.yaml"
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # ten times as fast, if it was built
    path.write_text(yaml.dump(base | content, Dumper=dumper, sort_keys=False))
    return path


def start_experiment(
    directory, ranks, *arguments, program=("-m", "pffbench"), env=None, python=sys.executable,
    **content,
):  # fmt: skip
    """Start an experiment in a directory of its own, with its files and its results in it."""
    path = write_experiment(directory, **content)
    scratch, out = Path(directory) / "scratch", Path(directory) / "results"
    scratch.mkdir(exist_ok=True)
    told = [path, "--out", out, "--scratch", scratch, *arguments]
    told += ["--trust"] if content.keys() & {"environments", "launcher"} else []
    command = [*program, "run", *told]
    return start(command, ranks=ranks, cwd=directory, out=out, env=env, python=python)


def run_experiment(directory, ranks, *arguments, timeout=LONGEST, **content):
    """Run an experiment in a directory of its own to its end."""
    return start_experiment(directory, ranks, *arguments, **content).finish(timeout)


def sparse_file(directory, shape):
    """Write a file of zeros but for its first element, and return what a case says of it."""
    values = np.zeros(shape, "uint16")
    values.flat[0] = 1
    np.save(path := Path(directory, "sparse.npy"), values)
    return {"source": "file", "file": str(path), "shape": list(shape)}


def sampled(values, *kept):
    """Return values for `parametrize`, tuples for several names; `make test` runs the kept ones."""
    return [
        value if value in kept
        else pytest.param(*value if isinstance(value, tuple) else (value,), marks=pytest.mark.full)
        for value in values
    ]  # fmt: skip


def cannot_run(why) -> NoReturn:
    """Skip a test that lacks a program; in CI it must not lack it."""
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        pytest.fail(f"in CI these tests must run: {why}", pytrace=False)
    pytest.skip(why)


@cache
def layer(name, *requirements):
    """Return the Python of an environment that `setup/env` makes over that of the tests."""
    if Path(sys.prefix) != REPOSITORY / ".venv":
        cannot_run("setup/env makes environments over .venv, and the tests run in another one")
    command = [str(REPOSITORY / "setup" / "env"), name, *requirements]
    made = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST)
    if made.returncode:
        cannot_run(made.stderr.strip())
    return REPOSITORY / ".envs" / name / "bin" / "python"


def wait_until(condition, seconds=250):
    """Wait until a condition holds; the test fails where it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.1)


@contextmanager
def reader_gone():
    """Open a pipe such as that to `head`, which has ended."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        yield writing
    finally:
        os.close(writing)


def entries_below(directory):
    """List everything below a directory, to see that nothing was made."""
    return sorted(str(path) for path in Path(directory).rglob("*"))
