"""What the chunks of a part of an array take on disk, in HDF5 files and in Zarr directories."""

from __future__ import annotations

from pathlib import Path

from pffbench.backends.chunkcache import StoredChunks
from pffbench.backends.stored import places
from pffbench.backends.zarr_files import files_of
from pffbench.parallel.decomposition import Box


def part_of_hdf5(path: str, name: str, box: Box) -> StoredChunks | None:
    """Look up the chunks that a box of a dataset lies in; None of a dataset without chunks."""
    import h5py

    with h5py.File(path, "r") as file:
        dataset = file[name]
        if dataset.chunks is None:
            return None
        corners = places(box, dataset.chunks)
        sizes = [
            dataset.id.get_chunk_info_by_coord(
                tuple(i * c for i, c in zip(corner, dataset.chunks, strict=True))
            ).size
            for corner in corners
        ]
        return StoredChunks(len(sizes), sum(sizes))


def part_of_zarr(path: str, name: str, box: Box) -> StoredChunks:
    """Look up the files that a box of an array lies in; chunks that are not there count too."""
    files = files_of(path, name)
    sizes = [
        file.stat().st_size if file.exists() else 0
        for file in (Path(path, name, files.key(place)) for place in places(box, files.grid))
    ]
    return StoredChunks(len(sizes) * files.chunks_in_a_file, sum(sizes))
