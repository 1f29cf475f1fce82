"""Errors raised by pffbench, and the exit status of each."""

from __future__ import annotations

#: Exit statuses. The last two are of `pffbench compare --fail-if-slower`: the repetitions are too
#: few to decide, and the machine itself has changed.
VALID, NOT_VALID, WRONG_INPUT, INTERRUPTED, INCONCLUSIVE, MACHINE_CHANGED = range(6)


class UserError(Exception):
    """An error that the user can correct: bad input, a missing file, too little space.

    The message is one sentence that names the error, its place (file and key) and the allowed
    values. The program prints it and ends with exit status 2, having created nothing.
    """

    exit_status = WRONG_INPUT


class ResultsLostError(Exception):
    """The results directory accepts no more data; the run ends. Raised on all ranks."""


class StoppedError(UserError):
    """A signal has asked the run to end before anything was made; raised on all ranks."""

    exit_status = INTERRUPTED


class ImpossibleCaseError(UserError):
    """A case that the chosen backend cannot do; an experiment may ask to skip such cases."""
