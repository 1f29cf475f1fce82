"""`pffbench scaling`: rates as a function of the number of ranks or nodes."""

from __future__ import annotations

import argparse

from pffbench.commands import needing_analysis
from pffbench.run.output import print_json

#: Version of what `--json` prints; a higher one changed or removed a key.
_JSON_VERSION = 2


def main(arguments: argparse.Namespace) -> int:
    """Study a series of runs; print the verdict, then each file. Return the status.

    With `--json` files are written only into a directory that was named.
    """
    with needing_analysis("scaling"):
        from pffbench_analysis.scaling.export import scaling

        study = scaling(arguments.runs, arguments.out, arguments.over, arguments.predict)
        if arguments.json:
            files = [path.name for path in study.write()] if arguments.out else []
            data = study.data(files)
            print_json({"format": "pffbench scaling", "version": _JSON_VERSION, **data})
            return 0
        for line in study.lines():
            print(line, flush=True)
        for path in study.write():
            print(path, flush=True)
    return 0
