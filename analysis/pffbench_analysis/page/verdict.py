"""What stands first on a page: the verdict in five lines, cautions, and details to unfold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pffbench.results.conclusions import cautions, sentences, undecided, validity
from pffbench.results.summary import Summary
from pffbench.results.tables import details
from pffbench_analysis.style import plain

Kind = Literal["good", "bad", "open"]


@dataclass(frozen=True)
class Verdict:
    """What a reader must know before any number.

    Word, meaning and conclusions are the lines that the terminal prints; they are five at most.

    Parameters
    ----------
    word : str
        In one or two words.
    kind : {"good", "bad", "open"}
        Which of three it is.
    meaning : str
        The rest of the line that begins with the word.
    conclusions : list of str
        What is fastest, how sure that is, and what is not decided.
    cautions : list of str
        What that rests on and a reader must know, each with what to do.
    reasons : list of str
        Why a run is not valid.
    gaps : list of str
        What is not there: this is a report of a part of the run.
    remarks : list of str
        What else should be known.
    """

    word: str
    kind: Kind
    meaning: str
    conclusions: list[str]
    cautions: list[str]
    reasons: list[str]
    gaps: list[str]
    remarks: list[str]


def verdict_of(summary: Summary, gaps: list[str]) -> Verdict:
    """Give the verdict on a run.

    Parameters
    ----------
    summary : Summary
        The run.
    gaps : list of str
        What is missing beside what the summary knows of.
    """
    record = summary.record
    word, _, meaning = validity(summary).partition(": ")
    found = [*summary.gaps, *gaps]
    if nothing := sorted(set(record.cases) - {case.sample.case for case in summary.cases}):
        some = ", ".join(nothing[:3]) + (" and others" if len(nothing) > 3 else "")
        count = f"{len(nothing)} of {len(record.cases)} cases"
        found.append(f"{count} gave no number: {some}")
    # Lines with reasons are shown as such.
    told = [line for line in details(summary) if not line.startswith("INVALID: ")]
    if record.left_out:
        told.append(
            f"{len(record.left_out)} impossible cases were left out; the provenance has why"
        )
    return Verdict(
        word,
        _KINDS.get(word, "open"),
        plain(meaning),
        [plain(text) for text in (*sentences(summary), *undecided(summary))],
        [plain(text) for text in cautions(summary)],
        [plain(reason) for reason in record.reasons],
        [plain(text) for text in found],
        [plain(text.removeprefix("remark: ")) for text in told],
    )


_KINDS: dict[str, Kind] = {"VALID": "good", "INVALID": "bad"}
