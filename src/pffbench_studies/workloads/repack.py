"""Rewriting of a store with other chunks: through the library, or by h5repack."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

import numpy as np

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import define_arrays, open_arrays, what_was_read
from pffbench.storage.durability import disk_usage, files_below
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.route import count_owned
from pffbench.workloads.transfers import Access
from pffbench.workloads.write_read import describe_store

#: The program of HDF5 that rewrites a file.
PROGRAM = "h5repack"
#: Seconds after which it counts as stuck.
_TIMEOUT = 3600.0


def repack_by_library(
    repetition: Repetition, anew: Repetition, copies: Sequence[Access]
) -> set[str]:
    """Read a store and write it again, timed with opening and closing as the phase `repack`.

    Collective. A buffer holds one access, as in a program that rewrites a large file; its data
    spaces are made on the timer, which takes microseconds for each.

    Parameters
    ----------
    repetition, anew : Repetition
        The existing store and the new one.
    copies : sequence of Access
        The accesses that this rank copies, one a call.

    Returns
    -------
    set of str
        The files that this rank wrote to.
    """
    team = repetition.place.team
    with repetition.step("plan"):
        before, after = (part.subject.arrays.specs(team.rank) for part in (repetition, anew))
        owned = count_owned(before, repetition.owner)
        memory = np.empty(max((access.nbytes for access in copies), default=0), np.uint8)
        memory.fill(0)  # touched before the time begins
        nbytes = sum(access.nbytes for access in copies)
    collective = repetition.subject.collective
    with repetition.place.clock.phase("repack", nbytes, owned):
        source = repetition.subject.backend.open(repetition.path, repetition.comm)
        repetition.place.open_stores.append(source)
        target = repetition.subject.backend.create(anew.path, repetition.comm)
        repetition.place.open_stores.append(target)
        old, new = open_arrays(source, before), define_arrays(target, after)
        for access in copies:
            name, box = access.spec.name, access.box
            if box.size == 0 and not (collective or access.spec.owner is None):
                continue
            part = access.view_of(memory, 0)
            got = what_was_read(old[name].reader(box, part, collective)(), part)
            new[name].writer(box, np.ma.getdata(got), collective)()
        target.close()
        source.close()
    for store in (source, target):
        repetition.place.open_stores.remove(store)
    with repetition.step("files"):
        return target.files()


def repack_by_program(
    repetition: Repetition, anew: Repetition, datasets: int | None = None
) -> set[str]:
    """Let h5repack rewrite a store, timed as the phase `repack`; collective.

    It runs in a separate process: for each rank that has a file to itself, or for all.

    Parameters
    ----------
    repetition, anew : Repetition
        The existing store and the new one.
    datasets : int, optional
        Number of datasets of each rank to rewrite; the program copies the others.

    Returns
    -------
    set of str
        The files that this rank's program wrote.

    Raises
    ------
    PhaseFailedError
        The program ended with an error on some rank.
    """
    team = repetition.place.team
    mine = repetition.keeps_file
    with repetition.step("plan"):
        specs: Sequence[ArraySpec] = anew.subject.arrays.specs(team.rank)
        if datasets is not None:
            specs = [spec for spec in specs if spec.number < datasets]
        paths = repetition.path, anew.path
        command = command_of(*paths, specs) if mine else []
        nbytes = sum(spec.nbytes for spec in specs) if mine else 0
    with repetition.place.clock.phase("repack", nbytes, len(specs) if mine else 0):
        if mine:
            _run(command)
    with repetition.step("files"):
        return set(files_below([paths[1]])) if mine else set()


def command_of(source: str, target: str, specs: Sequence[ArraySpec]) -> list[str]:
    """Return the command of h5repack.

    Datasets with the same new storage are named together, as in a command written by hand; those
    not named are copied unchanged.
    """
    alike: dict[tuple[str, str], list[str]] = {}
    for spec in specs:
        assert isinstance(spec.chunks, tuple)
        chunks = "x".join(map(str, spec.chunks))
        codec = f"GZIP={spec.level}" if spec.codec == "gzip" else "NONE"
        alike.setdefault((chunks, codec), []).append(spec.name)
    told: list[str] = []
    for (chunks, codec), names in alike.items():
        together = ",".join(names)
        told += ["-l", f"{together}:CHUNK={chunks}", "-f", f"{together}:{codec}"]
    return [PROGRAM, *told, source, target]


def note_storage(anew: Repetition) -> None:
    """Replace the recorded storage layout by that of the rewritten store; collective."""
    with anew.step("inspection"):
        if not anew.place.team.is_root:
            return
        ranks = filter(anew.groups.keeps, range(anew.place.team.size))
        anew.observed.disk = disk_usage([anew.path_of(rank) for rank in ranks])
        if anew.request.inspect:
            anew.observed.stored_as = describe_store(anew)


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {said}")
