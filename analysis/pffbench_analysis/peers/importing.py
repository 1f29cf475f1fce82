"""`pffbench import`: a results directory from the output of another program."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pffbench import __version__
from pffbench.errors import UserError
from pffbench.grouping import grouped
from pffbench.phases import ORDER
from pffbench.record.run_json import RunRecord
from pffbench.record.samples import Sample, SamplesLog, claim
from pffbench.summary.export import write_fom, write_summary
from pffbench.summary.summary import summarise
from pffbench.text import plain_name
from pffbench_analysis.peers.h5bench import read_h5bench
from pffbench_analysis.peers.ior import read_ior
from pffbench_analysis.peers.measurement import Imported, Test

#: Supported programs: name on the command line → reader of a file.
PROGRAMS: Mapping[str, Callable[[Path], Imported]] = {"ior": read_ior, "h5bench": read_h5bench}


def import_results(program: str, files: Sequence[str | Path], out: str | Path) -> Path:
    """Create a results directory from files of another program.

    Tests with equal parameters become repetitions of one case. Quantities that the program did
    not measure are missing.

    Parameters
    ----------
    program : {"ior", "h5bench"}
        Program that wrote the files.
    files : sequence of str or Path
        Its output.
    out : str or Path
        The new directory.

    Raises
    ------
    UserError
        A file is not output of the program, files are of jobs of different size, or the
        directory already holds a run. Nothing is created then.
    """
    if len({os.path.realpath(file) for file in files}) < len(files):
        raise UserError("import: a file is named twice, which would count its repetitions twice")
    found = [PROGRAMS[program](Path(file)) for file in files]
    everything = [test for one in found for test in one.tests]
    sizes = sorted({(test.ranks, test.nodes) for test in everything})
    if len(sizes) > 1:
        told = ", ".join(f"{ranks} ranks on {nodes} nodes" for ranks, nodes in sizes)
        raise UserError(f"import: the files are of jobs of different size ({told}); import each")
    tests = _merged(everything)
    if not all(test.repetitions for test in tests):
        raise UserError(f"import: a test in {', '.join(map(str, files))} holds no result")
    directory = Path(out)
    name = plain_name(directory.absolute().name) or "imported"
    record = _record(found, tests, [Path(file).name for file in files], name)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        claim(str(directory))
        record.save(directory)
        SamplesLog(str(directory / "samples.csv")).append(_samples(tests))
        summary = summarise(directory)
        write_summary(summary, directory)
        write_fom(summary, directory)
    except FileExistsError:
        raise UserError(f"--out {out}: there is a run already; name a new directory") from None
    except OSError as error:
        raise UserError(f"--out {out}: cannot be made: {error.strerror}") from None
    return directory


def _merged(tests: Sequence[Test]) -> list[Test]:
    """Merge tests with equal parameters: files that wrote and that read, or repetitions."""
    return [
        replace(same[0], repetitions=_joined(same)) if len(same) > 1 else same[0]
        for same in grouped((test.name, test) for test in tests).values()
    ]


def _joined(tests: Sequence[Test]) -> tuple[Any, ...]:
    """Join a repetition that only read to one that only wrote; otherwise append it."""
    found: list[Any] = []
    for repetition in (r for test in tests for r in test.repetitions):
        place = next(
            (i for i, r in enumerate(found) if not r.seconds.keys() & repetition.seconds.keys()),
            None,
        )
        if place is None:
            found.append(repetition)
            continue
        one = found[place]
        found[place] = replace(
            one,
            seconds={**one.seconds, **repetition.seconds},
            operations={**one.operations, **repetition.operations},
        )
    return tuple(found)


def _record(
    found: Sequence[Imported], tests: Sequence[Test], files: Sequence[str], name: str
) -> RunRecord:
    programs = " and ".join(sorted({one.program for one in found}))
    started = min((test.started for test in tests if test.started), default="date unknown")
    first = tests[0]
    nodes = [rank * first.nodes // first.ranks for rank in range(first.ranks)]
    remarks = [
        f"imported from {programs} ({', '.join(files)}) by pffbench {__version__}",
        "nobody but the program itself has checked the data, and no cache state was proved",
        "tests were run one after the other: repetitions with one number are no block, so ratios "
        "do not allow for load that came and went",
        *dict.fromkeys(remark for one in found for remark in one.remarks),
    ]
    return RunRecord(
        run_id=f"{name}-imported",
        name=name,
        question="",
        command=shlex.split(found[0].command.replace("'", " ")),
        ranks=first.ranks,
        started=started,
        experiment={},
        experiment_file="",
        cases={test.name: _entry(test) for test in tests},
        left_out=[],
        scratch="",
        topology={"nodes": nodes if first.nodes else []},
        floor={"tick": max(one.tick for one in found)},
        startup={},
        provenance={"commands": [one.command for one in found if one.command]},
        status="finished",
        valid=None,
        remarks=remarks,
        imported=programs,
    )


def _entry(test: Test) -> dict[str, Any]:
    return {
        "parameters": dict(test.parameters),
        "options": {},
        "group": test.group,
        "roofline": False,
        "raw": test.raw,
        "verified": True,  # it keeps data: written data can be read back
        "notes": list(test.notes),
    }


def _samples(tests: Sequence[Test]) -> list[Sample]:
    return [
        _sample(test, position, number, phase, seconds)
        for position, test in enumerate(tests)
        for number, repetition in enumerate(test.repetitions)
        for phase, seconds in sorted(
            repetition.seconds.items(), key=lambda item: ORDER.index(item[0])
        )
    ]


def _sample(test: Test, position: int, number: int, phase: str, seconds: float) -> Sample:
    """Return a row: NaN, -1, 0 or nothing for values that the program does not report."""
    p = test.parameters
    moves = phase in ("write", "read")
    return Sample(
        case=test.name,
        repetition=number,
        warmup=False,
        position=position,
        phase=phase,
        backend=p["backend"],
        workload=p["workload"],
        layout=p["layout"],
        transfer=p["transfer"],
        settings=p["settings"],
        group=test.group,
        ranks=test.ranks,
        nodes=test.nodes,
        arrays=test.arrays,
        operations=test.repetitions[number].operations.get(phase, 0),
        bytes=test.nbytes if moves else 0,
        own_max=seconds,
        seconds=seconds,
        own_median=float("nan"),
        own_min=float("nan"),
        synced_max=float("nan"),
        slowest_rank=-1,
        slowest_host="",
        below_resolution=False,
        cache="unproved" if phase == "read" else "",
        resident=None,
        verified_bytes=None,
        peak_memory=0,
        disk_bytes=None,
        disk_files=None,
        valid=True,
        started=test.started,
    )
