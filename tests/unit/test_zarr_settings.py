"""Settings of zarr-python: refused where they cannot be in force, read back where they are."""

from __future__ import annotations

import json
import mmap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import zarr
from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import define_arrays, open_arrays
from pffbench.backends.registry import backend_class
from pffbench.backends.zarr import settings as zarr_settings
from pffbench.backends.zarr.format import describe, places_in_parts, stored_chunks
from pffbench.backends.zarr.settings import NotInForceError, ZarrOptions
from pffbench.case import Case
from pffbench.errors import UserError
from pffbench.experiment.check import check_case, make_plan
from pffbench.experiment.load import load_experiment
from pffbench.geometry.box import Box
from pffbench.observe.process_counters import PeakMemory, thread_times, threads_that_ran
from pffbench.storage.durability import disk_usage
from pffbench.workloads.hyperslab import HyperslabParameters

HERE = tuple(map(int, zarr.__version__.split(".")[:2]))
VALUES = np.arange(10 * 12, dtype="f4").reshape(10, 12)
SPEC = ArraySpec(
    name="a", shape=(10, 12), dtype="float32", number=0, origin=(0, 0), logical_shape=(10, 12),
    offset=0, owner=0, chunks=(5, 4), codec="none", level=0, fill="none",
)  # fmt: skip


@pytest.fixture(autouse=True)
def as_before():
    """Each case sets all settings of the process; other tests find those of the library."""
    with zarr.config.set({}):
        before = zarr.config.to_dict()
        yield
        zarr_settings.apply_config(ZarrOptions(), "defaults")
        zarr.config.update(before)


def moved(path, settings="matched", spec=SPEC, **options):
    """Write and read an array; return the facts of the store that wrote it."""
    backend = backend_class("zarr")(ZarrOptions(**options), settings)
    store = backend.create(str(path), None)
    arrays = define_arrays(store, [spec])
    arrays["a"].writer(spec.whole, VALUES.copy(), False)()
    facts = store.transfer_facts()
    store.close()
    store = backend.open(str(path), None)
    out = np.empty((10, 12), "f4")
    open_arrays(store, [spec])["a"].reader(spec.whole, out, False)()
    assert np.array_equal(out, VALUES)
    assert store.transfer_facts() == facts
    return facts


def refusal(monkeypatch, version, p=None, **options):
    """Return why a case is refused under a version of zarr-python; None if it is not."""
    monkeypatch.setattr(zarr_settings, "zarr_version", lambda: version)
    p = p or HyperslabParameters(backend="zarr", shape=(12, 12), chunks=(2, 12))
    try:
        check_case(Case(p, ZarrOptions(**options)), 3, "here")
    except UserError as error:
        return str(error)
    return None


#: Settings with their first version, their facts, and what they need beside.
NEWER = [
    ((3, 3), {"pipeline": "fused"}, {"pipeline": "FusedCodecPipeline", "workers": "1"}),
    ((3, 3), {"pipeline": "fused", "workers": 3}, {"workers": "3"}),
]


@pytest.mark.parametrize(("since", "options", "facts"), NEWER)
def test_newer_settings_are_refused_by_older_versions_and_read_back_by_newer(
    tmp_path, monkeypatch, since, options, facts
):
    p = HyperslabParameters(backend="zarr", shape=(30, 12), chunks=(5, 4))
    told = refusal(monkeypatch, "3.1.6", p, **options)
    assert f"needs zarr-python {since[0]}.{since[1]} or newer" in told
    assert "and 3.1.6 is installed" in told
    assert refusal(monkeypatch, "3.4.2", p, **options) is None
    if since <= HERE:
        assert moved(tmp_path / "x.zarr", **options).items() >= facts.items()


ALWAYS = [
    ({}, {"pipeline": "BatchedCodecPipeline", "workers": "1", "chunk_grid": "regular"}),
    ({"workers": 2}, {"workers": "2"}),
    ({"workers": 2, "concurrency": 4}, {"workers": "2"}),
    ({"pipeline": "zarrs"}, {"pipeline": "ZarrsCodecPipeline", "workers": "1"}),
    ({"pipeline": "zarrs", "workers": 2}, {"workers": "2"}),
    ({"format": 2}, {"pipeline": "BatchedCodecPipeline"}),
]


@pytest.mark.parametrize(("options", "facts"), ALWAYS)
def test_settings_of_every_version_are_read_back(tmp_path, options, facts):
    assert moved(tmp_path / "x.zarr", **options).items() >= facts.items()


