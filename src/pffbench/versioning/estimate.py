"""How many bytes a way of keeping versions is going to take, about, before anything is made."""

from __future__ import annotations

import math

from pffbench.versioning.kinds import KINDS, KindName, Probabilities
from pffbench.versioning.registry import Keep

_ITEM = 8
#: Bytes that a version takes beside its chunks, at most about: references, groups, attributes.
_REFERENCES = 32 * 1024


def expected_bytes(
    kind: KindName, versions: int, probabilities: Probabilities, keep: Keep, chunk: int
) -> int:
    """Estimate, without compression and rather too high, what one rank's store takes.

    Parameters
    ----------
    kind, versions, probabilities
        As of `pffbench.versioning.history.History`.
    keep : str
        The way of keeping them.
    chunk : int
        Elements of a chunk along each axis.
    """
    known, chances = KINDS[kind], KINDS[kind].chances(probabilities)
    # Where the draw is not positive none are appended, so that the mean is a little higher.
    growth = known.appended + known.appended_sd if known.grows(probabilities) else 0
    final = (known.start[0] + versions * growth, *known.start[1:])
    shapes = [final] * 3 if not known.dense else [final[:1], final[1:], final]
    chunks = [_ITEM * math.prod((chunk,) * len(shape)) for shape in shapes]
    grids = [math.prod(-(-n // chunk) for n in shape) for shape in shapes]
    whole = sum(grid * nbytes for grid, nbytes in zip(grids, chunks, strict=True))
    if keep == "last":
        return whole
    if keep == "copies":
        return versions * (whole + _REFERENCES)
    tails = 2 * sum(chunks)
    changed = chances.change * min(grids[-1], known.changes) * chunks[-1]
    moved = (chances.insert + chances.delete) * whole
    return whole + math.ceil(versions * (tails + changed + moved + _REFERENCES))
