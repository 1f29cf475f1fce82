"""The ranks of an environment in a round: a run that waits for its turn before each repetition.

Started under the launcher in each environment, with the arguments of `probe.py`.
"""

from __future__ import annotations

import sys

from pffbench.commands.run import execute
from pffbench.errors import UserError
from pffbench.run.output import best_effort_output
from pffbench_environments.probe import rank_options, report


def main() -> int:
    """Run the cases that the command line names; return the exit status."""
    with best_effort_output(of_run=True):
        try:
            return execute(rank_options(sys.argv[1:]))
        except UserError as error:
            report(error)
            return error.exit_status


if __name__ == "__main__":
    sys.exit(main())
