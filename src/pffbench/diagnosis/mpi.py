"""The MPI library: what it is, its MPI-IO, and whether ranks have a core each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pffbench.diagnosis.finding import Finding
from pffbench.diagnosis.versions import numbers
from pffbench.results.facts import Fact

TOPIC = "MPI"
#: The first Open MPI whose OMPIO has the correction of data sieving.
_OMPIO_CORRECTED = (4, 1, 7)
_YIELD = "OMPI_MCA_mpi_yield_when_idle"


def judge_library(facts: Mapping[str, Fact]) -> Iterator[Finding]:
    """Tell which MPI this is.

    Parameters
    ----------
    facts : mapping
        ``mpi_library``, ``mpi_standard`` and ``thread_level`` as `software_facts` gives them.
    """
    text = str(facts.get("mpi_library", "")).replace("\n", " ").strip()
    standard, level = facts.get("mpi_standard"), facts.get("thread_level")
    yield Finding(TOPIC, "ok", f"{text}; MPI standard {standard}; thread level {level}")


def judge_mpi_io(facts: Mapping[str, Fact]) -> Iterator[Finding]:
    """Tell which MPI-IO serves the scratch directory, and what is known against it.

    Parameters
    ----------
    facts : mapping
        What `mpi_io_facts` found.
    """
    if "error" in facts:
        text = f"MPI-IO cannot open a file in the scratch directory: {facts['error']}"
        yield Finding(TOPIC, "problem", text, "choose another scratch directory or MPI library")
        return
    component = facts.get("component")
    if component is None:
        text = f"MPI-IO is that of {facts.get('library')}; its component cannot be told"
        yield Finding(TOPIC, "unknown", text)
    else:
        asked = " (asked for by OMPI_MCA_io)" if facts.get("requested") else ""
        yield Finding(TOPIC, "ok", f"MPI-IO component: {component}{asked}; {_hints(facts)}")
    version = numbers(str(facts.get("library_version")))
    if component == "ompio" and version < _OMPIO_CORRECTED:
        yield Finding(
            TOPIC,
            "warning",
            "OMPIO before Open MPI 4.1.7 lacks a correction of data sieving: strided transfers may "
            "get bytes wrong; pffbench verifies every byte and says so when that happens",
            "export OMPI_MCA_io=romio321 to use ROMIO, often faster in collective transfers too",
        )


def judge_cores(
    ranks: int, cpus: int, environ: Mapping[str, str], vendor: str, host: str
) -> Iterator[Finding]:
    """Tell whether the ranks of a node have a core each.

    Parameters
    ----------
    ranks, cpus : int
        Ranks on the node, and cores that they may run on together.
    environ : mapping
        Environment of the ranks.
    vendor : str
        Name of the MPI library.
    host : str
        Name of the node.
    """
    if ranks <= cpus:
        return
    text = f"{ranks} ranks share {cpus} core{'s' * (cpus > 1)} on {host}: times say little"
    remedy = "start no more ranks than cores, or take the times as a test of function only"
    if vendor == "Open MPI":
        value = environ.get(_YIELD)
        text += f"; {_YIELD} is {'not set' if value is None else value}"
        if value != "1":
            remedy += f"; export {_YIELD}=1, so that waiting ranks give up their core"
    yield Finding(TOPIC, "warning", text, remedy)


def _hints(facts: Mapping[str, Fact]) -> str:
    hints = facts.get("hints")
    if not isinstance(hints, dict) or not hints:
        return "it shows no hints"
    return "hints: " + ", ".join(f"{name}={value}" for name, value in hints.items())
