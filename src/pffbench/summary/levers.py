"""Whether hints, striping and alignment pay off, and the lines of a job script that set them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from pffbench.record.run_json import RunRecord
from pffbench.summary.conclusions import comparison_names, interval, number, subject
from pffbench.summary.headline import Answer, Entry
from pffbench.summary.labels import LEVERS, ignored_of
from pffbench.summary.summary import Summary
from pffbench.text import value_text

#: Parameters of Open MPI that do what a hint does, where OMPIO serves the files.
_OMPIO = {
    "cb_nodes": "OMPI_MCA_io_ompio_num_aggregators",
    "cb_buffer_size": "OMPI_MCA_io_ompio_bytes_per_agg",
}

#: What each lever is in `run.json`.
_KINDS = {"hints": dict, "striping": dict, "alignment": int, "alignment_threshold": int}


def lever_lines(summary: Summary) -> Iterator[str]:
    """Yield, for each comparison that pulls levers, whether they pay off, and what to write.

    The statements are those of the headline: the fastest case beside the one without any lever.
    """
    names = comparison_names(summary)
    for answer in summary.answers:
        cases = [answer.case, *(other.case for other in answer.others)]
        if answer.name != answer.case or answer.too_short:
            continue  # formats or environments are compared, or nothing is
        entries = {name: summary.record.cases[name] for name in cases}
        bases = [name for name, entry in entries.items() if not levers_of(entry)]
        if len(bases) != 1:
            continue
        where = " ".join(filter(None, [subject(summary, answer.total), names[answer.key]]))
        yield f"Hints, {where}: {_judgement(answer, bases[0], entries, summary)}"
        if _pays(answer, bases[0]) and not ignored_of(entries[answer.case]):
            yield from (f"  {line}" for line in job_lines(entries[answer.case], summary.record))


def levers_of(entry: Entry) -> dict[str, Any]:
    """Return the levers that a case pulls, by its entry in `run.json`, which may be anybody's."""
    told = {key: value for key in LEVERS if (value := entry["options"].get(key))}
    return {key: v for key, v in told.items() if isinstance(v, _KINDS[key])}


def job_lines(entry: Entry, record: RunRecord) -> Iterator[str]:
    """Yield the lines of a job script that give any program the levers of a case.

    Parameters
    ----------
    entry : dict
        The case's entry in `run.json`.
    record : RunRecord
        The run, which names the MPI library.
    """
    options = levers_of(entry)
    hints = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.get("hints", {}).items()
    }
    facts = entry.get("transfer_facts") or {}
    if hints:
        yield from _hint_lines(hints, str(facts.get("mpi_io_component", "")), record)
    if striping := options.get("striping"):
        words = [("--stripe-count", striping.get("count")), ("--stripe-size", striping.get("size"))]
        told = " ".join(f"{w} {shlex.quote(str(n))}" for w, n in words if n is not None)
        yield f"lfs setstripe {told} DIRECTORY  # of the new files"
    if interval_ := options.get("alignment"):
        threshold = options.get("alignment_threshold") or interval_
        call = "nc_set_alignment(" if _is_netcdf(entry) else "H5Pset_alignment(file_access, "
        yield f"# in the program: {call}{threshold}, {interval_})"


def _hint_lines(hints: Mapping[str, str], component: str, record: RunRecord) -> Iterator[str]:
    library = str((record.provenance.get("mpi_io") or {}).get("library", ""))
    if component == "ompio":
        for name, value in hints.items():
            if name in _OMPIO:
                yield f"export {_OMPIO[name]}={shlex.quote(value)}"
            else:
                yield f"# in the program: MPI_Info_set(info, {_c_text(name)}, {_c_text(value)})"
    elif library.startswith("Cray"):
        told = ":".join(f"{name}={value}" for name, value in hints.items())
        yield f"export MPICH_MPIIO_HINTS={shlex.quote(f'*:{told}')}"
    else:
        told = " ".join(shlex.quote(f"{name} {value}") for name, value in hints.items())
        yield f"printf '%s\\n' {told} >romio-hints"
        yield 'export ROMIO_HINTS="$PWD/romio-hints"'


def _judgement(answer: Answer, base: str, entries: Mapping[str, Entry], summary: Summary) -> str:
    fastest = _told(entries[answer.case])
    if answer.case == base:
        shown = all(other.standing == "slower" for other in answer.others)
        return f"no lever pays off: {'all are slower' if shown else 'none is shown to be faster'}"
    beside = next(other for other in answer.others if other.case == base)
    if beside.standing == "undecided":
        return f"not decided whether {fastest} is faster than none"
    if beside.standing == "equal":
        return f"no lever pays off: {fastest} and none are equally fast within {summary.margin:.0%}"
    if ignored := ignored_of(entries[answer.case]):
        return f"nothing is concluded: {fastest} is fastest, but not in force: {ignored}"
    ratio = beside.ratio
    return (
        f"{fastest} pays off: without it takes {number(ratio.value)} times as long "
        f"{interval(ratio)}; in a job script:"
    )


def _pays(answer: Answer, base: str) -> bool:
    return any(other.case == base and other.standing == "slower" for other in answer.others)


def _told(entry: Entry) -> str:
    return " ".join(f"{key}={value_text(value)}" for key, value in levers_of(entry).items())


def _is_netcdf(entry: Entry) -> bool:
    return str(entry["parameters"]["backend"]) == "netcdf4"


def _c_text(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
