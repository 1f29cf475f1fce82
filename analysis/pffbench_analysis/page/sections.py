"""Sections of the page: verdict, recommended programs and machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pffbench.summary.answer import AnswerTable, answer_of
from pffbench.summary.best_number import best_number_lines
from pffbench.summary.cautions import cautions
from pffbench.summary.columns import details
from pffbench.summary.conclusions import sentences, undecided, validity
from pffbench.summary.levers import lever_lines
from pffbench.summary.summary import Summary

from pffbench.errors import UserError
from pffbench.text import abridged, counted, without_digests
from pffbench.units import Size
from pffbench_analysis.captions import job_size, software_versions
from pffbench_analysis.recommend.advice import advice_of
from pffbench_analysis.recommend.text import (
    choice_lines,
    other_works,
    program_of,
    work_label,
    work_title,
)

Kind = Literal["good", "bad", "open"]


@dataclass(frozen=True)
class RunVerdict:
    """The first section of the page: verdict, conclusions and missing data.

    Word, meaning and conclusions are the lines that the terminal prints, five at most.

    Parameters
    ----------
    word : str
        Verdict in one or two words.
    kind : {"good", "bad", "open"}
        Kind of verdict.
    meaning : str
        The rest of the line that begins with the word.
    answer : AnswerTable or None
        The sentence and the table; None where nothing is compared, or the run is not valid.
    conclusions : list of str
        The fastest format, the confidence in it, and open questions.
    cautions : list of str
        Caveats on the conclusions, each with a remedy.
    reasons : list of str
        Reasons why the run is not valid.
    gaps : list of str
        Missing data: the report covers a part of the run.
    remarks : list of str
        Further remarks.
    """

    word: str
    kind: Kind
    meaning: str
    answer: AnswerTable | None
    conclusions: list[str]
    cautions: list[str]
    reasons: list[str]
    gaps: list[str]
    remarks: list[str]


def verdict_of(summary: Summary, gaps: list[str]) -> RunVerdict:
    """Return the verdict on a run.

    Parameters
    ----------
    summary : Summary
        The run.
    gaps : list of str
        Missing data in addition to those that the summary lists.
    """
    record = summary.record
    word, _, meaning = validity(summary).partition(": ")
    found = [*summary.gaps, *gaps]
    if nothing := sorted(set(record.cases) - {case.sample.case for case in summary.cases}):
        some = abridged(nothing, 3, ", ")
        count = f"{len(nothing)} of {len(record.cases)} cases"
        found.append(f"{count} gave no number: {some}")
    # Lines with reasons are shown as such.
    told = [line for line in details(summary) if not line.startswith("INVALID: ")]
    if impossible := len(record.left_out) - record.without_time:
        told.append(
            f"impossible and left out: {counted(impossible, 'case')}; the provenance has why"
        )
    if answer := answer_of(summary):
        word, meaning = answer.word, answer.sentence
    return RunVerdict(
        word,
        _KINDS.get(word, "open"),
        meaning,
        answer,
        [*sentences(summary), *undecided(summary)],
        [*cautions(summary), *lever_lines(summary), *best_number_lines(summary)],
        list(map(without_digests, record.reasons)),
        found,
        [text.removeprefix("remark: ") for text in told],
    )


@dataclass(frozen=True)
class RecommendedProgram:
    """The recommended way for one comparison.

    Parameters
    ----------
    layouts : str
        What sets it apart from others: its layouts, and parameters.
    title : str
        The comparison.
    lines : list of (str, str)
        What to take, what is as good and what to avoid, each with its first word; and what is
        taken in the other comparisons.
    command : str
        Where nothing is taken, the command that would decide it; else empty.
    program : str
        A program that does it; empty where there is none.
    """

    layouts: str
    title: str
    lines: list[tuple[str, str]]
    command: str
    program: str


def choice_of(summary: Summary, directory: Path) -> RecommendedProgram | None:
    """Return what `pffbench recommend` answers; None where it refuses to, or takes nothing."""
    try:
        advice = advice_of(summary, directory)
    except UserError:
        return None
    if not any(one.choice for one in advice.works):
        return None
    one, others = advice.works[0], other_works(advice)
    also = [("Also in this run:", f"{others}.")] if others else []
    return RecommendedProgram(
        work_label(advice, one),
        work_title(advice, one),
        [*choice_lines(one), *also],
        advice.command_for(one)[1],
        program_of(one, summary.record.ranks)[0] or "",
    )


def machine_of(summary: Summary) -> tuple[str, list[tuple[str, str]]]:
    """Return where and with what a run was measured: a title, and facts by name."""
    record = summary.record
    provenance = record.provenance
    hosts = provenance.get("hosts") or [{}]
    names = [str(host["host"]) for host in hosts if host.get("host")]
    place = provenance.get("filesystem", {})
    of_each = " of each node" if record.experiment.get("node_local") else ""
    title = job_size(record) + (f", on {place['type']}{of_each}" if place.get("type") else "")
    host = hosts[0]
    memory = host.get("memory_bytes")
    facts = {
        "node": abridged(names, _MOST_HOSTS, ", "),
        "processor": _joined(
            host.get("cpu_model"), counted(cores, "core") if (cores := host.get("cores")) else ""
        ),
        "memory": str(Size(memory)) if isinstance(memory, int) else "",
        "system": _joined(host.get("os"), host.get("kernel")),
        "file system": _joined(place.get("type"), place.get("mount_point"), place.get("device")),
        "software": "; ".join(software_versions(record)),
        "started": record.started.replace("T", " "),
    }
    return title, [(name, text) for name, text in facts.items() if text]


#: Nodes named in the facts; the provenance has all.
_MOST_HOSTS = 4


def _joined(*parts: object) -> str:
    return ", ".join(str(part) for part in parts if part)


_KINDS: dict[str, Kind] = {"ANSWER": "good", "MEASURED": "good", "VALID": "good", "INVALID": "bad"}
