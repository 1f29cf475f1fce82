"""The nodes: cores, memory, settings of the kernel, and who else is at work there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pffbench.diagnosis.finding import Finding
from pffbench.results.facts import Fact, Facts
from pffbench.units import Size

TOPIC = "Node"
#: Part of the cores that may be busy before the node counts as used by others.
_BUSY = 0.5


def judge_node(node: Facts, ranks: int, limit: int | None) -> Iterator[Finding]:
    """Tell what a node is and whether it is fit for measuring.

    Parameters
    ----------
    node : dict
        What `host_facts` found.
    ranks : int
        Ranks of this job on the node.
    limit : int or None
        Bytes of memory that the control group of the ranks allows.
    """
    threads = _number(node.get("threads"))
    yield Finding(TOPIC, "ok", _hardware(node, threads))
    yield _judge_memory(_number(node.get("memory_bytes")), limit)
    yield _judge_settings(node)
    load = node.get("load_average")
    if isinstance(load, list) and load:
        yield _judge_load(float(str(load[0])), threads, ranks)


def by_node(findings: Iterable[tuple[str, Finding]]) -> Iterator[Finding]:
    """Join what is equal on several nodes, and name the nodes where they differ.

    Parameters
    ----------
    findings : iterable of (str, Finding)
        Host and what was found on it.
    """
    hosts: dict[Finding, list[str]] = {}
    everywhere: set[str] = set()
    for host, finding in findings:
        hosts.setdefault(finding, []).append(host)
        everywhere.add(host)
    for finding, where in hosts.items():
        if len(everywhere) == 1:
            yield finding
        else:
            named = f"all {len(where)} nodes" if len(where) == len(everywhere) else _names(where)
            yield Finding(finding.topic, finding.status, f"{named}: {finding.text}", finding.remedy)


def _hardware(node: Facts, threads: int) -> str:
    cores = node.get("cores") or threads
    return f"{node.get('cpu_model') or node.get('machine')}: {cores} cores, {threads} threads"


def _judge_memory(total: int, limit: int | None) -> Finding:
    text = f"{Size(total)} of memory"
    if limit is not None and limit < total:
        text += f", of which the control group allows {Size(limit)}"
    return Finding(TOPIC, "ok", f"{text}; data smaller than this may never leave the page cache")


def _judge_settings(node: Facts) -> Finding:
    governor = node.get("governor")
    text = f"transparent huge pages: {node.get('transparent_huge_pages') or 'not told'}; "
    text += f"clock governor: {governor or 'not told'}"
    if governor in ("powersave", "conservative"):
        remedy = "ask for the governor performance; the first phases may run at a low clock"
        return Finding(TOPIC, "warning", text, remedy)
    return Finding(TOPIC, "ok", text)


def _judge_load(load: float, threads: int, ranks: int) -> Finding:
    text = f"load over the last minute: {load:.1f} on {threads} threads"
    if load > _BUSY * threads + ranks:
        remedy = "wait, or take nodes for yourself (Slurm: --exclusive); times will scatter"
        return Finding(TOPIC, "warning", f"{text}: others are using this machine", remedy)
    return Finding(TOPIC, "ok", text)


def _names(hosts: Sequence[str]) -> str:
    shown = ", ".join(hosts[:4])
    return f"{shown} and {len(hosts) - 4} more" if len(hosts) > 4 else shown


def _number(fact: Fact) -> int:
    return int(fact) if isinstance(fact, int | float) else 0