@pytest.mark.parametrize("codec", ["none", "gzip", "zstd", "blosc"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_the_fused_pipeline_does_all_codecs_itself(tmp_path, codec, zarr_format):
    if HERE < (3, 3):
        with pytest.raises(UserError, match=r"fused needs zarr-python 3\.3 or newer"):
            check_case(
                Case(HyperslabParameters(backend="zarr", shape=(9, 9)),
                     ZarrOptions(pipeline="fused")), 1, "here",
            )  # fmt: skip
        return
    spec = replace(SPEC, codec=codec, level=3)
    facts = moved(tmp_path / "x.zarr", spec=spec, pipeline="fused", format=zarr_format)
    assert facts["pipeline"] == "FusedCodecPipeline"


UNEVEN = {"shape": (11, 12), "distribution": "balanced", "chunks": "rank_part"}


def test_a_rectilinear_grid_has_a_chunk_for_each_part(tmp_path, monkeypatch):
    p = HyperslabParameters(backend="zarr", **UNEVEN)
    assert "would be shared by ranks" in refusal(monkeypatch, "3.4.2", p)
    told = refusal(monkeypatch, "3.3.0", p, chunk_grid="rectilinear")
    assert "chunk_grid: rectilinear needs zarr-python 3.4 or newer" in told
    assert refusal(monkeypatch, "3.4.2", p, chunk_grid="rectilinear") is None
    if HERE < (3, 4):
        return
    spec = replace(SPEC, owner=None, parts=((3, 3, 4), (12,)))
    for pipeline in ("library", "fused", "zarrs"):
        path = tmp_path / pipeline
        facts = moved(path, spec=spec, chunk_grid="rectilinear", pipeline=pipeline)
        assert facts["chunk_grid"] == "rectilinear"
        assert sorted(x.stat().st_size for x in path.rglob("c/*/*")) == [144, 144, 192]
    stored = describe(str(path))
    assert (stored.chunks, stored.more["chunk_grid"]) == ((4, 12), "rectilinear")
    stored = stored_chunks(str(path), "a")
    assert (stored.count, stored.nbytes) == (3, 480)


def test_equal_parts_make_a_rectilinear_grid_too(tmp_path):
    if HERE < (3, 4):
        return  # refused: see above
    spec = replace(SPEC, owner=None, parts=((5, 5), (12,)))
    facts = moved(tmp_path / "x.zarr", spec=spec, chunk_grid="rectilinear")
    assert facts["chunk_grid"] == "rectilinear"
    told = json.loads((tmp_path / "x.zarr/a/zarr.json").read_text())["chunk_grid"]
    assert told["name"] == "rectilinear"


def test_places_in_a_rectilinear_grid():
    parts = ((3, 3, 4), (1, 11))
    assert list(places_in_parts(Box((0, 0), (3, 1)), parts)) == [(0, 0)]
    assert list(places_in_parts(Box((2, 0), (2, 2)), parts)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert list(places_in_parts(Box((6, 1), (4, 11)), parts)) == [(2, 1)]


WRONG = [
    ({"pipeline": "fused", "concurrency": 4}, "takes no notice of it; give zarr.workers"),
    ({"workers": 2, "concurrency": 1}, "more threads than chunks under way"),
    ({"chunk_grid": "rectilinear"}, "so chunks must be rank_part"),
    ({"chunk_grid": "rectilinear", "format": 2}, "needs format: 3 without shards"),
    ({"chunk_grid": "rectilinear", "shards": (4, 12)}, "needs format: 3 without shards"),
]


@pytest.mark.parametrize(("options", "words"), WRONG)
def test_settings_without_effect_are_refused(monkeypatch, options, words):
    assert words in refusal(monkeypatch, "3.4.2", **options)


def test_the_first_zarr_python_3_is_refused_with_what_is_needed(monkeypatch):
    told = refusal(monkeypatch, "3.0.8")
    assert told == "here: zarr-python 3.0.8 is too old: 3.1 or newer is needed"


def test_a_rectilinear_grid_has_no_chunk_owners(monkeypatch):
    """Owners of equal chunks would share those of a balanced cut, and lose each other's data."""
    p = HyperslabParameters(
        backend="zarr", shape=(10, 10), chunks="rank_part", distribution="balanced",
        rearranger="chunk_owner",
    )  # fmt: skip
    assert "use rearranger: gather" in refusal(monkeypatch, "3.4.2", p, chunk_grid="rectilinear")
    gathered = replace(p, rearranger="gather")
    assert refusal(monkeypatch, "3.4.2", gathered, chunk_grid="rectilinear") is None


def test_a_rectilinear_grid_needs_parts_of_one_array(monkeypatch):
    p = HyperslabParameters(backend="zarr", **UNEVEN, files="one", arrays="per_rank")
    assert "needs files: one, arrays: shared" in refusal(
        monkeypatch, "3.4.2", p, chunk_grid="rectilinear"
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pipeline": "rust"}, "zarr.pipeline"),
        ({"workers": 0}, "zarr.workers"),
        ({"chunk_grid": "irregular"}, "zarr.chunk_grid"),
    ],
)
def test_bad_values_are_one_sentence_with_the_key(tmp_path, options, words):
    path = Path(tmp_path, "some.yaml")
    case = {"workload": "hyperslab", "backend": "zarr", "shape": [8, 8], "zarr": options}
    path.write_text(json.dumps({"name": "some", "cases": [case]}))
    with pytest.raises(UserError, match=words) as refused:
        make_plan(load_experiment(str(path)), 1)
    assert "\n" not in str(refused.value)


# A pipeline that leaves the work to another one, planted.


def test_a_zarrs_that_falls_back_is_noticed(tmp_path, monkeypatch):
    pipeline = pytest.importorskip("zarrs.pipeline")
    monkeypatch.setattr(pipeline, "get_codec_pipeline_impl", lambda *_, **__: None)
    with pytest.raises(NotInForceError, match="zarrs would leave arrays like this one to zarr"):
        moved(tmp_path / "x.zarr", pipeline="zarrs")


def test_a_fused_pipeline_that_falls_back_is_noticed(tmp_path, monkeypatch):
    if HERE < (3, 3):
        return
    from zarr.core import codec_pipeline

    def unable(**_):
        raise TypeError

    monkeypatch.setattr(codec_pipeline, "ChunkTransform", unable)
    with pytest.raises(NotInForceError, match="process this array asynchronously"):
        moved(tmp_path / "x.zarr", pipeline="fused")


def test_a_configuration_that_something_else_changed_is_noticed(tmp_path):
    backend = backend_class("zarr")(ZarrOptions(pipeline="zarrs", workers=2), "matched")
    zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"})
    store = backend.create(str(tmp_path / "x.zarr"), None)
    with pytest.raises(NotInForceError, match="BatchedCodecPipeline is in force"):
        define_arrays(store, [SPEC])
    zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})
    zarr.config.set({"threading.max_workers": 7, "codec_pipeline.strict": True})
    store = backend.create(str(tmp_path / "y.zarr"), None)
    with pytest.raises(NotInForceError, match="workers: 2 was asked for, and 7 is in force"):
        define_arrays(store, [SPEC])


