"""A copy of a run without the names of its directories and hosts; the numbers stay as they are."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pffbench.record.ranks_reader import trouble_with
from pffbench.record.run_json import LARGEST, digest_of
from pffbench.record.samples import COLUMNS, whole_lines
from pffbench.regular_files import open_regular, read_regular, write_replacing

#: What a run measured; everything else in its directory is made from it.
RAW = ("run.json", "samples.csv", "counters.csv", "ranks.h5")
_CHECKOUT = "/home/user/pffbench"
#: Absolute paths in a record, but for those that are alike on many machines.
_OWN_PATH = re.compile(
    r"(?<=[\"=: ,;])/(?!(?:usr|dev|proc|sys|etc|lib|lib64|bin|opt|run|home/user)/)"
    r"[\w.+@~-]+(?:/[\w.+@~-]+)*"
)
#: Keys of strings, or of lists of strings, that are names of hosts.
_HOSTS = {"host", "hosts", "wrote_on"}
#: Keys, also of environment variables, whose values name hosts in a form of their own.
_OF_HOSTS = re.compile(
    r"(?i)node_?list|host_?name|(?:submit|batch|launch)_?host|node_?(?:addr|file|name)|topology_addr"
    r"|_ur[il]$"
)
#: Keys below which words are of the experiment, even if a host has such a name.
_OF_EXPERIMENT = {"experiment", "parameters", "options", "group", "name", "run_id", "stored_as"}


def plain_copy(run: Path, copy: Path) -> None:
    """Copy the raw rows of a run into a new directory, which is made where it is missing."""
    copy.mkdir(parents=True, exist_ok=True)
    for name in RAW:
        if name != "counters.csv" or (run / name).exists():
            with open_regular(run / name) as source, (copy / name).open("wb") as target:
                shutil.copyfileobj(source, target)


def masked_copy(run: Path, copy: Path, host: str = "host{}") -> None:
    """Copy the raw rows of a run, with the names of its directories and hosts masked.

    Parameters
    ----------
    run : Path
        Results directory, left unchanged.
    copy : Path
        The new directory, made where it is missing.
    host : str
        The name of each host, with its number in place of the braces.

    Raises
    ------
    ValueError
        `ranks.h5` cannot be read.
    """
    text = read_regular(run / "run.json", LARGEST).decode()
    software = json.loads(text)["provenance"].get("software", {})
    if executable := software.get("python", {}).get("executable"):
        text = text.replace(re.sub(r"/\.v?envs?/.*", "", executable), _CHECKOUT)
    data = json.loads(_OWN_PATH.sub(_masked_path, text))
    names = dict.fromkeys(_hosts(data))
    hosts = {name: host.format(number) for number, name in enumerate(names, start=1)}
    data = _masked(data, hosts, "")
    if data.get("experiment_digest"):
        data["experiment_digest"] = digest_of(data["experiment"])
    copy.mkdir(parents=True, exist_ok=True)
    write_replacing(copy / "run.json", json.dumps(data, indent=1))
    _mask_rows(run / "samples.csv", copy / "samples.csv", hosts)
    if (run / "counters.csv").exists():
        (copy / "counters.csv").write_bytes(read_regular(run / "counters.csv", LARGEST))
    if (run / "ranks.h5").exists():  # some runs of the repository are kept without
        _mask_ranks(run / "ranks.h5", copy / "ranks.h5", hosts)


def _masked_path(path: re.Match[str]) -> str:
    """Return a user's path that keeps the last name only, unless that may be the user's."""
    place = Path(path[0])
    return f"/home/user/{place.name}" if len(place.parts) > 3 else "/home/user"


def _hosts(data: Any, key: str = "") -> Iterator[str]:
    """Yield the names of hosts in a record."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield from _hosts(value, name)
    elif isinstance(data, list):
        for value in data:
            yield from _hosts(value, key)
    elif key in _HOSTS and isinstance(data, str) and data:
        yield data


def _masked(data: Any, hosts: Mapping[str, str], key: str) -> Any:
    """Return the data of a record with each host named by its number."""
    if key in _OF_EXPERIMENT:
        return data
    if isinstance(data, dict):
        return {hosts.get(k, k): _masked(value, hosts, k) for k, value in data.items()}
    if isinstance(data, list):
        return [_masked(value, hosts, key) for value in data]
    if not isinstance(data, str):
        return data
    if data in hosts:
        return hosts[data]
    if _OF_HOSTS.search(key):
        return "masked"
    for name, mask in hosts.items():
        # Of a host with a domain the first part alone may be named too.
        words = "|".join(map(re.escape, sorted({name, name.partition(".")[0]}, reverse=True)))
        data = re.sub(rf"(?<![\w.-])(?:{words})(?![\w-])", mask, data)
    return data


def _mask_rows(table: Path, copy: Path, hosts: Mapping[str, str]) -> None:
    """Copy `samples.csv`; an incomplete last line is left out."""
    place = COLUMNS.index("slowest_host")
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    with io.TextIOWrapper(open_regular(table), encoding="utf-8", newline="") as file:
        for row in csv.reader(whole_lines(file)):
            rows.writerow([*row[:place], hosts.get(row[place], row[place]), *row[place + 1 :]])
    write_replacing(copy, text.getvalue())


def _mask_ranks(ranks: Path, copy: Path, hosts: Mapping[str, str]) -> None:
    """Copy the times of ranks into a new file: in a changed one the old names would remain."""
    import h5py

    if trouble := trouble_with(ranks):
        raise ValueError(trouble)
    with h5py.File(ranks) as source, h5py.File(copy, "w") as target:
        for name in source:
            if name not in ("host", "read_host"):
                source.copy(name, target)
                continue
            names = [hosts.get(text, text) for text in source[name].asstr()[:]]
            target.create_dataset(name, data=names, dtype=source[name].dtype)
