"""Planted truths: system calls of chosen files made slow, or reads that read nothing.

The faults lie below every library, in a preloaded library that is compiled from
`tests/parallel/programs/planted.c`.
"""

import os
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from launch import PROGRAMS


@cache
def library():
    """Compile the library once for all tests of a process; return its path."""
    target = Path(mkdtemp(prefix="pffbench-planted-")) / "planted.so"
    source = PROGRAMS / "planted.c"
    command = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-o", target, source, "-ldl"]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return target


def planted(match, **faults):
    """Return the environment of a run in which calls on files of a path behave as planted.

    Parameters
    ----------
    match : str
        Part of the path of the files.
    faults
        ``read``, ``size``, ``factor``, ``seconds``, ``rank``, ``until``, ``readers`` …: see it.
    """
    before = os.environ.get("LD_PRELOAD")
    named = {f"PLANT_{name.upper()}": str(value) for name, value in faults.items()}
    preload = ":".join(filter(None, [str(library()), before]))
    return {"LD_PRELOAD": preload, "PLANT_MATCH": str(match)} | named


def pausing():
    """Return the environment of a run whose ranks sleep for 4 ms where they would look around.

    strace stops each call of a rank that it follows, also those by which a rank of Open MPI waits:
    with more ranks than cores they would take nearly all of the time.
    """
    return planted("/nothing is matched/", pause=0.004)