def test_a_case_that_asks_for_nothing_gets_what_the_library_has(tmp_path):
    """Settings of an earlier case in the same process are gone."""
    moved(tmp_path / "a.zarr", workers=3)
    moved(tmp_path / "b.zarr", pipeline="zarrs", workers=3)
    facts = moved(tmp_path / "c.zarr", settings="defaults")
    assert facts["pipeline"] == "BatchedCodecPipeline"
    at_once = zarr.config.defaults[0]["async"]["concurrency"]
    assert int(facts["workers"]) == min(at_once, ThreadPoolExecutor()._max_workers)


# The footprint of a transfer.


def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_threads_that_ran_are_counted_and_idle_ones_are_not():
    leave, begin, ran = threading.Event(), threading.Barrier(3), threading.Barrier(3)

    def work():
        begin.wait()
        burn(0.05)
        ran.wait()
        leave.wait()

    threads = [threading.Thread(target=leave.wait) for _ in range(3)]
    threads += [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    before = thread_times()
    begin.wait()
    ran.wait()
    after = thread_times()
    leave.set()
    for thread in threads:
        thread.join()
    assert threads_that_ran(before, after) in (2, 3)  # this one reads and waits
    assert threads_that_ran(before, before) == 0


def test_memory_that_a_part_adds_is_measured_within_the_peak_of_all():
    def new(nbytes):  # not what another test has freed: the allocator keeps that
        found = np.frombuffer(mmap.mmap(-1, nbytes), np.uint8)
        found[:] = 1
        return found

    peak = PeakMemory()
    peak.reset()
    first = new(2**25)
    resident = peak.mark()
    if resident is None:
        return  # this kernel does not let the peak be reset
    second = new(2**26)
    added = peak.since_mark() - resident
    assert 2**26 <= added < 2**26 + 2**24
    del first, second
    assert peak.read() >= resident + added - 2**20  # the kernel counts pages in batches


def test_inodes_are_files_and_directories(tmp_path):
    (tmp_path / "a" / "c" / "0").mkdir(parents=True)
    (tmp_path / "a" / "zarr.json").write_text("{}")
    (tmp_path / "a" / "c" / "0" / "1").write_text("data")
    usage = disk_usage([str(tmp_path)])
    assert (usage.files, usage.directories, usage.inodes) == (2, 3, 5)
