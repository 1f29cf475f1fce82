"""The rules of a valid result, each with the check that derives it again from the raw rows.

`RULES` is the only list of them: docs/rules.md and `pffbench check` are made of it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from pffbench import __version__
from pffbench.errors import UserError
from pffbench.experiment.load import parse
from pffbench.phases import arrivals
from pffbench.record.counters import read_counts
from pffbench.record.ranks_reader import NAME as RANKS
from pffbench.record.ranks_reader import read_times, trouble_with
from pffbench.record.run import MeasuredRun
from pffbench.record.run_json import Entry, RunRecord, digest_of, readable
from pffbench.record.samples import Sample
from pffbench.record.validity import FROM_DEVICE, missing_repetitions
from pffbench.regular_files import read_regular
from pffbench.storage.page_cache import DROPPED_BELOW, WARM_ABOVE
from pffbench.summary.results import FILE, as_data
from pffbench.summary.summary import summary_of
from pffbench.text import one_line
from pffbench_bundles.bundle_file import BUNDLE_RULES, EXPERIMENT, FILES, MANIFEST, Manifest, Rule

#: Parameters of a case that its rows have too.
_OF_CASE = ("backend", "workload", "layout", "transfer", "settings")
#: Relative difference of two numbers that rounding on another processor can make.
_ROUNDING = 1e-9


class CheckedRepetition(msgspec.Struct, frozen=True):
    """A repetition of a case.

    Parameters
    ----------
    case, number : str, int
        The case and the number of the repetition.
    entry : dict
        The entry of the case in `run.json`.
    rows : dict of str to Sample
        The rows by phase.
    """

    case: str
    number: int
    entry: Entry
    rows: dict[str, Sample]

    def says(self, what: str, good: bool) -> str:
        """Return nothing where something is good, and else where it is not."""
        return "" if good else f"{self.case} repetition {self.number}{what}"

    @property
    def arrived(self) -> int:
        """Bytes that ranks got in each read."""
        phases = list(self.rows)
        return sum(self.rows[phases[i]].bytes for i in arrivals(phases))


class Result(msgspec.Struct, frozen=True, dict=True):
    """A results directory to check.

    Parameters
    ----------
    directory : Path
        It may come from anyone.
    """

    directory: Path

    @cached_property
    def run(self) -> MeasuredRun:
        """Its rows and its record."""
        return MeasuredRun.load(self.directory)

    @property
    def record(self) -> RunRecord:
        """The contents of `run.json`."""
        return self.run.record

    @cached_property
    def known(self) -> Mapping[tuple[str, int], CheckedRepetition]:
        """The repetitions by case and number."""
        found: dict[tuple[str, int], CheckedRepetition] = {}
        for row in self.run.kept:
            key = (row.case, row.repetition)
            if key not in found:
                found[key] = CheckedRepetition(*key, self.record.cases[row.case], {})
            found[key].rows[row.phase] = row
        return found

    @property
    def repetitions(self) -> Iterable[CheckedRepetition]:
        """All repetitions, in their order."""
        return self.known.values()


class Outcome(msgspec.Struct, frozen=True):
    """What a rule says of a result.

    Parameters
    ----------
    rule : Rule
        The rule.
    looked_at : int
        Number of things that were looked at; a rule may have nothing to look at.
    broken : list of str
        What is wrong.
    """

    rule: Rule
    looked_at: int
    broken: list[str]


def examine(directory: Path) -> Iterator[Outcome]:
    """Yield what each rule says of a results directory.

    Nothing more is said of one whose files cannot be read.
    """
    result = Result(directory)
    for rule in RUN_RULES:
        try:
            with readable(directory):
                texts = list(rule.check(result))
        except (UserError, OSError) as error:
            texts = [one_line(str(error))]
        yield Outcome(rule, len(texts), list(filter(None, texts)))
        if rule is RUN_RULES[0] and any(texts):
            return


def _readable(result: Result) -> Iterator[str]:
    yield "" if result.run.kept else "samples.csv has no whole repetition"
    yield trouble_with(result.directory / RANKS) or ""
    read_counts(result.directory)


def _experiment(result: Result) -> Iterator[str]:
    record, path = result.record, result.directory / EXPERIMENT
    if record.experiment_digest:
        same = digest_of(record.experiment) == record.experiment_digest
        yield "" if same else "experiment_digest is that of another experiment"
    if path.exists():
        text = read_regular(path, FILES[EXPERIMENT]).decode("utf-8", "replace")
        same = parse(text, EXPERIMENT) == record.experiment
        yield "" if same else f"{EXPERIMENT} is another experiment than that of run.json"


def _valid(result: Result) -> Iterator[str]:
    record = result.record
    yield "" if record.status == "finished" else f"its status is {record.status}"
    yield "" if record.valid is True else "its verdict is not VALID"
    yield from map(one_line, record.reasons)
    yield from result.run.gaps
    for name, entry in record.cases.items():
        out = entry.get("failure") or entry.get("invalid")
        yield f"{name} failed, or read wrong data" if out else ""
    for one in result.repetitions:
        yield one.says(" is marked as not valid", all(row.valid for row in one.rows.values()))


def _enough(result: Result) -> Iterator[str]:
    record = result.record
    yield from ("" for _ in record.cases)
    yield from missing_repetitions(record, result.run.kept, record.experiment.get("warmup", 1))


def _whole(result: Result) -> Iterator[str]:
    first: dict[str, Iterable[str]] = {}
    for one in result.repetitions:
        same = first.setdefault(one.case, one.rows.keys()) == one.rows.keys()
        yield one.says(" has other phases than the one before", same)
        asks = one.entry["parameters"].get("durability") == "sync" and "write" in one.rows
        yield one.says(" has no phase sync, as its durability asks", "sync" in one.rows or not asks)


def _blocks(result: Result) -> Iterator[str]:
    warmup = result.record.experiment.get("warmup", 1)
    taken: dict[tuple[int, int], str] = {}
    for one in result.repetitions:
        marks = {row.warmup for row in one.rows.values()}
        yield one.says(
            " is marked as a warm-up, or as none, wrongly", marks == {one.number < warmup}
        )
        first, *others = {row.position for row in one.rows.values()}
        alone = taken.setdefault((one.number, first), one.case) == one.case and not others
        # Each job of a run in two stages has an order of its own.
        yield one.says(" has the position of another case", alone or result.record.stage != "all")


def _described(result: Result) -> Iterator[str]:
    run, hosts = result.run, result.record.topology.get("hosts", [])
    yield "" if len(hosts) == run.ranks else f"{len(hosts)} hosts are named, for {run.ranks} ranks"
    for one in result.repetitions:
        told = [one.entry["parameters"][key] for key in _OF_CASE]
        told += [one.entry["group"], run.ranks, run.nodes]
        for row in one.rows.values():
            same = told == [getattr(row, key) for key in (*_OF_CASE, "group", "ranks", "nodes")]
            yield one.says(f": {row.phase} is of another case, or of other ranks", same)


def _verified(result: Result) -> Iterator[str]:
    for one in result.repetitions:
        if (row := one.rows.get("read")) and one.entry["verified"]:
            arrived = row.reads * one.arrived
            told = f": {row.verified_bytes} of {arrived} bytes were verified"
            yield one.says(told, row.verified_bytes == arrived)


def _cache(result: Result) -> Iterator[str]:
    for one in result.repetitions:
        if (row := one.rows.get("read")) is None:
            continue
        resident = -1.0 if row.resident is None else row.resident
        told = f": {resident:.0%} resident is not {row.cache}"
        if row.cache == "warm":
            yield one.says(told, resident > WARM_ABOVE)
        if row.cache in ("dropped", "separate"):
            yield one.says(told, 0 <= resident < DROPPED_BELOW)
        if one.entry["parameters"].get("cache") == "dropped":
            yield one.says(": the cache was not dropped", row.cache == "dropped")
            yield one.says(": not all bytes came from the device", _fetched(row, one.entry))


def _fetched(row: Sample, entry: Entry) -> bool:
    """Whether the job fetched what came into the cache; holes of files come without a fetch."""
    if not entry.get("counts_device") or row.resident_after is None:
        return True
    disk = entry.get("disk") or {}
    apparent, stored = (int(disk.get(key, 0)) for key in ("apparent", "stored"))
    known = max(0, apparent - stored) + DROPPED_BELOW * apparent
    return (row.device_bytes or 0) >= FROM_DEVICE * (row.resident_after - known)


def _equal_work(result: Result) -> Iterator[str]:
    moved: dict[tuple[str, str], int] = {}
    for one in result.repetitions:
        for phase in {"write", "read"} & one.rows.keys():
            nbytes = one.arrived if phase == "read" else one.rows[phase].bytes
            same = moved.setdefault((one.entry["group"], phase), nbytes) == nbytes
            yield one.says(f": {phase} moved other bytes than others", same)


def _clock(result: Result) -> Iterator[str]:
    own = result.record.clock == "own"
    for one in result.repetitions:
        for row in one.rows.values():
            most = row.own_max if own else max(row.own_max, row.synced_max)
            good = row.own_max <= row.seconds <= most
            good &= row.own_min <= row.own_median <= row.own_max
            yield one.says(f": the seconds of {row.phase} are not those of the clock", good)


def _ranks(result: Result) -> Iterator[str]:
    if result.record.environments:  # whose rows are medians of those of a step
        return
    one_job = result.record.stage == "all"  # another one has a memory of its own
    path, names = result.directory / RANKS, ("own", "synced", "bytes", "peak_memory")
    hosts, times = read_times(path, dict.fromkeys(result.record.cases), names)
    left = dict(result.known)
    yield "" if len(hosts) == result.run.ranks else f"it is of {len(hosts)} ranks"
    for of in times:
        for place, number in enumerate(of.repetition):
            one = left.pop((of.case, number), CheckedRepetition(of.case, number, {}, {}))
            yield one.says(" has other rows than phases there", set(one.rows) == set(of.phases))
            arrays = [of.arrays[name][place] for name in names[:3]]
            memory = int(of.arrays["peak_memory"][place].max())
            for phase, own, synced, nbytes in zip(of.phases, *arrays, strict=True):
                if (row := one.rows.get(phase)) is not None:
                    same = _is_of(row, own, synced, int(nbytes.sum()))
                    same &= row.peak_memory == memory or not one_job
                    yield one.says(f": {phase} differs", same)
    yield from (one.says(" is not there", False) for one in left.values())


def _is_of(row: Sample, own: Any, synced: Any, nbytes: int) -> bool:
    """Whether a row is that of these ranks; of several batches the slowest of each is added up."""
    numbers = (row.own_min, row.own_median, row.synced_max)
    known = (float(own.min()), float(np.median(own)), float(synced.max()))
    slowest = own.max() <= row.own_max <= own.sum() * (1 + _ROUNDING)
    return bool(numbers == known and row.bytes == nbytes and slowest)


def _time(result: Result) -> Iterator[str]:
    record = result.record
    moment = datetime.fromisoformat
    begin, end = moment(record.started), moment(record.finished or record.started)
    end += timedelta(seconds=1)  # to which both are rounded
    for one in result.repetitions:
        first = next(iter(one.rows.values()))
        yield one.says(" began outside of the run", begin <= moment(first.started) < end)
    took = sum(row.seconds * row.reads for row in result.run.kept)
    within = took <= (end - begin).total_seconds()
    yield "" if within else f"the phases took {took:.0f} s, longer than the run"


def _provenance(result: Result) -> Iterator[str]:
    made = result.record.provenance
    software = made.get("software", {})
    libraries = software.get("libraries", {})
    for what, there in (
        ("the version of pffbench", software.get("pffbench", {}).get("version")),
        ("the version of Python", software.get("python", {}).get("version")),
        ("the versions of the libraries", libraries and all(map(_version, libraries.values()))),
        ("the file system", made.get("filesystem", {}).get("type")),
        ("processor and memory of each node", made.get("hosts")
         and all(host.get("cpu_model") and host.get("memory_bytes") for host in made["hosts"])),
    ):  # fmt: skip
        yield "" if there else f"run.json does not name {what}"


def _version(library: Mapping[str, Any]) -> Any:
    return library.get("version") or not library.get("imported")


def _counters(result: Result) -> Iterator[str]:
    for row in read_counts(result.directory):
        key = (row.case, row.repetition)
        one = result.known.get(key, CheckedRepetition(*key, {}, {}))
        known = any(sample.warmup == row.warmup for sample in one.rows.values())
        yield one.says(f": {one_line(row.counter, 60)} is of no repetition", known)


def _derived(result: Result) -> Iterator[str]:
    path, manifest = (result.directory / name for name in (FILE, MANIFEST))
    if not path.exists():
        return
    derived = json.loads(json.dumps(as_data(summary_of(result.run))))
    # Another version may word it otherwise.
    texts = not manifest.exists() or _version_of(manifest) == __version__
    yield from _same(json.loads(read_regular(path, FILES[FILE])), derived, FILE, texts=texts)


def _version_of(manifest: Path) -> str:
    return msgspec.json.decode(read_regular(manifest, FILES[EXPERIMENT]), type=Manifest).pffbench


def _same(stored: Any, derived: Any, place: str, *, texts: bool) -> Iterator[str]:
    """Compare two documents value by value, or only their numbers."""
    if isinstance(stored, dict) and isinstance(derived, dict):
        for key in stored.keys() & derived.keys() if not texts else stored:
            yield from _same(stored[key], derived.get(key), f"{place}.{key}", texts=texts)
    elif isinstance(stored, list) and isinstance(derived, list) and len(stored) == len(derived):
        for i, (one, other) in enumerate(zip(stored, derived, strict=True)):
            yield from _same(one, other, f"{place}[{i}]", texts=texts)
    elif texts or isinstance(stored, int | float):
        numbers = isinstance(stored, float) and isinstance(derived, float)
        same = math.isclose(stored, derived, rel_tol=_ROUNDING) if numbers else stored == derived
        told = f"{place} is {stored!r}, and the rows give {derived!r}"
        yield "" if same else one_line(told, 300)


#: The rules of a results directory; nothing else is said of one that breaks the first.
RUN_RULES = (
    Rule(5, "`run.json`, `samples.csv`, `ranks.h5` and `counters.csv` have a layout that this "
         "version reads, and hold only what a run can write.", _readable),
    Rule(6, "The experiment is that of the run: by its digest, and in a bundle by its file.",
         _experiment),
    Rule(7, "The run is finished and VALID: no case failed, and nothing speaks against any "
         "repetition.", _valid),
    Rule(8, "Every case has the repetitions that were asked for, or after which the run stopped "
         "it.", _enough),
    Rule(9, "All repetitions of a case have the same phases, with `sync` where its durability asks "
         "for it.", _whole),
    Rule(10, "The first repetitions, and no others, are warm-ups, and each case has a position of "
         "its own in a block.", _blocks),
    Rule(11, "Each row names its case and the ranks and nodes of the run.", _described),
    Rule(12, "Every byte that arrived was verified.", _verified),
    Rule(13, "Each state of the page cache has its proof, and one that was asked for as `dropped` "
         "was reached.", _cache),
    Rule(14, "Cases that are compared write and read the same number of bytes.", _equal_work),
    Rule(15, "The seconds of a phase are those of the clock of the run.", _clock),
    Rule(16, "The rows are what the seconds, bytes and memory of the ranks in `ranks.h5` give, "
         "and no repetition is in one of them alone.", _ranks),
    Rule(17, "Each repetition began within the run, and the phases took no longer than the run.",
         _time),
    Rule(18, "The versions of the software, the file system, and processor and memory of each "
         "node are recorded.", _provenance),
    Rule(19, "Counters belong to repetitions of the run.", _counters),
    Rule(20, "The numbers of `results.json` are those that the rows give, and so are the sentences "
         "of this version.", _derived),
)  # fmt: skip
RULES = (*BUNDLE_RULES, *RUN_RULES)
