"""Simulate sweeps with known truth: how often the sentence names the best chunks and codec.

    python benchmarks/sweeps.py                  # 200 runs of each kind, as Markdown; minutes
    python benchmarks/sweeps.py --runs 50

A simulated run is three formats with three chunk shapes and three codecs. It goes through the code
that a real one goes through, from the rows of `samples.csv` to the sentence of the answer. Only the
times are drawn: a true factor for each chunk shape and codec, times noise (`decisions.py`).
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from decisions import KINDS
from make_run import record

from pffbench.record.run import MeasuredRun
from pffbench.record.samples import Sample
from pffbench.summary.answer import answer_of
from pffbench.summary.summary import summary_of

FORMATS = {"hdf5": 1.0, "netcdf4": 1.1, "zarr": 1.6}
CHUNKS = ((16, 256, 256), (64, 64, 64), (256, 256, 16))
CODECS = ("none", "gzip", "zstd")
#: Factors of chunk shapes and of codecs; the best of each is in the middle of its list.
PLANTED = {
    "chunks 1.5, codec 2": ((1.5, 1.0, 1.6), (2.0, 1.0, 3.0)),
    "chunks 1.2, codec 1.3": ((1.2, 1.0, 1.25), (1.3, 1.0, 1.35)),
    "nothing": ((1.0, 1.0, 1.0), (1.0, 1.0, 1.0)),
}
NOISES = (("normal", 0.05), ("normal", 0.2), ("outliers", 0.1), ("shared state", 0.2))
BEST = ("chunks 64×64×64", "codec gzip")


def simulate(
    seed: int, factors: tuple[tuple[float, ...], ...], noise: tuple[str, float], n: int
) -> str:
    """Return the sentence of a simulated run with a kind of noise and its CV."""
    kind, cv = noise
    count = len(FORMATS) * len(CHUNKS) * len(CODECS)
    drawn = iter(np.exp(KINDS[kind](np.random.default_rng(seed), (2, count, n), cv)).swapaxes(0, 1))
    cases: dict[str, dict[str, Any]] = {}
    rows: list[Sample] = []
    for name, format_factor in FORMATS.items():
        for chunks, chunk_factor in zip(CHUNKS, factors[0], strict=True):
            for codec, codec_factor in zip(CODECS, factors[1], strict=True):
                case = f"{name}.{chunks[0]}.{codec}"
                cases[case] = _entry(name, chunks, codec)
                true = 0.1 * format_factor * chunk_factor * codec_factor
                for phase, times in zip(("write", "read"), next(drawn), strict=True):
                    rows += (
                        _row(case, cases[case], number, phase, true * float(factor))
                        for number, factor in enumerate(times, start=1)
                    )
    told = record(cases, ["a"])
    told.experiment = {"repetitions": "auto", "max_repetitions": n}
    answer = answer_of(summary_of(MeasuredRun(Path("drawn"), told, tuple(rows))))
    return "" if answer is None else answer.sentence


def _entry(name: str, chunks: tuple[int, ...], codec: str) -> dict[str, Any]:
    parameters = {
        "workload": "hyperslab", "backend": name, "layout": "shared", "transfer": "independent",
        "settings": "matched", "dtype": "float32", "codec": codec, "chunks": list(chunks),
        "durability": "sync", "cache": "warm",
    }  # fmt: skip
    return {
        "parameters": parameters, "options": {}, "group": "drawn", "raw": False, "verified": True,
    }  # fmt: skip


def _row(case: str, entry: Mapping[str, Any], number: int, phase: str, seconds: float) -> Sample:
    p = entry["parameters"]
    return Sample(
        case=case, repetition=number, warmup=False, position=0, phase=phase, backend=p["backend"],
        workload=p["workload"], layout=p["layout"], transfer=p["transfer"], settings=p["settings"],
        group=entry["group"], ranks=1, nodes=1, arrays=1, operations=1, bytes=2**23,
        own_max=seconds, own_median=seconds, own_min=seconds, synced_max=seconds, slowest_rank=0,
        slowest_host="a", below_resolution=False, cache="warm" if phase == "read" else "",
        resident=None, verified_bytes=None, peak_memory=1, disk_bytes=None, disk_files=None,
        valid=True, started="2026-01-01T12:00:00.000+00:00",
    )  # fmt: skip


def names(sentence: str) -> str:
    """Say what a sentence names: both best values, some of them, none, or something wrong."""
    values = [f"chunks {'×'.join(map(str, chunks))}" for chunks in CHUNKS]
    values += [f"codec {codec}" for codec in CODECS]
    named = {value for value in values if value in sentence}
    if named - set(BEST):
        return "wrong"
    return ("none", "one", "both")[len(named)]


def table(pool: ProcessPoolExecutor, runs: int, n: int) -> Iterator[str]:
    """Yield a table: what the sentence names, in percent of the runs."""
    columns = ("both", "one", "none", "wrong")
    yield f"| planted | noise, CV | {' | '.join(columns)} |"
    yield f"| --- | --- |{' ---: |' * len(columns)}"
    for planted, factors in PLANTED.items():
        for noise in NOISES:
            job = partial(simulate, factors=factors, noise=noise, n=n)
            found = Counter(map(names, pool.map(job, range(runs), chunksize=5)))
            cells = (f"{100 * found[column] / runs:.1f}" for column in columns)
            yield f"| {planted} | {noise[0]}, {noise[1]:g} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=200, help="simulated runs of each line")
    parser.add_argument("--repetitions", type=int, default=20)
    given = parser.parse_args()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for line in table(pool, given.runs, given.repetitions):
            print(line, flush=True)


if __name__ == "__main__":
    main()
