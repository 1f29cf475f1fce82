"""What stands first on a page: the verdict, what was concluded, and what is missing."""

from __future__ import annotations

from dataclasses import dataclass

from pffbench.results.conclusions import cautions, sentences, undecided
from pffbench.results.summary import Summary
from pffbench.results.tables import details
from pffbench_analysis.captions import stamp
from pffbench_analysis.style import plain


@dataclass(frozen=True)
class Verdict:
    """What a reader must know before any number.

    Parameters
    ----------
    word : str
        In one or two words.
    kind : {"good", "bad", "open"}
        Which of three it is.
    meaning : str
        What the word means, in a sentence.
    reasons : list of str
        Why a run is not valid.
    conclusions : list of str
        What is fastest, how sure that is, and what is not decided.
    cautions : list of str
        What that rests on and a reader must know.
    gaps : list of str
        What is not there: this is a report of a part of the run.
    remarks : list of str
        What else should be known.
    """

    word: str
    kind: str
    meaning: str
    reasons: list[str]
    conclusions: list[str]
    cautions: list[str]
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
    word, kind, meaning = _word(summary)
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
        kind,
        meaning,
        [plain(reason) for reason in record.reasons],
        [plain(text) for text in (*sentences(summary), *undecided(summary))],
        [plain(text) for text in cautions(summary)],
        [plain(text) for text in found],
        [plain(text.removeprefix("remark: ")) for text in told],
    )


def _word(summary: Summary) -> tuple[str, str, str]:
    record = summary.record
    if stamp(summary):
        return "INVALID", "bad", "These numbers must not be used: something was wrong in this run."
    if record.status == "written":
        return "WRITTEN", "open", "The data are written; nothing has been read and verified yet."
    if record.status == "interrupted":
        return (
            "INTERRUPTED",
            "open",
            "What was measured is valid so far, but repetitions are missing.",
        )
    if record.imported and record.valid is None:
        return (
            "IMPORTED",
            "open",
            f"Measured by another program, {plain(record.imported)}: pffbench has verified nothing "
            "of that.",
        )
    if record.status == "running" or record.valid is None:
        return (
            "NOT FINISHED",
            "open",
            "The run is still going on or was killed: repetitions are missing, and no verdict was "
            "given.",
        )
    return (
        "VALID",
        "good",
        "Every byte read was what had been written, and every cache state that can be enforced "
        "was proved.",
    )
