"""Hints and striping of files that MPI-IO opens: as asked for, and as in force.

A library may ignore any hint without a word. The values in force are read back from the open file,
and a hint that is not in force is named. A `Hint` says what became of one; `hint_facts` words them.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Protocol, runtime_checkable

import msgspec

from pffbench.case import Options, Parameters
from pffbench.errors import UserError
from pffbench.mpi import open_file
from pffbench.text import counted
from pffbench.units import Size

if TYPE_CHECKING:
    from mpi4py import MPI

#: Hints as an experiment has them.
Hints = dict[str, str | int | bool]
#: The longest name and text that all MPI libraries take.
_LONGEST_NAME, _LONGEST_TEXT = 35, 255
#: Beginnings of the names of hints on the collecting of data by some ranks for the others.
_COLLECTIVE = ("cb_", "romio_cb_")
#: Characters of what is refused that a message repeats.
_SHOWN = 40
_PRINTABLE = re.compile(r"[!-~](?:[ -~]*[!-~])?")
#: A value with a unit of bytes: MPI-IO would take the number and drop the unit.
_WITH_UNIT = re.compile(r"[0-9.]+ ?(?:[kKMGT]i?B|B)")
#: Stripes of a file of Lustre: magic number, pattern, identifier, sequence, stripe size, count.
_LAYOUT = struct.Struct("<IIQQIH")
_PLAIN_LAYOUTS = (0x0BD10BD0, 0x0BD30BD0)
#: Stripes of Lustre are multiples of this.
_STRIPE_UNIT = 2**16


class Striping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Stripes of a new file on Lustre."""

    #: Number of servers, -1 for all.
    count: Annotated[int, msgspec.Meta(ge=-1, le=9999)] | None = None
    #: Bytes on a server before the file continues on the next one: a multiple of 64 KiB.
    size: Size | None = None

    def __post_init__(self) -> None:
        if self.count == 0 or (self.count is None and self.size is None):
            raise ValueError("give count (a number of servers, or -1 for all), size, or both")
        if self.size is not None and (self.size == 0 or self.size % _STRIPE_UNIT):
            raise ValueError(f"size: {self.size} is not a multiple of 64 KiB")


@runtime_checkable
class HasHints(Protocol):
    """Options with hints and striping."""

    @property
    def hints(self) -> Hints: ...
    @property
    def striping(self) -> Striping | None: ...


def check_hints(options: HasHints) -> None:
    """Refuse values that are no hints, and settings given twice.

    Raises
    ------
    ValueError
        Names the hint and the allowed values; msgspec adds the place to it.
    """
    for name, value in options.hints.items():
        if " " in name or not _is_text(name, _LONGEST_NAME):
            raise ValueError(
                f"hints: {name[:_SHOWN]!r} is not a valid name of a hint (allowed: 1 to "
                f"{_LONGEST_NAME} printable characters without blanks, such as cb_nodes)"
            )
        if not _is_text(str(value), _LONGEST_TEXT):
            raise ValueError(
                f"hints.{name}: {str(value)[:_SHOWN]!r} is not a valid hint (allowed: a whole "
                f"number, true, false, or 1 to {_LONGEST_TEXT} printable characters)"
            )
    if twice := sorted(_of_striping(options.striping).keys() & options.hints.keys()):
        raise ValueError(f"hints.{twice[0]} and striping say the same; give one of them")


def _is_text(text: str, longest: int) -> bool:
    return len(text) <= longest and _PRINTABLE.fullmatch(text) is not None


def refuse_hints(options: HasHints, parameters: Parameters) -> str | None:
    """Return that files opened without MPI-IO have no hints, or None."""
    keys = [key for key in ("hints", "striping") if getattr(options, key)]
    if not keys or not parameters.alone:
        return None
    return (
        f"{parameters.backend}.{keys[0]} is for files that MPI-IO opens, and with files: "
        f"per_rank {parameters.backend} opens them without it"
    )


def asked_hints(options: HasHints) -> dict[str, str]:
    """Return all hints that a file is opened with, as text."""
    return {
        **{name: _text(value) for name, value in options.hints.items()},
        **_of_striping(options.striping),
    }


