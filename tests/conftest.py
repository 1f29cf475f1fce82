"""What the tests share: directories on a disk, and how property tests run."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from pffbench.storage.filesystem import filesystem

# Examples are made from the test's own name, so a failure is the same on every machine; the first
# example of a process may be slow, because it imports what it tests.
settings.register_profile("tests", derandomize=True, deadline=None, max_examples=100)
settings.register_profile("full", settings.get_profile("tests"), max_examples=500)
settings.load_profile("tests")


# Where Python may not keep what it has compiled, each of thousands of processes would compile the
# modules anew that the set-up has not, and pytest the tests in each of its processes.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

TESTS = Path(__file__).parent

#: Tests with one of these markers run only where the marker is asked for: `-m slow`.
ON_REQUEST = ("full", "slow", "spack")


def asked_for(config):
    """Return the markers of tests on request that are asked for."""
    told = config.option.markexpr
    return [name for name in ON_REQUEST if name in told.replace(f"not {name}", "")]


def pytest_configure(config):
    """Try more examples where everything is asked for, and compile the tests of a new checkout."""
    if "full" in asked_for(config):
        settings.load_profile("full")
    everything = config.args_source is config.ArgsSource.TESTPATHS
    if everything and getattr(config.option, "numprocesses", None):
        compile_tests()


def compile_tests():
    """Have two processes compile all tests, unless it was done: each of six would do it all."""
    if any(TESTS.glob("unit/__pycache__/test_*-pytest-*.pyc")):
        return
    unit, others = TESTS / "unit", [path for path in TESTS.iterdir() if path.name != "unit"]
    folders = [path for path in others if any(path.glob("test_*.py"))]
    collect = [sys.executable, "-m", "pytest", "-p", "no:xdist", "--collect-only", "-qq"]
    started = [
        subprocess.Popen([*collect, *some], cwd=TESTS.parent, stdout=subprocess.DEVNULL)
        for some in ([unit], folders)
    ]
    for process in started:
        process.wait()


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Look for no garbage among the tests, which stay to the end: it takes each process seconds."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give each process whole files, whose tests share runs, and one of them all tests on Slurm.

    The same could be said by groups (``--dist loadgroup``), which pytest-xdist 3.8 does not find
    with pytest 9.2.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file = nodeid.split("::")[0]
            return "slurm" if "/slurm/" in file else file

    return ByFile(config, log)


def pytest_collection_modifyitems(config, items):
    """Leave out what takes many minutes, unless it is asked for.

    Tests on Slurm go first, because they wait more than they work and take longest. Files that take
    a second or less go last, so that no process has a long one when the others have ended.
    """
    unasked = set(ON_REQUEST) - set(asked_for(config))
    left_out = {i for i in items if any(i.get_closest_marker(name) for name in unasked)}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]
    long = {i.path for i in items if any(map(i.get_closest_marker, ("parallel", "long")))}
    items.sort(key=lambda i: (i.get_closest_marker("slurm") is None, i.path not in long))


@pytest.fixture(scope="session")
def disk():
    """A directory on a disk: the page cache of a file system in memory cannot be dropped."""
    parents = [tempfile.gettempdir(), "/var/tmp", os.getcwd()]
    parent = next((p for p in parents if not filesystem(p).in_memory), None)
    if parent is None:
        pytest.skip("no directory on a disk: /tmp, /var/tmp and the checkout are all in memory")
    made = tempfile.mkdtemp(prefix="pffbench-tests-", dir=parent)
    yield Path(made)
    shutil.rmtree(made, ignore_errors=True)
