"""What the table of claims says of each study's own numbers, computed again from these numbers."""

from itertools import combinations
from math import ceil, prod

from pffbench.backends.inspection import touched_chunks
from pffbench.geometry.box import Box
from pffbench_studies.published.values import claims_of, published_values


def the_number(study, quantity, **parameters):
    """Return the first number with these parameters."""
    return next(
        v
        for v in published_values(study)
        if v.quantity == quantity and parameters.items() <= v.parameters.items()
    )


def test_file_format_testing():
    study, names = "file-format-testing", ("HDF5", "netCDF4", "Zarr")
    cases = [("2048", "128"), ("2048", "128x128"), ("2048", "128x128x128"), ("2048", "256"),
             ("4096", "256"), ("8192", "256")]  # fmt: skip

    def number(name, operation, case):
        return the_number(study, "time per dataset", edition="original", format=name,
                          operation=operation, datasets=case[0], shape=case[1])  # fmt: skip

    def holds(operation, *order):
        kept = close = 0
        for case in cases:
            values = [number(name, operation, case) for name in order]
            numbers = [value.value for value in values]
            kept += numbers == sorted(numbers)
            close += not all(a.differs_from(b) for a, b in combinations(values, 2))
        text = f"{operation}: {' < '.join(order)} is claimed and holds in {kept} of {len(cases)}"
        return text + f"; in {close} two of them lie within their error bars" * bool(close)

    def growth(more, less):
        slow, fast = ([number(n, "write", case).value for n in names] for case in (more, less))
        ratios = [a / b for a, b in zip(slow, fast, strict=True)]
        return ", ".join(f"{n} {ratio:.3g}" for n, ratio in zip(names, ratios, strict=True))

    assert claims_of(study) == [
        holds("create", "netCDF4", "HDF5", "Zarr"),
        holds("open", "netCDF4", "Zarr", "HDF5"),
        holds("write", "HDF5", "Zarr", "netCDF4"),
        holds("read", "HDF5", "Zarr", "netCDF4"),
        "three dimensions are said to take about twice as long as two; writing takes this many "
        f"times as long, for 128 times the data: {growth(cases[2], cases[1])}",
        "the number of datasets is said not to matter; with four times as many, writing one takes "
        f"this many times as long: {growth(cases[5], cases[3])}",
    ]


def test_hdf5_compression_tuning():
    study, granule, granules = "hdf5-compression-tuning", (4, 30, 9, 717), 15

    def seconds(codec, mebibytes, access="row"):
        return the_number(study, "time of all reads", codec=codec, chunk="4x30x9x717",
                          cache_bytes=str(mebibytes * 2**20), access=access).value  # fmt: skip

    def decodes(mebibytes):
        """Count those of all rows: a granule that fits is decoded once, else with each row."""
        fits = prod(granule) * 4 <= mebibytes * 2**20
        return granules * (1 if fits else prod(granule[:-1]))

    slow, fast = seconds("gzip", 1), seconds("gzip", 3)
    assert claims_of(study) == [
        "compressed rows are said to take more than 3000 times as long as uncompressed ones: "
        f"{slow / seconds('none', 1):.0f} times; a cache of 3 MiB makes them "
        f"{slow / fast:.0f} times faster",
        f"by HDF5's rules rows decode {decodes(1):,} chunks through a cache of 1 MiB and "
        f"{decodes(3)} through one of 3 MiB: {1e3 * slow / decodes(1):.3g} and "
        f"{1e3 * fast / decodes(3):.3g} ms for each, so the times follow from the decodes",
        "the six minutes are told of 1080 reads, which are those of one chunk; at "
        f"{1e3 * slow / decodes(1):.3g} ms a decode they are {1080 * slow / decodes(1):.0f} s",
        f"decoding each chunk once costs {seconds('gzip', 1, 'chunk'):.3g} s less "
        f"{seconds('none', 1, 'chunk'):.3g} s of the whole dataset",
    ]


def test_chunking_vs_memmap():
    study, shape, guess = "chunking-vs-memmap", (621, 4991, 2600), (20, 156, 82)

    def seconds(name, slice_, quantity="elapsed time of the process"):
        return the_number(study, quantity, format=name, slice=slice_).value

    def chunks_across(axis):
        box = Box((0, 0, 0), tuple(1 if a == axis else n for a, n in enumerate(shape)))
        found = touched_chunks(box, guess, prod(guess))
        return found.count, found.nbytes / box.size

    worst, best = seconds("memmap", "x"), seconds("memmap", "z")
    of_x, of_z = seconds("HDF5", "x"), seconds("HDF5", "z")
    cpu = sum(seconds("memmap", "x", f"{kind} CPU time") for kind in ("user", "system"))
    pages = ceil((3072 + prod(shape)) / 4096)  # a stride below a page leaves none out
    across_x, across_z = chunks_across(0), chunks_across(2)
    assert claims_of(study) == [
        f"HDF5 is said to read both axes alike: the slice across z takes {of_z / of_x:.3g} times "
        "as long as the one across x",
        f"of the map, the worst axis takes {worst / best:,.0f} times as long as the best one, "
        f"and {worst / of_x:.0f} times as long as HDF5; the best one 1/{of_z / best:.0f} of HDF5",
        f"a stride of 621 bytes touches all {pages:,} pages of the file: "
        f"{1e3 * worst / pages:.2g} ms for each, a seek of a disk, while the CPU is busy for "
        f"{cpu:.3g} s of {worst:,.0f} s. Reading the file from end to end would take "
        f"{ceil(prod(shape) / 1e8)} s at 100 MB/s; a destination in C order has the copy step "
        f"through it by {shape[0] * shape[1] / 1e6:.2g} MB instead",
        f"with the chunks that h5py guesses for this shape, {'×'.join(map(str, guess))}, a "
        f"slice across x lies in {across_x[0]} chunks and one across z in {across_z[0]}, which "
        f"is {across_x[1]:.0f} and {across_z[1]:.0f} times what is wanted: that both axes take "
        "as long follows from this shape, not from chunks as such",
    ]


