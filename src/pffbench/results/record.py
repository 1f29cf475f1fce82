"""`run.json`: what was run, where and how, replaced as a whole whenever it changes."""

from __future__ import annotations

import hashlib
import json
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from pffbench.errors import UserError
from pffbench.results.layout import check_layout

#: Version of the layout of a results directory; a reader refuses what it does not know.
SCHEMA_VERSION = 2
#: Versions that can be read.
_READABLE = (1, 2)
_NOT_THERE = (KeyError, TypeError, AttributeError, IndexError, ZeroDivisionError, OverflowError)


def digest_of(experiment: dict[str, Any]) -> str:
    """Return the digest of an experiment as plain data."""
    text = json.dumps(experiment, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def readable(*directories: str | Path) -> Iterator[None]:
    """Say of results directories that they hold too little, or something else than they should.

    Raises
    ------
    UserError
        Instead of what looking for something that is not there raises. The place in the code is
        told too: it may be at fault and not the directory.
    """
    try:
        yield
    except _NOT_THERE as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(frame.filename).name} line {frame.lineno}"
        names = ", ".join(map(str, directories))
        raise UserError(
            f"{names}: holds what pffbench did not write, or less than it does "
            f"({type(error).__name__}: {error}; {place})"
        ) from error


@dataclass
class RunRecord:
    """All that `run.json` holds.

    Parameters
    ----------
    run_id : str
        Identifies the run; the marker of its scratch directory carries it too.
    name, question : str
        From the experiment.
    status : {"running", "written", "finished", "interrupted"}
        How the run stands; ``written`` when its data wait for another job to read them.
    valid : bool or None
        The verdict, None while running.
    reasons : list of str
        Why the run is not valid.
    experiment : dict
        The experiment with all defaults filled in.
    cases : dict
        For each case: parameters, options, cost, how it was stored and transferred, failure.
    floor, startup, topology, provenance : dict
        Measured and collected at the start.
    stage : {"all", "write", "read"}
        Which part the last job did, or is doing.
    wrote_on : list of str
        Of a run in two stages: the hosts of all jobs that wrote.
    reading : dict, optional
        Of a run in two stages: ``started``, ``floor``, ``startup``, ``topology`` and
        ``provenance`` of the job that read last.
    imported : str, optional
        The program, with its version, that measured, where it was not pffbench.
    experiment_digest : str, optional
        SHA-256 of the experiment, by which a change of it is noticed when the run goes on.
    clock : {"own", "synced"}
        Which time of a phase is the job's.
    stops : list of str
        Why cases stopped before all repetitions; ``stopped_after`` of a case says after how many.
    """

    run_id: str
    name: str
    question: str
    command: list[str]
    ranks: int
    started: str
    experiment: dict[str, Any]
    experiment_file: str
    cases: dict[str, dict[str, Any]]
    left_out: list[dict[str, str]]
    scratch: str
    topology: dict[str, Any]
    floor: dict[str, float]
    startup: dict[str, Any]
    provenance: dict[str, Any]
    schema_version: int = SCHEMA_VERSION
    status: str = "running"
    valid: bool | None = None
    reasons: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    finished: str | None = None
    resumed: list[str] = field(default_factory=list)
    stage: str = "all"
    wrote_on: list[str] = field(default_factory=list)
    reading: dict[str, Any] | None = None
    imported: str | None = None
    experiment_digest: str | None = None
    clock: str = "own"
    stops: list[str] = field(default_factory=list)

    @property
    def last_written(self) -> dict[str, str]:
        """Of a run in two stages, for each case the phase with which its data are written."""
        if self.stage == "all":
            return {}
        return {name: _last_written(entry["parameters"]) for name, entry in self.cases.items()}

    def save(self, directory: str | Path) -> None:
        """Replace `run.json` in a way that leaves either the old or the new one whole."""
        path = Path(directory) / "run.json"
        new = path.with_suffix(".json.new")
        text = json.dumps(vars(self), indent=1, allow_nan=False, default=str)
        try:
            with new.open("w", encoding="utf-8") as file:
                file.write(text + "\n")
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
        except OSError:
            new.unlink(missing_ok=True)
            raise

    @classmethod
    def load(cls, directory: str | Path) -> RunRecord:
        """Read the record of a run.

        Raises
        ------
        ValueError
            There is none, or this version of pffbench does not know its layout.
        """
        path = Path(directory) / "run.json"
        try:
            data = msgspec.json.decode(path.read_bytes())
        except FileNotFoundError:
            why = "it holds no run.json" if path.parent.is_dir() else "there is no such directory"
            raise ValueError(f"{directory} is no results directory: {why}") from None
        except OSError as error:
            raise ValueError(
                f"{directory} is no results directory: {error.strerror}: {path}"
            ) from None
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise ValueError(f"{path} is not valid JSON: {error}") from None
        version = data.get("schema_version") if isinstance(data, dict) else None
        if not isinstance(version, int):
            raise ValueError(f"{path} names no schema_version: it is not the record of a run")
        if version not in _READABLE:
            age = "an older" if version < SCHEMA_VERSION else "a newer"
            raise ValueError(
                f"{path} has layout version {version}, of {age} pffbench; this one reads versions "
                f"{_READABLE[0]} to {SCHEMA_VERSION}: use the pffbench that made it "
                "(provenance.software.pffbench)"
            )
        if version == 1:
            _from_version_1(data)
        try:
            check_layout(data)
            return cls(**data)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a record of a run: {error}") from None


def _from_version_1(data: dict[str, Any]) -> None:
    """Bring a record of the first layout, whose runs stopped all cases at once, to this one."""
    stopped = data.pop("stopped_after", None)
    cases = data.get("cases")
    for entry in cases.values() if stopped is not None and isinstance(cases, dict) else ():
        if isinstance(entry, dict):
            entry.setdefault("stopped_after", stopped)
    floor = data.get("floor")
    if isinstance(floor, dict) and "barrier" in floor:
        floor["own"] = floor["synced"] = floor.pop("barrier")


def _last_written(parameters: dict[str, Any]) -> str:
    phase = "sync" if parameters["durability"] == "sync" else "close"
    return phase + "_update" if parameters.get("workload") == "updates" else phase
