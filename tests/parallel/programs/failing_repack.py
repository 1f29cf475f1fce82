"""Runs pffbench with an `h5repack` that ends with an error."""

import sys

from pffbench.cli import main
from pffbench_studies.workloads import repack

repack.command_of = lambda *_: ["sh", "-c", "echo no room >&2; exit 3"]
sys.exit(main())
