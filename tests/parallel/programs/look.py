"""Tell as JSON how arrays are stored, by another library than the one that wrote them.

HDF5 files are read with netCDF4, netCDF files with h5py, and of Zarr stores the metadata as text.
"""

import json
import sys
from pathlib import Path


def hdf5(path):
    import hdf5plugin  # noqa: F401 -- netCDF reads its filters too
    import netCDF4

    from pffbench.backends.hdf5_files import codec_name
    from pffbench.backends.libnetcdf import filters_of

    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        for name, variable in file.variables.items():
            chunking = variable.chunking()
            yield name, {
                "shape": list(variable.shape), "dtype": str(variable.dtype),
                "chunks": None if chunking == "contiguous" else list(chunking),
                "codec": codec_name(filters_of(variable)),
                "values": sorted({int(v) for v in variable[...].ravel()}),
            }  # fmt: skip


def netcdf4(path):
    import h5py

    with h5py.File(path) as file:
        for name, dset in file.items():
            if name.startswith("axis"):
                continue
            yield name, {
                "shape": list(dset.shape), "dtype": str(dset.dtype),
                "chunks": None if dset.chunks is None else list(dset.chunks),
                "codec": f"gzip {dset.compression_opts}" if dset.compression else "none",
                "values": sorted({int(v) for v in dset[...].ravel()}),
            }  # fmt: skip


def zarr(path):
    for place in sorted(path.iterdir()):
        if (place / "zarr.json").is_file():
            told = json.loads((place / "zarr.json").read_text())
            grid = told["chunk_grid"]["configuration"]["chunk_shape"]
            codecs = told["codecs"]
            shards = None
            if codecs[0]["name"] == "sharding_indexed":
                inner = codecs[0]["configuration"]
                shards, grid, codecs = grid, inner["chunk_shape"], inner["codecs"]
            names = [c["name"] for c in codecs if c["name"] != "bytes"]
            shape, dtype = told["shape"], told["data_type"]
        elif (place / ".zarray").is_file():
            told = json.loads((place / ".zarray").read_text())
            shards, grid, shape, dtype = None, told["chunks"], told["shape"], told["dtype"]
            used = [*(told["filters"] or ()), told["compressor"]]
            names = [codec["id"] for codec in used if codec]
        else:
            continue
        import zarr as library

        values = sorted({int(v) for v in library.open_array(place, mode="r")[...].ravel()})
        yield place.name, {"shape": shape, "dtype": dtype, "chunks": grid, "shards": shards,
                           "codec": " ".join(names) or "none", "values": values}  # fmt: skip


READERS = {".h5": hdf5, ".nc": netcdf4, ".zarr": zarr}
found = {}
for place in map(Path, sys.argv[1:]):
    found[str(place)] = {
        file.name: dict(READERS[file.suffix](file))
        for file in sorted(place.iterdir())
        if file.suffix in READERS
    }
print(json.dumps(found))
