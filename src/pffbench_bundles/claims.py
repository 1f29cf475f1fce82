"""The claims of a run, sentence by sentence, and the verdict of another run of its experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Literal

import msgspec

from pffbench.record.run import MeasuredRun
from pffbench.record.run_json import RunRecord
from pffbench.summary.answer import answer_of, obstacle
from pffbench.summary.conclusions import (
    VERBS,
    comparison_names,
    contender_labels,
    interval,
    number,
    speed_lines,
)
from pffbench.summary.headline import Answer, ComparisonKey, Contender, Pair, Standing
from pffbench.summary.rank_test import Ratio
from pffbench.summary.summary import Summary, standings_of, summary_of
from pffbench.summary.sweep import SettingResult
from pffbench.text import abridged, counted

Word = Literal["confirmed", "refuted", "cannot be decided here"]
#: Claims of a sentence that are named where they are refuted, and reasons why others are open.
_NAMED = 4


class Claim(msgspec.Struct, frozen=True):
    """A decided comparison of two contenders.

    Parameters
    ----------
    total : str
        ``write_total``, ``update_total`` or ``read_total``.
    key : ComparisonKey
        The comparison.
    first, other : str
        The contenders: formats, environments or cases.
    standing : {"slower", "equal"}
        Whether `other` is slower, or both are equally fast.
    ratio : Ratio
        Time of `other` over that of `first`.
    """

    total: str
    key: ComparisonKey
    first: str
    other: str
    standing: Standing
    ratio: Ratio


#: How a contender, or a setting, stands to another one: by total, comparison, that one and itself.
Known = Mapping[Pair, Contender | SettingResult]


class JudgedSentence(msgspec.Struct, frozen=True):
    """What a run says of a sentence of another one.

    Parameters
    ----------
    sentence : str
        The sentence.
    word : {"confirmed", "refuted", "cannot be decided here"}
        The verdict.
    why : tuple of str
        What refutes it, or why it cannot be decided.
    """

    sentence: str
    word: Word
    why: tuple[str, ...] = ()


def statements(summary: Summary) -> list[tuple[str, list[Claim]]]:
    """Return the sentences of a run that claim something, with the claims that each is made of.

    The first one is the answer, which stands for all claims.
    """
    found = [(line, claims_of(answers)) for line, answers in speed_lines(summary)]
    answer = answer_of(summary)
    if answer is not None and answer.word == "ANSWER":
        every = claims_of(summary.all_answers)
        # Where a single format is compared, its settings are the contenders of the headline.
        known = {(claim.total, claim.first, claim.other) for claim in every}
        every += [c for c in _of_settings(summary) if (c.total, c.first, c.other) not in known]
        found.insert(0, (answer.sentence, every))
    return [(sentence, claims) for sentence, claims in found if claims]


def claims_of(answers: Sequence[Answer]) -> list[Claim]:
    """Return the decided comparisons of some answers with the fastest contender."""
    return [
        Claim(answer.total, answer.key, answer.name, other.name, other.standing, other.ratio)
        for answer in answers
        for other in answer.others
        if other.standing != "undecided" and not answer.too_short
    ]


def _of_settings(summary: Summary) -> Iterator[Claim]:
    """Yield what a sweep claims of the settings of each format."""
    for (total, key, first, other), found in _settings(summary).items():
        if found.standing in ("slower", "equal"):
            yield Claim(total, key, first, other, found.standing, found.ratio)


def _settings(summary: Summary) -> dict[Pair, SettingResult]:
    """Return how the settings of each format stand to its fastest ones."""
    return {
        (sweep.total, ComparisonKey(one.group, "", False, one.name), first, other.case): other
        for sweep in summary.sweeps
        for one in sweep.formats
        for first in [one.fastest.case]
        for other in one.results
        if other.case != first
    }


def judged(there: MeasuredRun, here: MeasuredRun) -> list[JudgedSentence]:
    """Return what a run says of each sentence of another one; a pure function of both.

    Parameters
    ----------
    there : MeasuredRun
        The run whose sentences are judged.
    here : MeasuredRun
        A run of the same experiment.
    """
    claimed, found = summary_of(there), summary_of(here)
    obstacles = tuple(_obstacles(there, here, found))
    if obstacles:
        word: Word = "cannot be decided here"
        return [JudgedSentence(sentence, word, obstacles) for sentence, _ in statements(claimed)]
    known: Known = {**standings_of(here), **_settings(found)}
    short = {(answer.total, answer.key) for answer in found.all_answers if answer.too_short}
    names = comparison_names(claimed, claimed.cold_answers) | comparison_names(claimed)
    words = (names, contender_labels(claimed))
    judge = partial(_judge, known=known, short=short, words=words)
    return [_verdict(text, [judge(claim) for claim in some]) for text, some in statements(claimed)]


def _obstacles(there: MeasuredRun, here: MeasuredRun, found: Summary) -> Iterator[str]:
    """Yield why nothing can be decided by a run."""
    if here.record.valid is not True or here.record.status != "finished":
        yield f"the run here is not VALID ({here.record.objection or here.record.status})"
    for what, of in (
        ("ranks", lambda run: run.ranks),
        ("nodes", lambda run: run.nodes),
        ("the file system", lambda run: _file_system(run.record)),
    ):
        if of(there) != of(here):
            yield f"{what}: {of(there)} there, {of(here)} here"
    if why := obstacle(found):
        yield why.reason


def _file_system(record: RunRecord) -> str:
    return str(record.provenance.get("filesystem", {}).get("type") or "unknown")


def _judge(
    claim: Claim,
    known: Known,
    short: set[tuple[str, ComparisonKey]],
    words: tuple[Mapping[ComparisonKey, str], Mapping[str, str]],
) -> tuple[Word, str]:
    """Return what a run says of a claim, and why."""
    names = [words[1].get(name, name) for name in (claim.other, claim.first)]
    parts = (VERBS[claim.total].lower(), words[0].get(claim.key), " against ".join(names))
    where = ", ".join(filter(None, parts))
    open_: Word = "cannot be decided here"
    if (claim.total, claim.key) in short:
        return open_, f"{where}: the times are too short to measure"
    found = known.get((claim.total, claim.key, claim.first, claim.other))
    back = known.get((claim.total, claim.key, claim.other, claim.first))
    if (some := found or back) is None:
        return open_, f"{where}: they were not compared"
    standing = "faster" if back and back.standing == "slower" else some.standing
    if found is None and standing == "slower":
        standing = "undecided"
    if standing == claim.standing:
        return "confirmed", where
    if standing == "undecided":
        needed = max(one.needed for one in (found, back) if one)
        why = f"{some.ratio.n} repetitions leave it open, about {needed} would decide it"
        return open_, f"{where}: too few repetitions: {why}"
    ratio = some.ratio if found else some.ratio.inverse
    there, here = (f"{number(of.value)} {interval(of)}" for of in (claim.ratio, ratio))
    return "refuted", f"{where}: {there} times as long there, {here} here"


def _verdict(sentence: str, found: Sequence[tuple[Word, str]]) -> JudgedSentence:
    """Combine the verdicts on the claims of a sentence."""
    count = Counter(word for word, _ in found)
    for word in ("refuted", "cannot be decided here"):
        if count[word]:
            some = [why for of, why in found if of == word]
            head = f"{count[word]} of {counted(len(found), 'comparison')}"
            return JudgedSentence(sentence, word, (head, *abridged(some, _NAMED, "\n").split("\n")))
    return JudgedSentence(sentence, "confirmed", (counted(len(found), "comparison"),))