@contextmanager
def info_of(options: HasHints, usual: MPI.Info) -> Iterator[MPI.Info]:
    """Lend the info object to open a file with: the usual one where no hints are asked for."""
    asked = asked_hints(options)
    if not asked:
        yield usual
        return
    info = open_file.mpi().Info.Create(asked)
    try:
        yield info
    finally:
        info.Free()


class Hint(msgspec.Struct, frozen=True):
    """A hint or a stripe of a file that was asked for, and what became of it."""

    #: The hint, and the value asked for.
    name: str
    asked: str
    #: Whether the file goes by it; None if that is unknown.
    in_force: bool | None = None
    #: Why it is not in force, or why that is unknown.
    why: str = ""

    def __str__(self) -> str:
        return f"{self.name}={self.asked}"


class FileHints(msgspec.Struct, frozen=True):
    """The hints of an open file: those asked for, and all that it goes by."""

    #: Hints and stripes that were asked for.
    asked: tuple[Hint, ...]
    #: The component of MPI-IO that serves the file; empty if none does.
    component: str = ""
    #: Names and values of all hints that the component reports.
    goes_by: tuple[tuple[str, str], ...] = ()


def read_hints(file: MPI.File, path: str, options: HasHints) -> FileHints | None:
    """Return the hints and the striping in force of an open file.

    Parameters
    ----------
    file : MPI.File
        The file.
    path : str
        Its path.
    options : HasHints
        Hints and striping as asked for.

    Returns
    -------
    FileHints or None
        None where nothing was asked for.
    """
    asked = asked_hints(options)
    if not asked:
        return None
    component = open_file.io_component(file) or ""
    served = component or "this MPI-IO"
    goes_by = open_file.hints_in_force(file)
    stripes = _of_striping(options.striping)
    why = _why_not_striped(path, stripes) if stripes else None
    found = [Hint(name, value, why is None, why or "") for name, value in stripes.items()]
    for name, value in asked.items():
        if name in stripes:
            continue
        if goes_by is None:
            known = open_file.is_known_hint(name, path) is not False
            found.append(Hint(name, value, None if known else False, _unknown(served, known)))
        elif name not in goes_by:
            found.append(Hint(name, value, False, _unknown(served)))
        elif _same(goes_by[name], value):
            found.append(Hint(name, value, True))
        else:
            found.append(Hint(name, value, False, f"{served} has {goes_by[name]}"))
    return FileHints(tuple(found), served, tuple(sorted((goes_by or {}).items())))


def _unknown(component: str, known: bool = False) -> str:
    return "" if known else f"unknown to {component}"


def hints_without_file(options: HasHints, in_force: bool | None, why: str) -> FileHints | None:
    """Return the hints asked for, with the same end and reason for all; None if none was."""
    asked = asked_hints(options)
    if not asked:
        return None
    return FileHints(tuple(Hint(*pair, in_force, why) for pair in asked.items()))


def hints_of_one_writer(options: HasHints) -> FileHints | None:
    """Return that no hint is in force where a single writer opens the file without MPI-IO."""
    return hints_without_file(options, False, "one writer opens the file without MPI-IO")


def idle_hints(options: Options, parameters: Parameters, ranks: int) -> list[Hint]:
    """Return the hints that cannot have an effect in a case, whatever the library does.

    Parameters
    ----------
    options : Options
        Options of the backend.
    parameters : Parameters
        The case.
    ranks : int
        Number of ranks.
    """
    ranks = parameters.groups(ranks).largest
    hints = options.hints if isinstance(options, HasHints) else {}
    collective = "collective" in (parameters.transfer, parameters.transfer_of_reads)
    found = []
    for name, value in hints.items():
        text = _text(value)
        if name.startswith(_COLLECTIVE) and not collective:
            found.append(Hint(name, text, False, "no transfer is collective"))
        elif name == "cb_nodes" and text.isdecimal() and int(text) > ranks:
            there = "there is" if ranks == 1 else "there are"
            found.append(Hint(name, text, False, f"{there} {counted(ranks, 'rank')}"))
    return found


def uncounted_writers(options: Options, writers: int) -> list[Hint]:
    """Return ``cb_nodes`` of a collective case if another number of ranks was counted to write.

    Parameters
    ----------
    options : Options
        Options of the backend.
    writers : int
        Ranks that wrote by calls of their own; 0 if none was counted.
    """
    hints = options.hints if isinstance(options, HasHints) else {}
    asked = _text(hints.get("cb_nodes", ""))
    if not writers or asked in ("", str(writers)):
        return []
    return [Hint("cb_nodes", asked, False, f"{counted(writers, 'rank')} wrote")]


def hint_facts(
    written: Iterable[FileHints], reading: Iterable[FileHints], more: Iterable[Hint] = ()
) -> dict[str, str]:
    """Word what became of the hints of a case: the one place that does.

    Parameters
    ----------
    written, reading : iterable of FileHints
        Hints of the files, open for writing and for reading.
    more : iterable of Hint
        What else is known of the hints, for each the first that says it is not in force.

    Returns
    -------
    dict of str to str
        ``mpi_io_component``; ``hints``, all that the files go by; ``hints_unconfirmed``, those
        asked for whose value the component does not report; ``not_in_force``, those that it
        ignores or changes, each with the reason. The same with ``_reading`` of files open for
        reading, where it differs. Empty where nothing was asked for.
    """
    written, reading = list(written), list(reading)
    facts, read = _worded(written), _worded(reading)
    read.pop("mpi_io_component", None)
    again = {f"{key}_reading": text for key, text in read.items() if facts.get(key) != text}
    # A job that only reads knows nothing of the writing, which another job has recorded.
    return _worded(written, more if written else ()) | again


def _worded(files: Sequence[FileHints], more: Iterable[Hint] = ()) -> dict[str, str]:
    asked = list(dict.fromkeys(hint for file in files for hint in file.asked))
    ignored = [hint for hint in asked if hint.in_force is False]
    for hint in more:
        if hint.name not in {known.name for known in ignored}:
            ignored.append(hint)
    facts = {
        "mpi_io_component": _different(file.component for file in files),
        "hints": _different(_listed(file.goes_by) for file in files),
        "hints_unconfirmed": _reasoned([hint for hint in asked if hint.in_force is None]),
        "not_in_force": _reasoned(ignored),
    }
    return {key: text for key, text in facts.items() if text}


def _different(texts: Iterable[str]) -> str:
    return " | ".join(sorted({text for text in texts if text}))


def _reasoned(hints: Sequence[Hint]) -> str:
    """List hints; those that follow each other with the same reason share it."""
    by_reason = groupby(hints, lambda hint: hint.why)
    texts = [(" ".join(map(str, some)), why) for why, some in by_reason]
    return ", ".join(f"{text} ({why})" if why else text for text, why in texts)


def _text(value: object) -> str:
    """Return the text of a hint: bytes as a number, and the words that MPI has for bools."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and _WITH_UNIT.fullmatch(value):
        try:
            return str(int(Size.parse(value)))
        except UserError:
            return value
    return str(value)


def _of_striping(striping: Striping | None) -> dict[str, str]:
    """Return the hints that MPI reserves for striping."""
    if striping is None:
        return {}
    told = {"striping_factor": striping.count, "striping_unit": striping.size}
    return {name: str(int(value)) for name, value in told.items() if value is not None}


def _listed(hints: Iterable[tuple[str, str]], between: str = "; ") -> str:
    return between.join(f"{name}={value}" for name, value in hints)


def _same(found: str, value: str) -> bool:
    """Whether a value is the one asked for; some libraries write words in capitals."""
    return found.strip().casefold() == value.strip().casefold()


def _why_not_striped(path: str, wanted: Mapping[str, str]) -> str | None:
    """Return why a file is not striped as asked, by its layout in the file system, or None."""
    try:
        layout = os.getxattr(path, "lustre.lov")
    except OSError:
        from pffbench.storage.filesystem import filesystem

        kind = filesystem(path).type
        return f"{kind} does not say how" if kind == "lustre" else f"{kind} is not Lustre"
    if len(layout) < _LAYOUT.size:
        return "Lustre tells an unknown layout"
    magic, _, _, _, size, count = _LAYOUT.unpack_from(layout)
    if magic not in _PLAIN_LAYOUTS:
        return "the file has a layout of several parts"
    found = {"striping_factor": str(count), "striping_unit": str(size)}
    if wanted.get("striping_factor") == "-1":  # all servers, however many there are
        wanted = {name: value for name, value in wanted.items() if name != "striping_factor"}
    if all(found[name] == value for name, value in wanted.items()):
        return None
    return f"the file has {_listed(found.items(), ' ')}"
