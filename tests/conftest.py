"""What the tests share: directories on a disk, and how property tests run."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from pffbench.storage.filesystem import filesystem

# Examples are made from the test's own name, so a failure is the same on every machine; the first
# example of a process may be slow, because it imports what it tests.
settings.register_profile("tests", derandomize=True, deadline=None, max_examples=100)
settings.load_profile("tests")


#: What only those get who ask for it by this marker: `-m slow`.
ON_REQUEST = ("slow", "spack")


@pytest.hookimpl(tryfirst=True)  # groups have to be named before pytest-xdist looks for them
def pytest_collection_modifyitems(config, items):
    """Leave out what takes many minutes, unless it is asked for; name what has to stay together.

    Tests of a file share runs, and those on Slurm one cluster. These go first, because they wait
    more than they work and take longest.
    """
    asked = config.option.markexpr
    unasked = [name for name in ON_REQUEST if name not in asked.replace(f"not {name}", "")]
    left_out = [i for i in items if any(i.get_closest_marker(name) for name in unasked)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
    items.sort(key=lambda item: item.get_closest_marker("slurm") is None)
    for item in items:
        group = "slurm" if item.get_closest_marker("slurm") else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))


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