def test_zarr_benchmarks():
    study, time, ratio = "zarr-benchmarks", "time of the whole array", "compression ratio"
    v2, v3, tensorstore = "zarr-python 2.18.7", "zarr-python 3.1.1", "tensorstore 0.1.76"

    def number(quantity, library, dataset, codec, level, shuffle):
        return the_number(study, quantity, library=library, operation="write", dataset=dataset,
                          codec=codec, level=level, shuffle=shuffle,
                          chunk="128x128x128").value  # fmt: skip

    def heart(level, quantity, library=v3):
        return number(quantity, library, "heart", "blosc-zstd", level, "shuffle")

    def beside(operation, dataset):
        """Return the times of zarr-python 3 and TensorStore, the first of each subject."""
        found = {}
        for v in published_values(study):
            p = v.parameters
            if (v.quantity, p["operation"], p["dataset"]) == (time, operation, dataset):
                level = "" if p["codec"] == "none" else p["level"]
                subject = (p["codec"], level, p["shuffle"], p["chunk"])
                found.setdefault(subject, {}).setdefault(p["library"], v)
        both = [by for subject, by in found.items() if subject[3] and {v3, tensorstore} <= set(by)]
        return [(by[v3], by[tensorstore]) for by in both]

    hc = ("dense", "blosc-lz4hc", "1", "shuffle")
    pairs = [(word, name, beside(operation, name))
             for operation, word in (("write", "writes"), ("read", "reads"))
             for name in ("dense", "heart", "sparse")]  # fmt: skip
    assert claims_of(study) == [
        *(
            f"TensorStore is said to be the fastest library: of {len(own)} configurations of "
            f"{name} in the table it {word} more slowly than zarr-python 3 in "
            f"{sum(ts.value > v3.value for v3, ts in own)}, in "
            f"{sum(ts.value > v3.value and ts.differs_from(v3) for v3, ts in own)} of them beyond "
            "the standard deviations"
            for word, name, own in pairs
        ),
        "TensorStore syncs every file that it writes and the others none, which is in its time "
        "of writing",
        f"levels above 3 are said not to pay: on the heart Blosc-Zstd 9 is "
        f"{heart('9', ratio, v2) / heart('3', ratio, v2):.3g} times smaller than level 3 and "
        f"takes zarr-python 3 {heart('9', time) / heart('3', time):.3g} times as long",
        f"the same codec has other ratios in other libraries: dense labels with Blosc-LZ4HC 1 "
        f"{number(ratio, v2, *hc):g} in zarr-python and {number(ratio, tensorstore, *hc):g} in "
        "TensorStore",
        "the ratio counts what pads the chunks at the edges: without compression it is "
        f"{number(ratio, v2, 'heart', 'none', '', ''):g}",
    ]


def test_versioned_hdf5():
    study, constant = "versioned-hdf5", "large_fraction_constant_sparse"

    def ratios(chunk, codec):
        found = {}
        for v in published_values(study):
            p = v.parameters
            if (v.quantity, v.statistic) == ("time of a version", "median over versions") and (
                p["test"],
                p["chunk"],
                p["codec"],
            ) == (constant, chunk, codec):
                found.setdefault(p["versions"], {})[p["file"]] = v.value
        quotients = [by["versioned"] / by["unversioned"] for by in found.values()]
        return f"{min(quotients):.0f} to {max(quotients):.0f}"

    large, small = (
        the_number(study, "size of the file", test=f"{part}_fraction_changes_sparse",
                   file="versioned", versions="5000", chunk="4096", codec="none").value
        for part in ("large", "small")
    )  # fmt: skip
    assert claims_of(study) == [
        "a version of the constant table with chunks of 4096 is said to take 6 to 8 times as "
        f"long as in plain HDF5; by the study's own raw timings it takes {ratios('4096', 'none')} "
        f"times as long, and with gzip and chunks of 16384 {ratios('16384', 'gzip')}",
        "1000 and 10 changed values a version are said to be a large and a small fraction; "
        f"the files after 5000 versions have {large:.0f} and {small:.0f} MiB, since the "
        "program was run with all changes switched off",
        "572 MB are said to be what copies of the constant table would take, for 5000 rows; "
        "by its program about 3.7 rows are appended in each version, so that it ends with "
        "about 23 500, and copies would take about 1.7 GB",
        "times of reading are said to be those of reading; no value was read: they are the "
        "time in which the object of a column is found",
    ]
