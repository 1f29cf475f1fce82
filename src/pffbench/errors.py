"""The errors that pffbench raises on purpose, and the exit status that each of them leads to."""

from __future__ import annotations

#: Exit statuses. The last two are of `pffbench compare --fail-if-slower`: the repetitions are too
#: few to decide, and the machine itself has changed.
VALID, NOT_VALID, WRONG_INPUT, INTERRUPTED, INCONCLUSIVE, MACHINE_CHANGED = range(6)


class UserError(Exception):
    """Something the user can mend: bad input, a missing file, too little space.

    The message is one sentence that says what is wrong, where (file and key) and what is
    allowed. The program prints it and ends with exit status 2, having created nothing.
    """

    exit_status = WRONG_INPUT


class ResultsLostError(Exception):
    """The results directory takes no more, so the run cannot go on; raised on all ranks."""


class StoppedError(UserError):
    """A signal has asked the run to end before anything was made; raised on all ranks."""

    exit_status = INTERRUPTED


class ImpossibleCaseError(UserError):
    """A case that the chosen backend cannot do; an experiment may ask to skip such cases."""
