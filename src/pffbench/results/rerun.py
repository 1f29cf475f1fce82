"""The command that measures a run again, as it was started, with some keys changed.

`larger` has the key that makes its times longer.

A `run.json` may come from anybody, so of its command line only options that change the experiment
are kept, each quoted; no option that starts another program is among them.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pffbench.record.run_json import RunRecord
from pffbench.text import has_controls

#: Options with a value that a command keeps.
_KEPT = ("--set", "--scratch")
#: Keys of an experiment that name commands.
_COMMANDS = ("environments", "launcher")
#: How much longer than its rounds a time budget is.
_SPARE = 1.25
_SETTING = re.compile(r"[\w.]+=")
#: Keys of workloads that say how much is moved; where a case has several, the first one.
_AMOUNTS = ("granules", "datasets_per_rank", "datasets", "shape_per_rank", "shape")


def command_again(record: RunRecord, changes: Mapping[str, str] | None = None) -> str:
    """Return the command that measures a run again; empty where it cannot be given.

    Parameters
    ----------
    record : RunRecord
        The run.
    changes : dict of str to str
        Keys of the experiment, or of its cases, with their new values.
    """
    changed = dict(changes or {})
    options = list(_kept(record.command))
    place = record.experiment_file.removeprefix("built-in ")
    if has_controls(place) or place.startswith("-") or any(has_controls(v) for _, v in options):
        return ""
    words = [*_launcher(record), "python", "-m", "pffbench", "run"]
    if place != "default":
        words.append(place)
    if record.experiment.get("starts") and "repetitions" in changed:
        changed["starts"] = changed.pop("repetitions")
    for option, value in options:
        key = value.partition("=")[0]
        if option != "--set" or (key not in (*changed, *_COMMANDS) and _SETTING.match(value)):
            words += [option, value]
    for key, value in changed.items():
        words += ["--set", f"{key}={value}"]
    if record.accept_busy:
        words.append("--accept-busy")
    return shlex.join(words)


def command_to_resume(record: RunRecord, directory: str | Path, *options: str) -> str:
    """Return the command that continues an interrupted run; `--trust` lets its commands start."""
    trust = ["--trust"] if record.environments else []
    return shlex.join([*resuming(_launcher(record), directory), *options, *trust])


def command_in_batch(record: RunRecord, directory: str | Path) -> str:
    """Return the command that continues a run on whatever hosts."""
    trust = ["--trust"] if record.environments else []
    words = _running(_launcher(record))
    return shlex.join([*words, "--batch", "--out", str(directory), *trust])


def resuming(launcher: Sequence[str], directory: str | Path) -> list[str]:
    """Return the words of a command that continues a run."""
    return [*_running(launcher), "--resume", str(directory)]


def _running(launcher: Sequence[str]) -> list[str]:
    """Return the words that start `run`; one rank needs no launcher."""
    if launcher and launcher[-1] != "1":
        return [*launcher, "python", "-m", "pffbench", "run"]
    return ["pffbench", "run"]


def starter(ranks: int, by: str) -> list[str]:
    """Return the words that start ranks, where a scheduler may have to."""
    start = {"slurm": ["srun"], "flux": ["flux", "run"]}.get(by, ["mpiexec"])
    return [*start, "-n", str(ranks)]


def budget_for(seconds: float) -> int:
    """Return the time budget that holds so many seconds of rounds, with some to spare."""
    return 10 * math.ceil(_SPARE * seconds / 10)


def larger(record: RunRecord, names: Iterable[str], factor: int) -> tuple[str, dict[str, str]]:
    """Return how the experiment makes times longer: in words, and the change of its key.

    Parameters
    ----------
    record : RunRecord
        The run.
    names : iterable of str
        The cases whose times are too short.
    factor : int
        How many times as long they are to be. Arrays grow along their first axis.
    """
    there = [record.cases[name].parameters for name in names]
    key = next((key for key in _AMOUNTS if any(_is_amount(p.get(key)) for p in there)), None)
    if key is None:
        return "use larger arrays", {}
    words = f"use a larger {key}" if key.startswith("shape") else f"use more {key}"
    every = [e.parameters.get(key) for e in record.cases.values() if not e.raw]
    if any(value != every[0] for value in every):  # which one setting cannot keep apart
        return words, {}
    match every[0]:
        case [first, *others]:
            return words, {key: f"{[factor * first, *others]}"}
        case int(count):
            return words, {key: f"{factor * count}"}
    return words, {}


def _is_amount(value: object) -> bool:
    """Return whether a key says how much is moved: 1 array is large, and a list has other keys."""
    return value not in (None, 0, 1) and not (
        isinstance(value, list) and any(not isinstance(one, int) for one in value)
    )


def _launcher(record: RunRecord) -> list[str]:
    """Return what starts the ranks; nothing where the run starts them itself, or is one process."""
    made = record.provenance
    if record.environments or "missing" in (made.get("mpi_io") or {}):
        return []
    return starter(record.ranks, next((name for name in ("slurm", "flux") if made.get(name)), ""))


def _kept(command: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the options of a command line that change the experiment, with their values."""
    words = iter(command)
    for word in words:
        option, equals, value = word.partition("=")
        if option in _KEPT:
            yield option, value if equals else next(words, "")


def wrapped(command: str, width: int) -> list[str]:
    """Return a command in lines of at most so many columns, that a shell joins again.

    A word that is longer has a line of its own.
    """
    lines: list[str] = []
    for word in _quoted(command):
        indent = "    " if lines else "  "
        if lines and len(lines[-1]) + len(word) + 3 <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(indent + word)
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


def _quoted(command: str) -> list[str]:
    """Return the words of a command, each option with its value."""
    found: list[str] = []
    for word in map(shlex.quote, shlex.split(command)):
        if found and re.fullmatch(r"--?[a-z]+", found[-1]):
            found[-1] += f" {word}"
        else:
            found.append(word)
    return found
