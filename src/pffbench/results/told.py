"""What ranks have to say of a repetition beside their numbers, joined two by two.

Ranks mostly say the same, so what is said of all of them is no more than what is said of one: it
goes to rank 0 through a tree, in which each rank joins what it hears with what it has to say. No
rank hears from more than a few others, however many there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pffbench.workloads.cycle import Observed

#: Mismatches that are kept of each rank, and of all: one is enough to make a run invalid.
_OF_A_RANK = 3
_OF_ALL = 30


@dataclass(frozen=True, slots=True)
class Told:
    """What some neighbouring ranks have to say.

    Parameters
    ----------
    mismatches : tuple of str
        What was read and is not what was written, in words; the first ones, by rank.
    unsaid : int
        How many mismatches there are beside these.
    facts : dict of str to frozenset of str
        What the library said about the transfers: all answers to each question.
    counts : dict of (str, str) to (float, float)
        What was counted in a phase: of all these ranks, and of the one with most.
    remarks : tuple of str
        What the workload has to say, each thing once.
    """

    mismatches: tuple[str, ...] = ()
    unsaid: int = 0
    facts: Mapping[str, frozenset[str]] = field(default_factory=dict)
    counts: Mapping[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @classmethod
    def of(cls, rank: int, observed: Observed) -> Told:
        """Return what one rank has to say."""
        words = tuple(f"rank {rank}: {m}" for m in observed.mismatches[:_OF_A_RANK])
        return cls(
            mismatches=words,
            unsaid=len(observed.mismatches) - len(words),
            facts={key: frozenset({text}) for key, text in observed.facts.items()},
            counts={key: (amount, amount) for key, amount in observed.counts.items()},
            remarks=tuple(dict.fromkeys(observed.remarks)),
        )

    def __add__(self, other: Told) -> Told:
        """Join what these ranks say with what those after them say."""
        mismatches = self.mismatches + other.mismatches
        kept = mismatches[:_OF_ALL]
        facts = dict(self.facts)
        for key, texts in other.facts.items():
            facts[key] = facts.get(key, frozenset()) | texts
        counts = dict(self.counts)
        for place, (total, largest) in other.counts.items():
            here, most = counts.get(place, (0.0, 0.0))
            counts[place] = (here + total, max(most, largest))
        return Told(
            kept,
            self.unsaid + other.unsaid + len(mismatches) - len(kept),
            facts,
            counts,
            tuple(dict.fromkeys(self.remarks + other.remarks)),
        )

    @property
    def all_mismatches(self) -> tuple[str, ...]:
        """The mismatches in words, with how many more there are."""
        more = (f"and {self.unsaid} mismatches more",) if self.unsaid else ()
        return self.mismatches + more

    @property
    def united_facts(self) -> dict[str, str]:
        """What the library said; where ranks were told different things, all of them."""
        return {key: " | ".join(sorted(self.facts[key])) for key in sorted(self.facts)}
