"""Reasons that several workloads have to refuse a case."""

from __future__ import annotations

from collections.abc import Sequence

from pffbench.backends.base import Backend
from pffbench.case import FileCount
from pffbench.workloads.arrays import Family
from pffbench.workloads.base import Impossible
from pffbench.workloads.specs import illegal_chunks


def unfit_chunks(family: Family, axes: Sequence[int] = ()) -> str | None:
    """Return why the chunk shape of a case cannot be that of the arrays that are stored, or None.

    Parameters
    ----------
    family : Family
        The arrays.
    axes : sequence of int
        Numbers of axes that a chunk may have; those of the array if not given.
    """
    p, shape, what = family.parameters, family.cut.whole, "the array"
    if family.shared and isinstance(p.files, FileCount):
        shape, what = family.boxes[0].shape, "the array of a group of ranks"
    elif not family.shared and family.dealt_to is None:
        shape, what = family.first_part, "the array of a rank"
    steps = (family.steps,) if family.steps else ()
    return illegal_chunks(
        p, (*steps, *shape), what, axes or range(len(shape), len(shape) + len(steps) + 1)
    )


def without_attributes(number: int, backend: type[Backend]) -> str | None:
    """Return that a format stores no attributes, or None; raw bytes bound the formats without."""
    has = backend.capabilities
    if not number or has.raw or has.attributes:
        return None
    return Impossible(f"{backend.name} stores no attributes; leave attributes out")
