"""Conditions that make a run INVALID although all data were read back correctly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from pffbench.phases import arrivals
from pffbench.record.gather import GatheredRepetition
from pffbench.record.repetitions import Repetition, done_parts
from pffbench.record.run_json import CaseEntry, RunRecord
from pffbench.storage.page_cache import DROPPED_BELOW


def reasons_against(r: GatheredRepetition, entry: CaseEntry) -> list[str]:
    """Return the reasons why a repetition of a case is invalid."""
    reasons = [*r.mismatches, *clock_trouble(r)]
    read = int(r.nbytes[arrivals(r.phases)].sum()) * r.reads
    if entry.verified and r.verified_bytes != read:
        reasons.append(f"{r.verified_bytes} of {read} bytes verified")
    cache = r.cache
    if cache is not None and cache.wanted == "dropped" and cache.fraction >= DROPPED_BELOW:
        reasons.append(
            f"the cache was to be dropped, but {cache.fraction:.1%} of the pages were resident "
            "before reading"
        )
    return [*reasons, *read_trouble(r, entry)]


def clock_trouble(repetition: GatheredRepetition) -> Iterator[str]:
    """Yield the phases whose clock ran backwards or returned no number.

    It ran backwards if a phase ended before it began, or if all ranks ended it before this rank
    did.
    """
    own, synced = repetition.own, repetition.synced
    good = np.isfinite(own) & np.isfinite(synced) & (own >= 0) & (synced >= own)
    for phase, ranks in zip(repetition.phases, good, strict=True):
        if not ranks.all():
            yield f"the clock of rank {int(np.argmin(ranks))} ran backwards in {phase}"


#: Fraction of the bytes read that the kernel, or with a dropped cache the device, must deliver.
_DELIVERED = 0.9
FROM_DEVICE = 0.99


def read_trouble(repetition: GatheredRepetition, entry: CaseEntry) -> Iterator[str]:
    """Yield evidence that data did not come from their intended source.

    If each element is read once, stored without compression and not mapped, read(2) and related
    calls must have delivered the bytes of the data, unless chunks of nothing but the fill value
    were left out of the store. With a dropped cache, all bytes that entered the page cache during
    the read must have been fetched from the device for these processes: otherwise another process
    has filled the cache after it was found empty.

    Parameters
    ----------
    repetition : GatheredRepetition
        The repetition.
    entry : CaseEntry
        Entry of its case in `run.json`.
    """
    r = repetition
    reads = [i for i, phase in enumerate(r.phases) if phase == "read"]
    wanted = float(r.nbytes[reads].sum()) * r.reads
    stored, disk = r.stored_as or entry.stored_as, r.disk or entry.disk
    plain = stored is not None and stored.codec == "none"
    if disk is not None and disk.apparent < entry.cost.nbytes:
        plain = False  # chunks were left out
    if plain and entry.counts_reads and r.kernel_bytes < _DELIVERED * wanted:
        yield (
            f"reads of {wanted:.0f} bytes made the kernel deliver {r.kernel_bytes:.0f} only, so "
            "they did not read the files"
        )
    if r.resident_after is None or r.cache is None or not entry.counts_device:
        return
    # Holes of a file enter the cache without a fetch.
    holes = 0 if r.disk is None else max(0, r.disk.apparent - r.disk.stored)
    arrived = r.resident_after - r.cache.resident - holes
    if r.device_bytes < FROM_DEVICE * arrived:
        yield (
            f"the cache was dropped, but of {arrived} bytes that came into it while reading only "
            f"{r.device_bytes:.0f} came from the device for this job: something else read the files"
        )


def missing_repetitions(
    record: RunRecord, repetitions: Iterable[Repetition], warmup: int
) -> Iterator[str]:
    """Yield the cases with fewer recorded repetitions than the experiment requests.

    Fewer are allowed if the experiment itself set when to stop. After a failure nothing is yielded:
    the run is invalid anyway, and one that stops at the first failure has not run the rest.

    Parameters
    ----------
    record : RunRecord
        The completed run.
    repetitions : iterable of Repetition
        All of the run.
    warmup : int
        Number of warm-up repetitions, which do not count.
    """
    if any(entry.failure for entry in record.cases.values()):
        return
    finished, written = done_parts(repetitions)
    there = finished | written if record.stage == "write" else finished
    counted = Counter(case for case, number in there if number >= warmup)
    asked: int | str = record.experiment["repetitions"]
    if asked == "auto":
        asked = record.experiment["max_repetitions"]
    for case, entry in record.cases.items():
        enough = int(asked if entry.stopped_after is None else entry.stopped_after)
        if counted[case] < enough:
            yield f"{case}: {counted[case]} of {enough} repetitions are recorded"
