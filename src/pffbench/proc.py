"""Files of the kernel below /proc and /sys: the one place that reads their formats (proc(5))."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
SYS = Path("/sys")


def kernel_text(path: str | Path) -> str | None:
    """Return the contents of a file of /proc or /sys; None where it cannot be read."""
    try:
        # Each repetition reads dozens of them, and `Path.read_text` would take three times as long.
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            return file.read().decode(errors="replace").strip()
    except OSError:
        return None


def kernel_number(text: str | None) -> int | None:
    """Return the number that a text is, if it is one."""
    return int(text) if text is not None and text.isdecimal() else None


def process_fields(pid: int | str) -> list[str]:
    """Return the fields of /proc/PID/stat after the name, from the third one; empty if it is gone.

    Parameters
    ----------
    pid : int or str
        The process; ``self`` for this one.
    """
    return (kernel_text(PROC / f"{pid}/stat") or "").rpartition(") ")[2].split()


def labelled_bytes(path: Path, *names: str) -> dict[str, int]:
    """Return amounts of a file of lines ``NAME: NUMBER kB``, such as /proc/meminfo, in bytes.

    Names that the kernel does not report are left out.
    """
    lines = re.findall(r"^(\w+):\s*(\d+) kB$", kernel_text(path) or "", re.MULTILINE)
    return {name: 1024 * int(number) for name, number in lines if name in names}


def mapped_files() -> list[str]:
    """Return the files mapped into this process, each once, in the order of their addresses."""
    with (PROC / "self/maps").open(errors="surrogateescape") as maps:
        lines = (line.rstrip("\n").split(maxsplit=5) for line in maps)
        paths = (line[5] for line in lines if len(line) == 6 and line[5].startswith("/"))
        return list(dict.fromkeys(paths))


def open_descriptors(path: str) -> int:
    """Count the descriptors of this process on a file, or on files below a directory."""
    path = os.path.realpath(path)
    found = 0
    for entry in (PROC / "self/fd").iterdir():
        with suppress(OSError):  # the descriptor of this list itself is gone then
            target = str(entry.readlink())
            found += target == path or target.startswith(f"{path}/")
    return found


def files_defining(function: str) -> list[str]:
    """Return the shared libraries of this process that define a C function, by their real paths.

    The names of files say little: one MPI is ``libmpi_gnu_123.so.12``, another ``libmpich.so.12``,
    and ``libmpi_mpifh.so.40`` belongs to a third.

    Parameters
    ----------
    function : str
        Name of the function, such as ``MPI_Get_library_version``.
    """
    import ctypes

    class Place(ctypes.Structure):
        """Result of dladdr(3)."""

        _fields_ = (
            ("file", ctypes.c_char_p),
            ("base", ctypes.c_void_p),
            ("symbol", ctypes.c_char_p),
            ("address", ctypes.c_void_p),
        )

    locate = ctypes.CDLL(None).dladdr
    files = set()
    for path in mapped_files():
        if ".so" not in path.rpartition("/")[2]:
            continue
        try:
            # Of a library that is loaded already; what only its dependencies define is theirs.
            pointer = getattr(ctypes.CDLL(path, os.RTLD_NOLOAD | os.RTLD_LAZY), function)
        except (OSError, AttributeError):
            continue
        place = Place()
        if locate(pointer, ctypes.byref(place)):
            files.add(os.path.realpath(os.fsdecode(place.file)))
    return sorted(files)


def number_ranges(numbers: set[int]) -> str:
    """Write a set of numbers the way the kernel writes core lists: ``0-3,8``."""
    first = {n for n in numbers if n - 1 not in numbers}
    last = sorted(n for n in numbers if n + 1 not in numbers)
    pairs = zip(sorted(first), last, strict=True)
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in pairs)


def from_ranges(text: str) -> set[int]:
    """Read a set of numbers from the text that `number_ranges` writes."""
    numbers: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers
