"""Hints and striping of files that MPI-IO opens: as asked for, and as in force.

A library may ignore any hint without a word. The values in force are read back from the open file,
and a hint that is not in force is named.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
    """Stripes of a new file on Lustre.

    Parameters
    ----------
    count : int, optional
        Number of servers, -1 for all.
    size : Size, optional
        Bytes on a server before the file continues on the next one: a multiple of 64 KiB.
    """

    count: Annotated[int, msgspec.Meta(ge=-1, le=9999)] | None = None
    size: Size | None = None

    def __post_init__(self) -> None:
        if self.count == 0 or (self.count is None and self.size is None):
            raise ValueError("give count (a number of servers, or -1 for all), size, or both")
        if self.size is not None and (self.size == 0 or self.size % _STRIPE_UNIT):
            raise ValueError(f"size: {self.size} is not a multiple of 64 KiB")


@runtime_checkable
class Hinted(Protocol):
    """Options with hints and striping."""

    @property
    def hints(self) -> Hints: ...
    @property
    def striping(self) -> Striping | None: ...


def check_hints(options: Hinted) -> None:
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


def refuse_hints(options: Hinted, parameters: Parameters) -> str | None:
    """Return that files opened without MPI-IO have no hints, or None."""
    keys = [key for key in ("hints", "striping") if getattr(options, key)]
    if not keys or not parameters.alone:
        return None
    return (
        f"{parameters.backend}.{keys[0]} is for files that MPI-IO opens, and with files: "
        f"per_rank {parameters.backend} opens them without it"
    )


def asked_hints(options: Hinted) -> dict[str, str]:
    """Return all hints that a file is opened with, as text."""
    return {
        **{name: _text(value) for name, value in options.hints.items()},
        **_of_striping(options.striping),
    }


@contextmanager
def info_of(options: Hinted, usual: MPI.Info) -> Iterator[MPI.Info]:
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


def facts_of(file: MPI.File, path: str, options: Hinted) -> dict[str, str]:
    """Return the hints and the striping in force of an open file, as facts of a case.

    Parameters
    ----------
    file : MPI.File
        The file.
    path : str
        Its path.
    options : Hinted
        Hints and striping as asked for.

    Returns
    -------
    dict of str to str
        ``mpi_io_component``; ``hints``, all that the file goes by; ``hints_unconfirmed``, those
        asked for whose value the component does not report; ``not_in_force``, those that it
        ignores or changes, each with the reason. Empty where nothing was asked for.
    """
    asked = asked_hints(options)
    if not asked:
        return {}
    component = open_file.io_component(file) or "this MPI-IO"
    in_force = open_file.hints_in_force(file)
    facts = {"mpi_io_component": component}
    if in_force is not None:
        facts["hints"] = _listed(in_force)
    striping = _of_striping(options.striping)
    ignored = []
    if striping and (why := _unstriped(path, striping)):
        ignored.append(f"{_listed(striping, ' ')} ({why})")
    unconfirmed = {}
    for name, value in asked.items():
        if name in striping:
            continue
        if in_force is not None:
            if not _same(in_force.get(name), value):
                found = in_force.get(name)
                why = "does not know it" if found is None else f"has {found}"
                ignored.append(f"{name}={value} ({component} {why})")
        elif open_file.is_known_hint(name, path) is False:
            ignored.append(f"{name}={value} ({component} does not know it)")
        else:
            unconfirmed[name] = value
    if unconfirmed:
        facts["hints_unconfirmed"] = _listed(unconfirmed)
    if ignored:
        facts["not_in_force"] = ", ".join(ignored)
    return facts


def facts_alone(options: Hinted) -> dict[str, str]:
    """Return that hints are not in force where a single writer opens the file without MPI-IO."""
    asked = asked_hints(options)
    if not asked:
        return {}
    return {"not_in_force": f"{_listed(asked, ' ')} (one writer opens the file without MPI-IO)"}


def without_effect(options: Options, parameters: Parameters, ranks: int) -> dict[str, str]:
    """Return the hints that cannot have an effect in a case, whatever the library does, and why.

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
    hints = options.hints if isinstance(options, Hinted) else {}
    asked = {name: _text(value) for name, value in hints.items()}
    collective = "collective" in (parameters.transfer, parameters.transfer_of_reads)
    found = {}
    for name, value in asked.items():
        if name.startswith(_COLLECTIVE) and not collective:
            found[f"{name}={value}"] = "no transfer is collective"
        elif name == "cb_nodes" and value.isdecimal() and int(value) > ranks:
            found[f"{name}={value}"] = f"there {'is' if ranks == 1 else 'are'} " + counted(
                ranks, "rank"
            )
    return found


def beside_plan(facts: Mapping[str, str], idle: Mapping[str, str]) -> dict[str, str]:
    """Return facts of a case with the hints that cannot have an effect in it."""
    known = facts.get("not_in_force", "")
    more = [f"{hint} ({why})" for hint, why in idle.items() if f"{hint} (" not in known]
    if not more:
        return dict(facts)
    return {**facts, "not_in_force": ", ".join(filter(None, [known, *more]))}


def beside_count(facts: Mapping[str, str], hints: Hints, writers: int) -> dict[str, str]:
    """Return facts of a collective case, where ranks that write were counted, and conclusions.

    Parameters
    ----------
    facts : dict of str to str
        Facts of the case, as `facts_of` gives them.
    hints : dict
        Hints that were asked for.
    writers : int
        Ranks that wrote by calls of their own; 0 if none was counted.
    """
    known = facts.get("not_in_force", "")
    asked = _text(hints.get("cb_nodes", ""))
    if not writers or asked in ("", str(writers)) or "cb_nodes=" in known:
        return dict(facts)
    found = f"cb_nodes={asked} ({counted(writers, 'rank')} wrote)"
    return {**facts, "not_in_force": ", ".join(filter(None, [known, found]))}


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


def _listed(hints: Mapping[str, str], between: str = "; ") -> str:
    return between.join(f"{name}={value}" for name, value in sorted(hints.items()))


def _same(found: str | None, value: str) -> bool:
    """Whether a value is the one asked for; some libraries write words in capitals."""
    return found is not None and found.strip().casefold() == value.strip().casefold()


def _unstriped(path: str, wanted: Mapping[str, str]) -> str | None:
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
    return f"the file has {_listed(found, ' ')}"
