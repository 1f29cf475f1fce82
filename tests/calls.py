"""The functions of pffbench that are called, such as between the two stamps of a phase."""

from __future__ import annotations

import sys
from contextlib import contextmanager

import pffbench

SOURCES = pffbench.__path__[0]


@contextmanager
def calls_of_ours():
    """Note the functions of pffbench that are called meanwhile."""
    called = []

    def note(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(SOURCES):
            called.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(None)
