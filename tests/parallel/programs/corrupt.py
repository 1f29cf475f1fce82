"""Change one byte in the midst of the first data file below a directory, as a bad disk would.

    python corrupt.py DIRECTORY

The file is written out and dropped from the page cache again, as after a real eviction.
"""

import os
import sys
from pathlib import Path


def data_files(directory):
    for path in sorted(Path(directory).rglob("*")):
        described = path.name == "zarr.json" or path.name.startswith(".")
        if path.is_file() and not described:
            yield path


def corrupt(path):
    descriptor = os.open(path, os.O_RDWR)
    middle = os.fstat(descriptor).st_size // 2
    byte = os.pread(descriptor, 1, middle)
    os.pwrite(descriptor, bytes([byte[0] ^ 0x10]), middle)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


corrupt(next(data_files(sys.argv[1])))
