"""What can be asked for of codecs, and what is said when it cannot be had."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pffbench.backends import hdf5_files
from pffbench.backends.array_spec import Capabilities
from pffbench.backends.inspection import codec_words
from pffbench.backends.registry import backend_class
from pffbench.backends.zarr.format import codecs_of, configured_name
from pffbench.backends.zarr.tensorstore import creation
from pffbench.case import Case
from pffbench.errors import ImpossibleCaseError
from pffbench.experiment import check
from pffbench.experiment.check import check_case
from pffbench.workloads.hyperslab import Hyperslab, HyperslabParameters


def parameters(backend, **more):
    told = {"shape": (70, 33, 50), "chunks": (16, 20, 32), "dtype": "uint16", "source": "integers"}
    if backend in ("hdf5", "netcdf4"):
        told["transfer"] = "collective"
    return HyperslabParameters(backend=backend, **{**told, **more})


def refusal_of(p, ranks=2, **options):
    kind = backend_class(p.backend)
    with pytest.raises(ImpossibleCaseError) as error:
        check_case(Case(p, kind.options_type(**options)), ranks, "here")
    return str(error.value)


@pytest.mark.parametrize(
    ("p", "words"),
    [(parameters("zarr", codec="szip"), "cannot do codec szip (it can: blosc, gzip, none, zstd)"),
     (parameters("hdf5", codec="gzip", level=10), "codec gzip has the levels 0 to 9, not 10"),
     (parameters("hdf5", codec="zstd", level=0), "codec zstd has the levels 1 to 22, not 0"),
     (parameters("hdf5", codec="szip", level=3), "codec szip has no level"),
     (parameters("zarr", codec="zstd", compressor="lz4"), "it needs codec: blosc"),
     (parameters("hdf5", codec="gzip", shuffle="bit"), "shuffle bit with codec gzip (it can: "),
     (parameters("tensorstore", codec="gzip", shuffle="byte"), "(it can: none)"),
     (parameters("netcdf4", codec="lzf"), "cannot do codec lzf"),
     (parameters("hdf5", codec="lzf", source="uniform"),
      "codec lzf cannot make data of source: uniform smaller, leaves such chunks as they are"),
     (parameters("netcdf4", codec="blosc", source="uniform"),
      "cannot make data of source: uniform smaller, leaves such chunks as they are"),
     (parameters("netcdf4", codec="blosc", source="uniform", files="per_rank",
                 transfer="independent"), "and netCDF then fails to write them; use codec gzip"),
     (parameters("netcdf4", codec="blosc", chunks=(4, 5, 3), files="per_rank",
                 transfer="independent"), "does not compress chunks of under 128 bytes (120 here)"),
     (parameters("hdf5", codec="blosc", chunks=(4, 5, 3)), "128 bytes (120 here), which HDF5"),
     (parameters("hdf5", codec="blosc", chunks=(4, 5, 3), files="per_rank",
                 transfer="independent"), "stores uncompressed under the codec's name"),
     (parameters("netcdf4", codec="blosc", dtype="uint8", source="integers",
                 files="per_rank", transfer="independent"),
      "blosc with lz4 cannot make integers of one byte smaller, and netCDF then fails"),
     (parameters("hdf5", codec="szip", chunks=(1, 1, 7)), "blocks of 8 elements; a chunk has 7"),
     (parameters("mpiio", codec="gzip"), "cannot do codec gzip (it can: none)")],
)  # fmt: skip
def test_what_cannot_be_had_is_refused_in_a_sentence(p, words):
    assert words in refusal_of(p)


def large_chunk(backend, codec, length, **more):
    """Return parameters of chunks of so many bytes."""
    told = {"dtype": "uint8", "shape": (length,), "chunks": (length,), "source": "constant"}
    return parameters(backend, codec=codec, **told, **more)


@pytest.mark.parametrize(
    ("backend", "codec", "most"),
    [("zarr", "blosc", 2**31 - 17), ("tensorstore", "blosc", 2**31 - 17),
     ("hdf5", "blosc", 2**31 - 17), ("netcdf4", "blosc", 2**31 - 17), ("hdf5", "lz4", 2**31 - 1),
     ("netcdf4", "lz4", 2**31 - 1), ("hdf5", "gzip", 2**32 - 1), ("netcdf4", "zstd", 2**32 - 1)],
)  # fmt: skip
def test_a_chunk_that_is_too_large_for_its_codec_is_refused(backend, codec, most):
    kind = backend_class(backend)
    check_case(Case(large_chunk(backend, codec, most), kind.options_type()), 1, "here")
    said = refusal_of(large_chunk(backend, codec, most + 1), 1)
    assert "must be smaller than" in said
    assert f"a legal chunk shape is [{(most + 2) // 2}]" in said


def test_codecs_without_a_limit_are_not_refused():
    for codec in ("gzip", "zstd", "none"):
        p = large_chunk("zarr", codec, 2**33)
        check_case(Case(p, backend_class("zarr").options_type()), 1, "here")


def test_szip_without_an_encoder_is_refused(monkeypatch):
    p = parameters("hdf5", codec="szip", source="smooth")
    for name, value in (("filter_avail", False), ("get_filter_info", 2)):  # none; it decodes only
        with monkeypatch.context() as changed:
            changed.setattr(f"h5py.h5z.{name}", lambda _number, value=value: value)
            assert "is built without szip" in refusal_of(p)


def test_the_fused_pipeline_has_no_shuffle_before_a_codec(monkeypatch):
    monkeypatch.setattr("pffbench.backends.zarr.settings.zarr_version", lambda: "3.4.0")
    p = parameters("zarr", codec="gzip", shuffle="byte")
    assert "fused has no shuffle before a codec" in refusal_of(p, pipeline="fused")


@pytest.mark.parametrize(
    ("backend", "codec"), [("hdf5", "blosc"), ("netcdf4", "zstd"), ("hdf5", "lz4")]
)
def test_a_missing_package_is_named(backend, codec, monkeypatch):
    monkeypatch.setattr(check, "find_spec", lambda _name: None)
    assert f"codec {codec} in backend {backend} needs the Python package hdf5plugin" in refusal_of(
        parameters(backend, codec=codec)
    )


def test_tensorstore_is_not_needed_to_plan(monkeypatch):
    monkeypatch.setattr("pffbench.backends.registry.find_spec", lambda _name: None)
    assert "needs the Python package tensorstore" in refusal_of(parameters("tensorstore"))


def test_zarrs_is_refused_where_it_is_not_and_for_empty_chunks(monkeypatch):
    p = parameters("zarr")
    assert "does not write empty chunks" in refusal_of(p, pipeline="zarrs", write_empty_chunks=True)
    monkeypatch.setattr("pffbench.backends.zarr.settings.find_spec", lambda _name: None)
    assert "needs the Python package zarrs" in refusal_of(p, pipeline="zarrs")


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 7, 40])
@pytest.mark.parametrize("decomposition", ["slab", "pencil", "block"])
def test_ranks_share_out_whole_chunks(ranks, decomposition):
    p = parameters("zarr", decomposition=decomposition, cut_unit=(16, 20, 32))
    workload = Hyperslab()
    assert workload.refuse(p, ranks, backend_class("zarr")) is None
    covered = 0
    for rank in range(ranks):
        (access,) = workload.arrays(p, ranks).writes(rank)
        covered += access.box.size
        for start, stop, chunk, n in zip(
            access.box.start, access.box.stop, p.chunks, p.shape, strict=True
        ):
            if access.box.size:
                assert start % chunk == 0
                assert stop % chunk == 0 or stop == n
    assert covered == 70 * 33 * 50
    check_case(Case(p, backend_class("zarr").options_type()), ranks, "here")


def test_a_unit_of_cuts_is_that_of_shards():
    p = parameters("zarr", chunks=(8, 10, 16), cut_unit=(16, 20, 32))
    options = backend_class("zarr").options_type(shards=(16, 20, 32))
    check_case(Case(p, options), 3, "here")
    assert "would be shared by ranks" in refusal_of(
        replace(p, cut_unit=(8, 10, 16)), 3, shards=(16, 20, 32)
    )
    wrong = replace(p, cut_unit=(16, 20))
    assert (
        Hyperslab().refuse(wrong, 3, backend_class("zarr"))
        == "cut_unit [16, 20] must have 3 axes, as the array has"
    )


def test_names_of_codecs_are_the_same_in_all_formats():
    blosc = [(hdf5_files.BLOSC, (2, 2, 2, 999, 3, 2, 5))]
    assert hdf5_files.codec_name(blosc) == "blosc-zstd 3 bit"
    told = {"cname": "zstd", "clevel": 3}
    assert configured_name("blosc", told | {"shuffle": 2}) == "blosc-zstd 3 bit"
    assert configured_name("blosc", told | {"shuffle": "bitshuffle"}) == "blosc-zstd 3 bit"
    assert configured_name("blosc", told | {"shuffle": "noshuffle"}) == "blosc-zstd 3"
    stored = [(hdf5_files.SHUFFLE, (2,)), (hdf5_files.DEFLATE, (4,))]
    assert hdf5_files.codec_name(stored) == "gzip 4 byte"
    assert configured_name("gzip", {"level": 4}) == "gzip 4"
    level = [(hdf5_files.ZSTD, (2**32 - 5,))]
    assert hdf5_files.codec_name(level) == "zstd -5"
    for values in ((0, 0, 0, 0), (0, 0, 0, 0, 5), (0, 0, 0, 0, 5, 1)):  # of older programs
        assert hdf5_files.codec_name([(hdf5_files.BLOSC, values)]) == "blosc-blosclz 5 byte"
    assert hdf5_files.codec_name([(hdf5_files.BLOSC, (0, 0, 0, 0, 9, 0))]) == "blosc-blosclz 9"
    assert hdf5_files.codec_name([(hdf5_files.BLOSC, (0, 0, 0, 0, 9, 7, 99))]) == "filter 32001"
    assert hdf5_files.codec_name([]) == "none"
    assert hdf5_files.codec_name([(307, ())]) == "filter 307"


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        ("none", "none"),
        ("gzip 4", "gzip level 4"),
        ("gzip 4 byte", "gzip level 4, byte shuffle"),
        ("blosc-zstd 3 bit", "blosc-zstd level 3, bit shuffle"),
        ("filter 32013", "filter 32013"),
    ],
)
def test_a_codec_is_told_in_words(stored, words):
    assert codec_words(stored) == words


def test_tensorstore_is_told_all_that_is_asked_for():
    p = parameters("tensorstore", codec="blosc", compressor="zstd", level=7, shuffle="bit")
    (spec,) = Hyperslab().arrays(p, 2).specs(0)
    assert creation(2, None, spec) == {
        "shape": [70, 33, 50], "dtype": "<u2", "fill_value": 0, "chunks": [16, 20, 32],
        "compressor": {"id": "blosc", "cname": "zstd", "clevel": 7, "shuffle": 2},
    }  # fmt: skip
    told = creation(3, (32, 40, 64), spec)
    assert told["chunk_grid"]["configuration"]["chunk_shape"] == [32, 40, 64]
    found, inner = codecs_of(told)
    assert inner == (16, 20, 32)
    assert found == [
        ("blosc", {"cname": "zstd", "clevel": 7, "shuffle": "bitshuffle", "typesize": 2})
    ]


def test_a_backend_of_another_package_need_not_know_of_shuffles():
    can = Capabilities(codecs=frozenset({"none", "gzip"}))
    p = parameters("hdf5", codec="gzip", shuffle="byte")
    assert "shuffle byte" in str(check.beyond_codecs(p, can))
    assert check.beyond_codecs(replace(p, shuffle=None), can) is None
