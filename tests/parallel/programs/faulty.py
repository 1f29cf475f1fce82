"""`pffbench` with a fault in a backend: FAULT in the environment says which, on which rank, when.

It is JSON with `backend`, `verb` (create, define, write, flush, close, open, arrays, read; `each`
for another one in each repetition, in this order; reopen; off the timer `prepare define`,
`prepare arrays`, `wrap`, `attributes`), `kind` (a function below, `lie`, or
`skip`: the call is not made), `rank`, and
`after`: how many calls of the verb on that rank go well before. FAULT_PLACE is where some of them
do harm. With `cases` each case has a verb of its own: a mapping of names of cases to verbs.
"""

import contextlib
import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from functools import partial

VERBS = ("create", "define", "write", "flush", "close", "open", "arrays", "read")
HELD = []
PLACE = os.environ.get("FAULT_PLACE", "")


def fail():
    raise OSError(5, "told to fail")


def hang():
    """Never return, and keep Python's lock, as a library may that waits for another rank."""
    ctypes.PyDLL(None).sleep(1000)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def stop():
    os.kill(os.getpid(), signal.SIGSTOP)


def overflow():
    """Call deeper than the stack is, through C."""
    sys.setrecursionlimit(10**6)

    def deeper(_):
        return max([1], key=deeper)

    deeper(1)


def starve():
    """Have 8 MiB of memory left from now on."""
    with open("/proc/self/statm") as file:
        taken = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + 2**23, resource.RLIM_INFINITY))


def exhaust():
    """Open as many files as there may be, and keep them until the store is closed."""
    with contextlib.suppress(OSError):
        while True:
            HELD.append(os.open(os.devnull, os.O_RDONLY))
    raise OSError(24, "Too many open files")


def remove_scratch():
    shutil.rmtree(PLACE)


def freeze():
    subprocess.run(["mount", "-o", "remount,ro", PLACE], check=True)


def fill(free=2**17):
    """Leave so many bytes of the file system free."""
    with open(f"{PLACE}/filler", "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 2**12)
        except OSError:
            file.truncate(max(file.tell() - free, 0))


def fill_nearly():
    """Leave room for the metadata of one rank, and not for that of another."""
    fill(2**13)


@dataclass
class Fault:
    kind: str
    rank: int
    verb: str = ""
    after: int = 0
    backend: str = "hdf5"
    cases: dict = field(default_factory=dict)
    calls: int = 0
    stores: int = 0

    def __call__(self, verb):
        """Do what is to be done at this call."""
        if verb == "create":
            self.stores += 1
        if self.rank != MPI.COMM_WORLD.rank:
            return
        now = self.verb
        if now == "each":
            now = VERBS[self.stores - 1] if self.stores <= len(VERBS) else None
        if verb != now:
            return
        self.calls += 1
        if self.calls > self.after and self.kind not in ("lie", "skip"):
            globals()[self.kind]()

    def wrapped(self, verb, call, then=lambda made: made):
        def called(*given, **more):
            if verb in ("create", "open", "reopen"):  # the backend, and the path of a store
                self.note_case(given[1])
            self(verb)
            if self.kind == "skip" and verb == self.verb and self.calls > self.after:
                return None
            return then(call(*given, **more))

        return called

    def note_case(self, path):
        """Take the verb of the case that a store is of."""
        of_case = [verb for case, verb in self.cases.items() if f"-{case}/" in path]
        self.verb = of_case[0] if of_case else "" if self.cases else self.verb

    def store(self, store):
        close = store.close

        def close_all():
            while HELD:
                os.close(HELD.pop())
            close()

        store.close = close_all
        for verb in ("flush", "close"):
            setattr(store, verb, self.wrapped(verb, getattr(store, verb)))
        for verb, name in (("define", "definer"), ("arrays", "opener")):
            setattr(store, name, self.prepared(verb, getattr(store, name)))
        store.wrap = self.wrapped("wrap", store.wrap, self.arrays)
        for name in ("attribute_writers", "attribute_readers"):
            if hasattr(store, name):
                setattr(store, name, self.wrapped("attributes", getattr(store, name)))
        return store

    def arrays(self, arrays):
        for array in arrays.values():
            if not hasattr(array, "faulty"):
                array.faulty = True
                array.writer = self.moving("write", array.writer)
                array.reader = self.moving("read", array.reader)
        return arrays

    def prepared(self, verb, prepare):
        def prepared(specs):
            self(f"prepare {verb}")
            return self.wrapped(verb, prepare(specs))

        return prepared

    def moving(self, verb, prepare):
        def prepared(box, memory, collective):
            lies = self.kind == "lie" and verb == self.verb
            then = partial(self.lied, memory) if lies else lambda returned: returned
            return self.wrapped(verb, prepare(box, memory, collective), then)

        return prepared

    def lied(self, memory, returned):
        """Change a byte of what was read."""
        out = what_was_read(returned, memory)
        if self.rank == MPI.COMM_WORLD.rank and out.size:
            out.reshape(-1).view("u1")[0] ^= 1
        return out

    def into(self, kind):
        create, open_ = kind.create, kind.open
        kind.create = self.wrapped("create", create, self.store)
        kind.open = self.wrapped("open", open_, self.store)
        if hasattr(kind, "reopen"):
            kind.reopen = self.wrapped("reopen", kind.reopen, self.store)


fault = Fault(**json.loads(os.environ["FAULT"]))
if fault.kind == "overflow" and resource.getrlimit(resource.RLIMIT_STACK)[0] != 2**20:
    resource.setrlimit(resource.RLIMIT_STACK, (2**20, 2**20))  # of the main thread: from exec on
    os.execv(sys.executable, [sys.executable, *sys.argv])

from mpi4py import MPI  # noqa: E402

from pffbench.backends.base import what_was_read  # noqa: E402
from pffbench.backends.registry import backend_class  # noqa: E402
from pffbench.cli import main  # noqa: E402

fault.into(backend_class(fault.backend))
main(sys.argv[1:])
