"""Conditions that make a run INVALID although all data were read back correctly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from pffbench.record.gather import GatheredRepetition
from pffbench.record.run_json import Entry, RunRecord
from pffbench.record.samples import Sample, whole


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


def read_trouble(repetition: GatheredRepetition, entry: Entry) -> Iterator[str]:
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
    entry : dict
        Entry of its case in `run.json`.
    """
    r = repetition
    reads = [i for i, phase in enumerate(r.phases) if phase == "read"]
    wanted = float(r.nbytes[reads].sum()) * r.reads
    stored = entry.get("stored_as") or {}
    plain = (stored.get("codec") if r.stored_as is None else r.stored_as.codec) == "none"
    on_disk = entry.get("disk", {}).get("apparent") if r.disk is None else r.disk.apparent
    if on_disk is not None and on_disk < entry.get("cost", {}).get("nbytes", 0):
        plain = False  # chunks were left out
    if plain and entry.get("counts_reads") and r.kernel_bytes < _DELIVERED * wanted:
        yield (
            f"reads of {wanted:.0f} bytes made the kernel deliver {r.kernel_bytes:.0f} only, so "
            "they did not read the files"
        )
    if r.resident_after is None or r.cache is None or not entry.get("counts_device"):
        return
    # Holes of a file enter the cache without a fetch.
    holes = 0 if r.disk is None else max(0, r.disk.apparent - r.disk.stored)
    arrived = r.resident_after - r.cache.resident - holes
    if r.device_bytes < FROM_DEVICE * arrived:
        yield (
            f"the cache was dropped, but of {arrived} bytes that came into it while reading only "
            f"{r.device_bytes:.0f} came from the device for this job: something else read the files"
        )


def missing_repetitions(record: RunRecord, samples: Iterable[Sample], warmup: int) -> Iterator[str]:
    """Yield the cases with fewer recorded repetitions than the experiment requests.

    Fewer are allowed if the experiment itself set when to stop. After a failure nothing is yielded:
    the run is invalid anyway, and one that stops at the first failure has not run the rest.

    Parameters
    ----------
    record : RunRecord
        The completed run.
    samples : iterable of Sample
        All rows of the run.
    warmup : int
        Number of warm-up repetitions, which do not count.
    """
    if any("failure" in entry for entry in record.cases.values()):
        return
    complete = whole(samples, record.last_written)
    there = complete.written if record.stage == "write" else complete.finished
    counted = Counter(case for case, number in there if number >= warmup)
    asked: int | str = record.experiment["repetitions"]
    if asked == "auto":
        asked = record.experiment["max_repetitions"]
    for case, entry in record.cases.items():
        enough = int(entry.get("stopped_after", asked))
        if counted[case] < enough:
            yield f"{case}: {counted[case]} of {enough} repetitions are recorded"
