"""pffbench in which a part of the report fails: FAILS is `module:function`, or a method.

Of `Recorder` as a full disk makes it fail, else by an error of our own.
"""

import errno
import os
import sys
from functools import reduce
from importlib import import_module

from pffbench.__main__ import main

module, _, path = os.environ["FAILS"].partition(":")
*owners, name = path.split(".")


def fail(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device") if owners else KeyError("format")


if __name__ == "__main__":
    setattr(reduce(getattr, owners, import_module(module)), name, fail)
    sys.exit(main())
