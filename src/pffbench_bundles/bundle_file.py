"""Bundles: zip archives of results directories, of any origin, and the rules of their form.

All members have names that are known beforehand, so none leads to another directory. Number, sizes
and digests of the members are checked before anything is used, and nothing of a bundle is executed.
"""

from __future__ import annotations

import hashlib
import re
import stat
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Literal
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import msgspec

from pffbench.errors import UserError, explained
from pffbench.regular_files import open_regular, replacing
from pffbench.text import one_line
from pffbench.units import Size

MANIFEST, EXPERIMENT = "manifest.json", "experiment.json"
#: The files of a run, each with the most bytes that it may have; only the last may be missing.
FILES = {
    EXPERIMENT: 2**20, "run.json": 2**29, "samples.csv": 2**31 - 1, "ranks.h5": 2**31 - 1,
    "results.json": 2**29, "counters.csv": 2**30,
}  # fmt: skip
_OPTIONAL = "counters.csv"
#: Most bytes of a bundle and of its list of members, and most runs.
_LARGEST, _LONGEST_LIST, _MOST_RUNS = 2**32 - 2**21, 2**17, 100
#: Most bytes of a member over those that it takes in the archive, if it is larger than the second.
_STRETCH, _SMALL = 200, 2**20
_MEMBER = re.compile(rf"([A-Za-z0-9][\w.-]{{0,199}})/({'|'.join(map(re.escape, FILES))})", re.ASCII)
#: The record at the end of an archive, and the one before it of archives above 4 GiB.
_END, _END_OF_LARGE = struct.Struct("<4s4H2IH"), struct.Struct("<4sIQI")
#: What zipfile raises where an archive is damaged.
_DAMAGED = (
    BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, ValueError,
)  # fmt: skip
_AT_ONCE = 2**20


class Rule(msgspec.Struct, frozen=True):
    """A rule of a valid result.

    Parameters
    ----------
    number : int
        Its number, which is never given to another rule.
    sentence : str
        What holds.
    check : callable
        Yields for each thing that it looks at what is wrong with it, or an empty text.
    """

    number: int
    sentence: str
    check: Callable[[Any], Iterable[str]]


class Manifest(msgspec.Struct, frozen=True):
    """The contents of `manifest.json`.

    Parameters
    ----------
    pffbench : str
        Version of the program that wrote the bundle.
    masked : bool
        Whether names of directories and hosts are masked.
    sha256 : dict of str to str
        SHA-256 of each other member, in hexadecimal digits.
    format, version
        Kind of the archive, and version of its layout.
    """

    pffbench: str
    masked: bool
    sha256: dict[str, str]
    format: Literal["pffbench bundle"] = "pffbench bundle"
    version: Literal[1] = 1


class Bundle:
    """An open bundle, whose form may not have been checked yet.

    Parameters
    ----------
    file : binary file
        The archive.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    @cached_property
    def archive(self) -> ZipFile:
        """The archive; only for a short list of members, all of which it reads."""
        return ZipFile(self.file)

    @property
    def members(self) -> list[ZipInfo]:
        """All entries of the archive."""
        return self.archive.infolist()

    @property
    def runs(self) -> list[str]:
        """The names of the runs, which are directories in the archive."""
        return sorted({info.filename.partition("/")[0] for info in self.members} - {MANIFEST})

    @cached_property
    def manifest(self) -> Manifest:
        """The contents of `manifest.json`."""
        return msgspec.json.decode(self.archive.read(MANIFEST), type=Manifest)

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield the contents of a member; no more than the archive says that it has."""
        with self.archive.open(name) as file:
            while data := file.read(_AT_ONCE):
                yield data

    def unpack(self, run: str, directory: Path) -> None:
        """Write the files of a run, and the manifest, into a directory."""
        for info in self.members:
            folder, _, name = info.filename.rpartition("/")
            if folder == run or name == MANIFEST:
                with (directory / name).open("xb") as file:
                    file.writelines(self.chunks(info.filename))


def _container(bundle: Bundle) -> Iterator[str]:
    """Check the end of the archive, before its list is read, and the kind of each member."""
    both = _END.size + _END_OF_LARGE.size
    size = bundle.file.seek(0, 2)
    bundle.file.seek(max(0, size - both))
    tail = bundle.file.read(both).rjust(both, b"\0")
    mark, _, _, _, count, length, begin, comment = _END.unpack(tail[-_END.size :])
    if mark != b"PK\5\6" or comment or tail.startswith(b"PK\6\7"):
        yield "it is no zip archive, or one that another program wrote"
        return
    if begin + length + _END.size != size or length > _LONGEST_LIST:
        yield "it holds more than its members, or too long a list of them"
        return
    yield "" if len(bundle.members) == count else "it has more members than it says"
    for info in bundle.members:
        kind = stat.S_IFMT(info.external_attr >> 16)
        plain = kind in (0, stat.S_IFREG) and not info.is_dir() and not info.flag_bits & 1
        known = info.compress_type in (ZIP_STORED, ZIP_DEFLATED)
        yield "" if plain and known else f"{_named(info)} is a link, encrypted, or no plain file"


