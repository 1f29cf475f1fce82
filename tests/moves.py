"""What ranks move, checked point by point."""

from __future__ import annotations


def points(box):
    """Return the places of all elements of a box."""
    found = [()]
    for start, stop in zip(box.start, box.stop, strict=True):
        found = [(*p, i) for p in found for i in range(start, stop)]
    return found


def each_element_moves_once(workload, parameters, ranks, whole):
    """Assert that all ranks together write, and read, each element of a box once."""
    wanted = set(points(whole))
    arrays = workload.arrays(parameters, ranks)
    for moves in (arrays.writes, arrays.reads):
        moved = [
            tuple(i + o for i, o in zip(point, access.spec.origin, strict=True))
            for rank in range(ranks)
            for access in moves(rank)
            for point in points(access.box)
        ]
        assert len(moved) == len(wanted)
        assert set(moved) == wanted
        _calls_agree(parameters, moves, ranks)


def _calls_agree(parameters, moves, ranks):
    """On an array that ranks call for together, all have as many calls, in the same order."""
    order = [[access.spec.name for access in moves(rank)] for rank in range(ranks)]
    if parameters.files_word == "one-shared" or parameters.transfer == "collective":
        assert all(names == order[0] for names in order)
    for rank in range(ranks):
        if parameters.files_word == "one-per_rank" and parameters.transfer == "independent":
            assert set(order[rank]) <= {f"granules_rank_{rank:06d}"}
