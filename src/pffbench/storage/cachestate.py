"""Bringing about a state of the page cache before reading, and proving it."""

from __future__ import annotations

import mmap
import shutil
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from pffbench.case import CacheState
from pffbench.parallel.agreement import AgreedStep
from pffbench.parallel.topology import Team
from pffbench.storage.pagecache import Residency, evict, residency, warm

#: Pages that may still be resident for a read to count as cold, and that must be for a warm one.
DROPPED_BELOW = 0.01
WARM_ABOVE = 0.99


@dataclass(frozen=True)
class CacheProof:
    """The state of the page cache right before reading; equal on all ranks.

    Parameters
    ----------
    wanted : {"warm", "shifted", "dropped", "separate", "copied"}
        What the experiment asks for.
    fraction : float
        Part of the pages of the files to be read that was resident, 0 to 1; NaN without files.
    resident : int
        Bytes of these pages, over all nodes.
    """

    wanted: CacheState
    fraction: float
    resident: int = 0

    @property
    def proved(self) -> bool:
        """Whether the measured fraction agrees with the state asked for.

        That other nodes wrote is seen to before a run reads what another job wrote; that the
        reading nodes hold nothing of it all the same is measured. ``shifted`` and ``copied`` say
        what was done, and promise nothing of what is resident.
        """
        if self.wanted in ("dropped", "separate"):
            return self.fraction < DROPPED_BELOW
        return self.wanted in ("shifted", "copied") or self.fraction > WARM_ABOVE


def bring_about(
    team: Team,
    wanted: CacheState,
    written: AbstractSet[str],
    to_read: AbstractSet[str],
    hook: str | None = None,
) -> CacheProof:
    """Evict or warm the files and measure what is resident; collective.

    Parameters
    ----------
    team : Team
        The ranks.
    wanted : {"warm", "shifted", "dropped", "separate", "copied"}
        The state asked for. ``warm`` reads what is missing. ``dropped`` writes the files out
        and evicts them on every node that wrote or will read them. ``shifted`` and ``separate``
        do nothing: ranks read what others wrote. ``copied`` does nothing either: the files are
        those of a copy (`leave_a_copy`).
    written, to_read : set of str
        The files that this rank wrote, and those that it is going to read.
    hook : str, optional
        With ``dropped``: a command that each node runs after the eviction, for file systems
        whose cache ``posix_fadvise`` does not reach.

    Raises
    ------
    PhaseFailedError
        A file could not be read or evicted, or the hook ended with an error, on any rank.
    """
    if wanted == "dropped":
        with AgreedStep(team.comm, "eviction"):
            evict(team.share_on_node(written | to_read))
        with AgreedStep(team.comm, "drop hook"):
            if hook is not None and team.is_leader:
                run_hook(hook)
    files = team.share_on_node(to_read)
    found = _measured(team, files, to_read)
    if wanted == "warm" and not found.fraction > WARM_ABOVE:
        with AgreedStep(team.comm, "warming"):
            warm(files)
        found = _measured(team, files, to_read)
    return CacheProof(wanted, found.fraction, found.here.resident * mmap.PAGESIZE)


def resident_bytes(team: Team, to_read: AbstractSet[str]) -> int:
    """Return how many bytes of files are in the page cache, over all nodes; collective."""
    found = _measured(team, team.share_on_node(to_read), to_read)
    return found.here.resident * mmap.PAGESIZE


def copied_name(store: str) -> str:
    """Return what the copy of a store is called: ``shared.h5`` becomes ``shared_copy.h5``."""
    path = Path(store)
    return str(path.with_name(f"{path.stem}_copy{path.suffix}"))


def leave_a_copy(store: str) -> None:
    """Copy a file or directory to `copied_name` and remove the original.

    It is a way, used in studies, to read what was written "without caching effects". It has
    none of the effect: what is copied goes through the page cache too, and stays there.

    Raises
    ------
    OSError
        It cannot be read, written or removed.
    """
    if Path(store).is_dir():
        shutil.copytree(store, copied_name(store))
        shutil.rmtree(store)
    else:
        shutil.copy(store, copied_name(store))
        Path(store).unlink()


def run_hook(command: str) -> None:
    """Run the site's command that drops this node's caches.

    Raises
    ------
    RuntimeError
        It ended with an error; the message holds what it printed.
    """
    import subprocess

    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise RuntimeError(f"the drop hook {command!r} ended with {done.returncode}: {said}")


def _measured(team: Team, files: list[str], to_read: AbstractSet[str]) -> _Held:
    """Count the resident pages of all nodes.

    Every node counts the files that its ranks read. The pages of one file that all nodes read
    are counted against its size once, since each byte of it is read on one node only.
    """
    here = Residency(0, 0)
    with AgreedStep(team.comm, "residency"):
        here = residency(files)
    only = next(iter(to_read)) if len(to_read) == 1 else None
    held: _Held = team.comm.allreduce(_Held.of(here, only), op=_Held.__add__)
    return held


@dataclass(frozen=True, slots=True)
class _Held:
    """What some ranks have counted, joined two by two.

    Parameters
    ----------
    here : Residency
        Pages that they found, and that their files span.
    largest : int
        Pages that the files of the one of them span that counted most.
    only : str or None
        The file that each of them reads, if it is the same and no other.
    """

    here: Residency
    largest: int
    only: str | None

    @classmethod
    def of(cls, here: Residency, only: str | None) -> _Held:
        return cls(here, here.total, only)

    def __add__(self, other: _Held) -> _Held:
        same = self.only if self.only == other.only else None
        return _Held(self.here + other.here, max(self.largest, other.largest), same)

    @property
    def fraction(self) -> float:
        """The part that is resident."""
        total = self.largest if self.only is not None else self.here.total
        return Residency(min(self.here.resident, total), total).fraction