def _members(bundle: Bundle) -> Iterator[str]:
    """Check that each name is one of a bundle, and that none is missing or there twice."""
    names = [info.orig_filename for info in bundle.members]
    for info in bundle.members:
        known = info.orig_filename == MANIFEST or _MEMBER.fullmatch(info.orig_filename)
        yield "" if known else f"{_named(info)} is no member of a bundle"
        yield f"{_named(info)} is there twice" if names.count(info.orig_filename) > 1 else ""
    runs = bundle.runs
    yield "" if 0 < len(runs) <= _MOST_RUNS else f"it holds {len(runs)} runs"
    needed = [f"{run}/{name}" for run in runs for name in FILES if name != _OPTIONAL]
    for name in (MANIFEST, *needed):
        yield "" if name in names else f"{one_line(name, 100)} is missing"


def _sizes(bundle: Bundle) -> Iterator[str]:
    """Check what the members would take, before any is read."""
    for info in bundle.members:
        most = FILES.get(info.filename.rpartition("/")[2], _SMALL)
        yield (
            f"{_named(info)} has {Size(info.file_size)}, where at most {Size(most)} make sense"
            if info.file_size > most
            else ""
        )
        stretched = info.file_size > max(_SMALL, _STRETCH * info.compress_size)
        yield f"{_named(info)} is compressed more than {_STRETCH} times" if stretched else ""


def _digests(bundle: Bundle) -> Iterator[str]:
    """Check the manifest, and each member by its digest."""
    try:
        known = dict(bundle.manifest.sha256)
    except msgspec.MsgspecError as error:
        yield f"{MANIFEST} is not that of a bundle of this version ({one_line(str(error), 200)})"
        return
    for info in bundle.members:
        if info.filename != MANIFEST:
            same = _digest(bundle.chunks(info.filename)) == known.pop(info.filename, None)
            yield "" if same else f"{info.filename} is not the file that the manifest names"
    yield f"{one_line(min(known), 100)} is missing" if known else ""


#: The rules of a bundle; each must hold before the next one is looked at.
BUNDLE_RULES = (
    Rule(1, "A bundle is a zip archive of plain files and of nothing else.", _container),
    Rule(2, "It holds a manifest and the files of its runs, each once, under the names that a "
         "bundle has.", _members),
    Rule(3, "No member is larger than such a file can be, or compressed more than "
         f"{_STRETCH} times.", _sizes),
    Rule(4, "The manifest is of layout version 1 and has the SHA-256 of every other member.",
         _digests),
)  # fmt: skip


@contextmanager
def open_bundle(path: str | Path) -> Iterator[Bundle]:
    """Open a bundle and check its form.

    Raises
    ------
    UserError
        It cannot be read, or breaks one of `BUNDLE_RULES`, which the message names.
    """
    with ExitStack() as stack:
        with explained(f"{path}: cannot be read"):
            bundle = Bundle(stack.enter_context(open_regular(path, most=_LARGEST)))
            for rule in BUNDLE_RULES:
                if broken := _broken(rule, bundle):
                    raise UserError(f"{path}: rule {rule.number}: {broken}")
        yield bundle


def _broken(rule: Rule, bundle: Bundle) -> str:
    try:
        return next(filter(None, rule.check(bundle)), "")
    except _DAMAGED as error:
        return f"it is damaged ({one_line(str(error), 200)})"


def write_bundle(path: str | Path, runs: Mapping[str, Path], made: Manifest) -> None:
    """Write a bundle; it has no times and no owners of files.

    Parameters
    ----------
    path : str or Path
        The new file.
    runs : dict of str to Path
        The directory of each run, whose files have the names of `FILES`.
    made : Manifest
        The manifest, without digests.
    """
    digests = {}
    with replacing(path, "wb") as file, ZipFile(file, "w", allowZip64=False) as archive:
        for run, directory in runs.items():
            for name in FILES:
                if name == _OPTIONAL and not (directory / name).exists():
                    continue
                member = f"{run}/{name}"
                with open_regular(directory / name, most=FILES[name]) as source:
                    digests[member] = _digest(_copied(source, archive, member))
        manifest = msgspec.structs.replace(made, sha256=digests)
        archive.writestr(_entry(MANIFEST), msgspec.json.format(msgspec.json.encode(manifest)))


def _copied(source: IO[bytes], archive: ZipFile, member: str) -> Iterator[bytes]:
    with archive.open(_entry(member), "w") as target:
        while data := source.read(_AT_ONCE):
            target.write(data)
            yield data


def _entry(member: str) -> ZipInfo:
    info = ZipInfo(member)
    info.compress_type = ZIP_DEFLATED
    return info


def _digest(chunks: Iterable[bytes]) -> str:
    found = hashlib.sha256()
    for data in chunks:
        found.update(data)
    return found.hexdigest()


def _named(info: ZipInfo) -> str:
    return repr(one_line(info.orig_filename, 100))
