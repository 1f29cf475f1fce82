"""The allocator: freed memory is kept in cases of equal work, and as a program has it in others."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from launch import environment
from pffbench.observe import allocator
from pffbench.observe.allocator import Allocator, adapted_threshold

MIB = 2**20
#: Prints the page faults of a fresh array: kept, as in a program alone, and kept again.
FAULTS = """
import resource, sys
import numpy as np
from pffbench.observe.allocator import Allocator

def faults(size):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.empty(size, np.uint8).fill(1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

size, allocator = int(sys.argv[1]) * 2**20, Allocator()
for settings in ("matched", "defaults", "matched"):
    allocator.prepare(settings, [size])
    faults(size)
    print(faults(size))
"""


@pytest.mark.parametrize("size", [24, 64, 240])
def test_a_fresh_array_gets_kept_memory_or_what_a_program_gets(size):
    done = subprocess.run(
        [sys.executable, "-c", FAULTS, str(size)], env=environment(), capture_output=True,
        text=True, timeout=300, check=True,
    )  # fmt: skip
    kept, alone, again = map(int, done.stdout.split())
    assert kept < 20
    assert again < 20
    # glibc keeps blocks of up to 32 MiB, once one has been freed, and maps all that are larger.
    assert alone < 20 if size <= 24 else alone > 30


@pytest.mark.parametrize(
    ("blocks", "threshold"),
    [
        ([1000], 2**17),
        ([24 * MIB, 4 * MIB], 24 * MIB + 2**13),
        ([64 * MIB, 4 * MIB], 4 * MIB + 2**13),
        ([64 * MIB], 32 * MIB),
    ],
)
def test_the_threshold_is_that_of_the_largest_block_that_raises_it(blocks, threshold):
    assert adapted_threshold(blocks) == threshold


def test_without_glibc_memory_is_left_alone_and_the_record_says_so(monkeypatch):
    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda _: SimpleNamespace())
    found = Allocator()
    found.prepare("matched", [1])
    found.prepare("defaults", [1])
    states = found.states(["matched", "defaults"])
    assert "not glibc" in states["matched"]
    assert "own" in states["defaults"]


def test_another_malloc_is_noticed(monkeypatch):
    class Function:
        def __init__(self, value):
            self.value = value

        def __call__(self, *_):
            return self.value

    libc = SimpleNamespace(
        gnu_get_libc_version=Function("2.36"), malloc=Function(1), free=Function(None),
        mallinfo=Function(SimpleNamespace(uordblks=5)),
    )  # fmt: skip
    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda _: libc)
    assert "replaces malloc" in Allocator().missing
