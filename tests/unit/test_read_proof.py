"""Proof of reads: memory is erased, whatever its size, and nothing is left open."""

import os
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from launch import environment
from pffbench.observe.allocator import TransferBuffer
from pffbench.workloads.read_proof import forget_data, watched_read
from pffbench.workloads.repetition import Observed

pytestmark = pytest.mark.long

FREED_MEMORY = """
import ctypes
from collections import Counter
from test_read_proof import repetition_with
from pffbench.workloads.read_proof import POISON, forget_data

libc = ctypes.CDLL(None)
libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
size = 3 * 2**20
block = libc.malloc(size + 64)
ctypes.memset(block, 7, size)
libc.free(block)
forget_data(repetition_with(Counter({size: 1})))
again = libc.malloc(size + 64)
data = ctypes.string_at(again, size)
# The C library keeps sizes and addresses of blocks in free memory: a byte of one may be a 7.
assert bytes([7]) * 8 not in data
# It was cut from what was overwritten, or is fresh from the system.
assert POISON in data[32:] or not data[32:].strip(bytes(1))
"""
KEPT_MEMORY = (
    FREED_MEMORY.replace("3 * 2**20", "300 * 2**20")
    .replace(
        "forget_data(repetition_with(Counter({size: 1})))",
        "forget_data(repetition_with(Counter({size: 1}), 'matched'))",
    )
    .replace(
        "libc = ctypes.CDLL(None)",
        "from pffbench.observe.allocator import Allocator\n"
        "Allocator().prepare('matched', [])\n"
        "libc = ctypes.CDLL(None)",
    )
    .replace("or not data[32:].strip(bytes(1))", "")
)
#: Memory that small blocks have touched, in small pages, is what the large block gets.
SMALL_PAGES = """
import ctypes
from collections import Counter
from pathlib import Path
from test_read_proof import repetition_with
from pffbench.observe.allocator import Allocator
from pffbench.workloads.read_proof import forget_data

Allocator().prepare("matched", [])
libc = ctypes.CDLL(None)
libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
blocks = [libc.malloc(2**19) for _ in range(60)]
for block in blocks:
    ctypes.memset(block, 7, 2**19)
for block in blocks:
    libc.free(block)
forget_data(repetition_with(Counter({24 * 2**20: 1}), "matched"))
(line,) = [l for l in Path("/proc/self/smaps_rollup").read_text().splitlines() if "AnonHuge" in l]
assert int(line.split()[1]) >= 16 * 2**10, line
"""
SHORT_OF_MEMORY = """
import resource
from collections import Counter
from test_read_proof import repetition_with
from pffbench.workloads.read_proof import forget_data

forget_data(repetition_with(Counter({2**20: 1})))
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**24, -1))
forget_data(repetition_with(Counter({2**26: 4, 2**22: 8})))
"""


def repetition_with(blocks, settings="defaults"):
    """Return a stand-in of a repetition whose data had blocks of these sizes."""

    @contextmanager
    def plain(*_):
        yield

    return SimpleNamespace(
        step=plain,
        place=SimpleNamespace(peak=SimpleNamespace(paused=plain), buffer=TransferBuffer()),
        subject=SimpleNamespace(
            equal_memory=settings == "matched",
            returns_arrays=False,
            backend=SimpleNamespace(forget=lambda overwrite: overwrite()),
            parameters=SimpleNamespace(cache="warm"),
        ),
        observed=Observed(blocks=blocks),
    )


def test_free_memory_is_overwritten():
    in_a_new_process(FREED_MEMORY)


def test_no_block_is_larger_than_the_limit():
    """The C library maps large blocks fresh: overwriting one would only take its memory."""
    before = peak()
    forget_data(repetition_with(Counter({2**29: 1})))
    assert peak() < before + 2**27


def test_where_freed_memory_is_kept_a_block_of_any_size_is_overwritten():
    in_a_new_process(KEPT_MEMORY)


def peak():
    with open("/proc/self/status") as file:
        (line,) = [line for line in file if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def test_where_freed_memory_is_kept_large_blocks_are_in_huge_pages():
    """NumPy's large arrays are so from the start; small pages are read into more slowly."""
    release = tuple(int(part) for part in os.uname().release.split(".")[:2])
    enabled = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if release < (6, 1) or not enabled.exists() or "[never]" in enabled.read_text():
        pytest.skip("this kernel has no huge pages, or does not make them of others")
    in_a_new_process(SMALL_PAGES)


def test_little_memory_is_no_crash():
    in_a_new_process(SHORT_OF_MEMORY)


def in_a_new_process(program):
    """Run a program where no earlier test has left free memory."""
    here = os.path.dirname(__file__)
    env = environment()
    env["PYTHONPATH"] = os.pathsep.join([here, os.path.dirname(here), env["PYTHONPATH"]])
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_read_that_fails_leaves_no_file_open():
    before = sorted(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="broken"), watched_read(repetition_with(Counter()), set()):
        raise OSError("broken")
    assert sorted(os.listdir("/proc/self/fd")) == before
