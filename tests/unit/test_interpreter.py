"""The state of the Python process that all cases share."""

import subprocess
import sys

_IMPORT = """
import subprocess
from pffbench.interpreter import ask_no_processor
from pffbench.job.launcher import mpi_unstarted

subprocess.Popen = None  # whatever starts a process fails
ask_no_processor()
with mpi_unstarted():
    import h5py
"""


def test_the_import_of_h5py_starts_no_process():
    subprocess.run([sys.executable, "-c", _IMPORT], check=True, timeout=60)
