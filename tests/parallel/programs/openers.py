"""pffbench that notes in `opened-RANK` which data files Python opens to write on each rank."""

import os
import sys
from pathlib import Path

from pffbench.__main__ import main

if __name__ == "__main__":
    opened = Path(f"opened-{os.environ.get('OMPI_COMM_WORLD_RANK') or os.environ['PMI_RANK']}")
    opened.touch()

    def note(event, arguments):
        if event != "open" or not arguments[2] & (os.O_WRONLY | os.O_RDWR):
            return
        if ".hyperslab." in (path := str(arguments[0])):
            descriptor = os.open(opened, os.O_WRONLY | os.O_APPEND)
            os.write(descriptor, f"{path}\n".encode())
            os.close(descriptor)

    sys.addaudithook(note)
    sys.exit(main())
