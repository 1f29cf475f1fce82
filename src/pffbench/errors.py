"""Errors raised by pffbench, and the exit status of each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

VALID, NOT_VALID, WRONG_INPUT, INTERRUPTED, INCONCLUSIVE, MACHINE_CHANGED = range(6)
#: Exit status of a command that Ctrl-C ended, as shells report it.
CTRL_C = 130
#: What each exit status means; `pffbench help exit` prints it.
EXIT_STATUSES = {
    VALID: "the command succeeded, and the run is valid, with or without a decision",
    NOT_VALID: "the run is not valid, a case or a check failed, or compare found FAILED",
    WRONG_INPUT: "the input is wrong (nothing was created), or two runs cannot be compared",
    INTERRUPTED: "a signal or a time limit ended the run, which can be resumed",
    INCONCLUSIVE: "compare --fail-if-slower: the runs do not decide",
    MACHINE_CHANGED: "compare --fail-if-slower: the machine changed",
    CTRL_C: "Ctrl-C ended the command",
}


class UserError(Exception):
    """An error that the user can correct: bad input, a missing file, too little space.

    The message is one sentence that names the error, its place (file and key) and the allowed
    values. The program prints it and ends with exit status 2, having created nothing.
    """

    exit_status = WRONG_INPUT


class ResultsLostError(Exception):
    """The results directory accepts no more data; the run ends. Raised on all ranks."""


class StoppedError(UserError):
    """A signal ended the run before anything was created; raised on all ranks."""

    exit_status = INTERRUPTED


class ImpossibleCaseError(UserError):
    """A case that the backend cannot run; an experiment may skip such cases."""


class UnsupportedCaseError(ImpossibleCaseError):
    """A case that the backend can run, but not with the libraries that are installed."""


@contextmanager
def explained(what: str, kind: type[Exception] = UserError) -> Iterator[None]:
    """Raise an error of the system in the ``with`` block as one that says what it means.

    Parameters
    ----------
    what : str
        What is not possible, such as ``DIR: cannot be read``; the system's reason follows.
    kind : type
        The error.
    """
    try:
        yield
    except OSError as error:
        raise kind(f"{what}: {error.strerror or error}") from None
