"""What of an HDF5 file a box of a dataset lies in."""

from __future__ import annotations

import math
from typing import Any

from pffbench.backends.raw import Copy
from pffbench.backends.stored import Touched, touched_chunks
from pffbench.parallel.decomposition import Box


def touched(dataset: Any, box: Box) -> Touched | None:
    """Look up how a dataset is stored and tell what of it a box lies in.

    Parameters
    ----------
    dataset : h5py.h5d.DatasetID
        An open dataset.
    box : Box
        Part of it.

    Returns
    -------
    Touched or None
        Chunks, or pages of a contiguous dataset; None where neither is known, as of a compact
        dataset or one that has no place in the file yet.
    """
    from h5py import h5d

    itemsize = int(dataset.dtype.itemsize)
    creation = dataset.get_create_plist()
    if creation.get_layout() == h5d.CHUNKED:
        chunks = creation.get_chunk()
        plain = creation.get_nfilters() == 0
        return touched_chunks(box, chunks, math.prod(chunks) * itemsize if plain else None)
    begin = dataset.get_offset()
    if begin is None:
        return None
    return Copy(dataset.shape, itemsize, "C", begin).runs(box).touched()
