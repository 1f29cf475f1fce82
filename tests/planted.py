"""Planted truths: system calls of chosen files made slow, or reads that read nothing.

The faults lie below every library, in a preloaded library that is compiled from
`tests/parallel/programs/planted.c`.
"""

import os

from launch import PROGRAMS, compiled, environment


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
    preload = ":".join(filter(None, [compiled(PROGRAMS / "planted.c"), before]))
    return {"LD_PRELOAD": preload, "PLANT_MATCH": str(match)} | named


def run_first(directory, text):
    """Return the environment of programs in which a text runs first, kept in a new directory."""
    directory.mkdir()
    (directory / "sitecustomize.py").write_text(text)
    return {"PYTHONPATH": f"{directory}:{environment().get('PYTHONPATH', '')}"}


def pausing():
    """Return the environment of a run whose ranks sleep for 4 ms where they would look around.

    strace stops each call of a rank that it follows, also those by which a rank of Open MPI waits:
    with more ranks than cores they would take nearly all of the time.
    """
    return {"WAIT_SECONDS": "0.004"}
