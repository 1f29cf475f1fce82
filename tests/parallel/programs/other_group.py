"""pffbench whose two groups of ranks read, and remove, each the file of the other one."""

import sys

from pffbench.__main__ import main
from pffbench.workloads.repetition import Repetition


def _path_of_another(repetition):
    size = repetition.place.team.size
    return repetition.path_of((repetition.author + size // 2) % size)


if __name__ == "__main__":
    Repetition.read_path = property(_path_of_another)
    sys.exit(main())
