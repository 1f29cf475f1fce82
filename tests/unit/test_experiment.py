"""Experiments: sweeps, names of cases, overrides, checks and costs."""

import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from launch import REPOSITORY, environment
from pffbench.backends.registry import backend_class, backend_names
from pffbench.case import Case
from pffbench.errors import ImpossibleCaseError, UserError
from pffbench.experiment.load import from_data, load_experiment, parse, to_plain
from pffbench.experiment.plan import arrays_of, cost_of
from pffbench.experiment.sweep import expand
from pffbench.run.scratch_directory import AvailableSpace, check_room
from pffbench.workloads.registry import workload, workload_names
from plans import load_cases, plan_cases
from sharing import keys_of

ENTRY = {"workload": "hyperslab", "backend": "hdf5", "shape": [8, 8]}
MIB = 2**20


def expanded(**changes):
    return list(expand({**ENTRY, **changes}, "x.yaml: cases[0]", set()))


# Sweeps


def test_lists_are_swept_in_full():
    found = expanded(backend=["hdf5", "netcdf4"], durability=["close", "sync"], datasets=[1, 2, 3])
    points = {(c.parameters.backend, c.parameters.durability, c.parameters.datasets) for c in found}
    assert len(found) == len(points) == 12


def test_zip_advances_lists_together():
    found = expanded(shape=[[8, 8], [4, 4]], chunks=[[2, 8], [1, 4]], zip=["shape", "chunks"],
                     datasets=[1, 2])  # fmt: skip
    parameters = [case.parameters for case in found]
    assert [(p.shape, p.chunks) for p in parameters if p.datasets == 1] \
        == [((8, 8), (2, 8)), ((4, 4), (1, 4))]  # fmt: skip
    assert len(found) == 4


def test_a_zipped_key_with_one_value_keeps_it_in_all_steps():
    found = expanded(
        datasets=[1, 2], dtype="int8", shape=[8, 8], zip=["datasets", "dtype", "shape"]
    )
    assert [(c.parameters.datasets, c.parameters.dtype) for c in found] == [
        (1, "int8"),
        (2, "int8"),
    ]
    assert len(expanded(datasets=1, dtype="int8", zip=["datasets", "dtype"])) == 1


def of_codecs(codecs, **more):
    """Return codec, level, compressor and shuffle of each case of a sweep over codecs."""
    found = [case.parameters for case in expanded(codec=codecs, **more)]
    return [(p.codec, p.level, p.compressor, p.shuffle) for p in found]


def test_no_compression_needs_no_level():
    assert of_codecs(["none", "gzip"], level=[4, 9], shuffle="byte") == [
        ("none", None, None, None), ("gzip", 4, None, "byte"), ("gzip", 9, None, "byte"),
    ]  # fmt: skip
    assert of_codecs("none", level=4, compressor="zstd") == [("none", None, None, None)]


def test_keys_of_one_codec_are_not_for_the_others_of_a_list():
    assert of_codecs(["szip", "blosc", "gzip", "lz4"], level=4, compressor="zstd", shuffle="byte") \
        == [("szip", None, None, None), ("blosc", 4, "zstd", "byte"), ("gzip", 4, None, "byte"),
            ("lz4", None, None, "byte")]  # fmt: skip


def test_a_key_that_no_codec_of_a_case_has_is_kept_and_refused_later():
    assert of_codecs("szip", level=4, shuffle="byte") == [("szip", 4, None, "byte")]
    assert of_codecs(["gzip", "lz4"], compressor="zstd") == [
        ("gzip", None, "zstd", None), ("lz4", None, "zstd", None)
    ]  # fmt: skip


def test_two_zips_in_one_entry():
    found = expanded(
        shape=[[8, 8], [4, 4]], datasets=[1, 2], dtype=["int8", "int16"], steps=[1, 2],
        zip=[["shape", "datasets"], ["dtype", "steps"]],
    )  # fmt: skip
    assert {(c.parameters.datasets, c.parameters.dtype, c.parameters.steps) for c in found} == {
        (1, "int8", 1), (1, "int16", 2), (2, "int8", 1), (2, "int16", 2),
    }  # fmt: skip


def test_a_list_of_numbers_is_one_shape_and_a_list_of_lists_several():
    assert [c.parameters.shape for c in expanded(shape=[8, 8])] == [(8, 8)]
    assert [c.parameters.shape for c in expanded(shape=[[8, 8], [2, 2]])] == [(8, 8), (2, 2)]


def test_options_of_other_backends_make_no_further_cases():
    found = expanded(backend=["hdf5", "zarr"], zarr={"format": [2, 3]})
    assert [c.parameters.backend for c in found] == ["hdf5", "zarr", "zarr"]


words = {"durability": ["close", "flush", "sync"], "dtype": ["int8", "float32", "float64"],
         "transfer": ["independent", "collective"], "datasets": [1, 2, 3, 4]}  # fmt: skip


@given(st.fixed_dictionaries({k: st.lists(st.sampled_from(v), min_size=1, max_size=5)
                              for k, v in words.items()}))  # fmt: skip
def test_a_sweep_is_the_product_of_its_lists_without_doubles(lists):
    found = expanded(**lists)
    count = 1
    for values in lists.values():
        count *= len(set(values))
    assert len(found) == count
    assert len({case.id for case in found}) == count


def test_names_are_unique_and_stay_the_same_from_process_to_process():
    text = yaml.safe_dump({"name": "x", "cases": [ENTRY | {"backend": ["hdf5", "zarr"]}]})
    code = """if True:
        import sys, yaml
        from pffbench.experiment.load import from_data
        print([case.id for _, case in from_data(yaml.safe_load(sys.argv[1]), "x").cases])
    """
    told = {
        subprocess.run([sys.executable, "-c", code, text], capture_output=True, text=True,
                       check=True, timeout=300, env=environment(PYTHONHASHSEED=seed)).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(told) == 1
    here = from_data(yaml.safe_load(text), "x").cases
    assert told.pop() == f"{[case.id for _, case in here]}\n"


@pytest.mark.parametrize(
    "options", [{"hdf5": {"alignment": "1 MiB"}}, {"hdf5": {"chunk_cache": 1048576}},
                {"backend": "netcdf4", "netcdf4": {"chunk_cache": "2 MiB"}}],
)  # fmt: skip
def test_options_that_are_sizes_have_names_too(options):
    (case,) = expanded(**options)
    assert case.id != expanded(backend=case.parameters.backend)[0].id


def test_options_that_differ_name_different_cases():
    ids = {c.id for c in expanded(backend="zarr", zarr={"concurrency": [1, 2, 4]})}
    assert len(ids) == 3


# The roofline


def test_each_comparison_gets_its_raw_bytes_once():
    found = load_cases(
        ENTRY | {"backend": ["hdf5", "netcdf4"], "transfer": ["independent", "collective"]},
        ENTRY | {"backend": "zarr", "files": "per_rank"}, roofline=True,
    ).cases  # fmt: skip
    raw = [case for _, case in found if case.roofline]
    assert [(c.parameters.backend, c.parameters.transfer) for c in raw] == [
        ("mpiio", "independent"), ("mpiio", "collective"), ("posix", "independent"),
    ]  # fmt: skip
    groups = {case.group for _, case in found if not case.roofline}
    assert {case.group for case in raw} == groups


def test_raw_reads_from_the_device_have_a_header_and_calls_as_large_as_the_chunks():
    """The kernel reads ahead less for one long call, and without a small read before it."""
    for layout in ("per_rank", "one-shared"):
        entry = ENTRY | {
            **keys_of(layout), "shape_per_rank": [24, 512], "chunks": [[4, 512], [8, 512]],
            "dtype": "float32", "cache": ["dropped", "warm"],
        }  # fmt: skip
        entry.pop("shape", None)
        raw = [case for _, case in load_cases(entry, roofline=True).cases if case.roofline]
        found = {(c.parameters.cache, c.options.call, c.options.header) for c in raw}
        assert found == {
            ("dropped", 8192, 4096), ("dropped", 16384, 4096), ("warm", None, 0),
        }  # fmt: skip


def test_an_experiment_may_bring_its_own_roofline():
    found = load_cases(ENTRY | {"backend": ["hdf5", "mpiio"]}, roofline=True).cases
    assert [case.parameters.backend for _, case in found] == ["hdf5", "mpiio"]


def test_cases_of_other_work_are_not_compared():
    first, second, third = (
        case
        for _, case in load_cases(
            ENTRY, ENTRY | {"shape": [9, 9]}, ENTRY | {"backend": "zarr"}
        ).cases
    )
    assert first.group == third.group != second.group


# Reading and overriding


def test_an_entrys_keys_come_before_the_common_ones():
    loaded = load_cases({"backend": "zarr", "zarr": {"format": 2}, "durability": "sync"},
                  common=ENTRY | {"durability": "close", "zarr": {"concurrency": 7}})  # fmt: skip
    ((_, case),) = loaded.cases
    assert case.parameters.durability == "sync"
    assert (case.options.format, case.options.concurrency) == (2, 7)


def test_overrides_reach_the_experiment_and_every_case(tmp_path):
    path = tmp_path / "x.yaml"
    content = {"name": "x", "roofline": False, "cases": [ENTRY, ENTRY | {"backend": "zarr"}]}
    path.write_text(yaml.safe_dump(content))
    loaded = load_experiment(
        str(path), ["repetitions=7", "shape=[4, 4]", "zarr.format=2", "memory=1 MiB"]
    )
    assert loaded.experiment.repetitions == 7
    assert loaded.experiment.memory == MIB
    assert [case.parameters.shape for _, case in loaded.cases] == [(4, 4)] * 2
    assert loaded.cases[1][1].options.format == 2


def test_an_experiment_survives_being_kept_as_plain_data():
    loaded = load_cases(ENTRY | {"backend": ["hdf5", "zarr"]}, memory="3 MiB", time_budget="2 min")
    again = from_data(to_plain(loaded.experiment), "run.json")
    assert again.experiment == loaded.experiment
    assert [c.id for _, c in again.cases] == [c.id for _, c in loaded.cases]


@pytest.mark.parametrize("name", ["", "a b", "../x", ".x", "x" * 65, 3])
def test_names_that_are_no_file_names_are_refused(name):
    with pytest.raises(UserError, match="name"):
        load_cases(ENTRY, name=name)


def test_a_million_cases_are_refused_before_they_are_made():
    with pytest.raises(UserError, match="too many"):
        load_cases(ENTRY | {key: list(range(1, 200)) for key in ("arrays", "steps", "level")})


# Checks


def test_impossible_cases_are_refused_or_left_out_with_the_reason():
    entry = ENTRY | {"backend": ["hdf5", "zarr"], "transfer": "collective"}
    with pytest.raises(ImpossibleCaseError, match="zarr cannot do transfer collective"):
        plan_cases(entry)
    kept = plan_cases(entry, unsupported="skip")
    assert [case.parameters.backend for case in kept.cases] == ["hdf5"]
    ((name, reason),) = kept.left_out
    assert name.startswith("zarr.")
    assert reason == "backend zarr cannot do transfer collective (it can: independent)"


def test_nothing_left_to_run_is_refused():
    with pytest.raises(UserError, match="all 1 cases are impossible"):
        plan_cases(ENTRY | {"backend": "posix", "transfer": "collective"}, unsupported="skip")


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 9),
       st.sampled_from(["block", "balanced"]))  # fmt: skip
def test_the_chunk_shape_that_a_refusal_names_is_accepted(n, chunk, ranks, distribution):
    entry = {"workload": "hyperslab", "backend": "zarr", "shape": [n, 3],
             "chunks": [min(chunk, n), 3], "distribution": distribution}  # fmt: skip
    try:
        plan_cases(entry, ranks=ranks)
    except ImpossibleCaseError as error:
        legal = yaml.safe_load(str(error).rsplit(" is ", 1)[1])
        plan_cases(entry | {"chunks": legal}, ranks=ranks)


@pytest.mark.parametrize("layout", ["one-shared", "one-per_rank", "per_rank"])
@pytest.mark.parametrize("backend", ["hdf5", "netcdf4", "zarr", "tensorstore", "posix"])
@pytest.mark.parametrize("shape", [[3, 4], [1, 4], [2, 2, 2]])
def test_fewer_rows_than_ranks_are_planned(backend, layout, shape):
    """Balanced, rank 0 is one of those that hold nothing."""
    entry = {"workload": "hyperslab", "backend": backend, **keys_of(layout), "shape": shape,
             "distribution": "balanced", "chunks": ["auto", "rank_part"]}  # fmt: skip
    found = plan_cases(entry, ranks=8)
    for case in found.cases:
        (first, *_) = arrays_of(case.parameters, 8).kinds
        assert all(first.shape), first
        assert first.chunks in ("library", "contiguous") or all(first.chunks)
        assert found.costs[case.id].nbytes == 4 * math.prod(shape)


def test_cases_of_one_comparison_stand_together():
    found = plan_cases(
        ENTRY | {"backend": "hdf5", "files": "one", "arrays": ["shared", "per_rank"]},
        ENTRY | {"backend": "netcdf4", "files": "one", "arrays": ["shared", "per_rank"]},
    ).cases  # fmt: skip
    assert [(c.parameters.files_word, c.parameters.backend) for c in found] == [
        ("one-shared", "hdf5"), ("one-shared", "netcdf4"),
        ("one-per_rank", "hdf5"), ("one-per_rank", "netcdf4"),
    ]  # fmt: skip


# Costs


def test_a_cost_is_bytes_arrays_files_and_space():
    (case,) = plan_cases(ENTRY | {"shape": [1024, 1024], "datasets": 2, "steps": 3}).cases
    cost = cost_of(case, 4, 64 * MIB)
    assert cost.nbytes == 2 * 3 * 4 * MIB
    assert (cost.arrays, cost.files) == (2, 1)
    assert cost.nbytes < cost.space < 1.3 * cost.nbytes


def test_zarr_is_counted_with_its_chunk_files():
    (case,) = plan_cases(ENTRY | {"backend": "zarr", "shape": [64, 64], "chunks": [16, 8]}).cases
    assert cost_of(case, 4, MIB).files >= 4 * 8


def test_a_store_with_shards_is_counted_with_a_file_for_each_of_them():
    sharded = {"chunks": [16, 8], "zarr": {"shards": [16, 64]}}
    (case,) = plan_cases(ENTRY | {"backend": "zarr", "shape": [64, 64], **sharded}).cases
    assert cost_of(case, 4, MIB).files == 4 + 2  # and the metadata of array and group


@pytest.mark.parametrize("backend", ["hdf5", "null"])
def test_one_large_call_needs_its_memory_whatever_the_budget(backend):
    (case,) = plan_cases(ENTRY | {"backend": backend, "shape": [2**19, 2**12]}).cases
    assert cost_of(case, 4, 64 * MIB).memory >= 2 * 2**30  # 8 GiB over 4 ranks, one call each


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (AvailableSpace("/x", MIB, None, 2**60), r"needs about .* in /x, where 1 MiB are free"),
        (AvailableSpace("/x", 2**60, 3, 2**60), r"makes about .* files in /x, where 3 more fit"),
        (AvailableSpace("/x", 2**60, None, MIB), r"of memory on each rank, where 1 MiB are free"),
    ],
)
def test_what_does_not_fit_is_refused(room, expected):
    found = plan_cases(ENTRY | {"backend": "zarr", "shape": [1024, 1024]})
    with pytest.raises(UserError, match=expected):
        check_room(found, room)


# What ships


@pytest.mark.parametrize("chunks", ["rank_part", [2, 2]])
def test_a_format_without_chunks_refuses_them(chunks):
    entry = {"workload": "hyperslab", "backend": "npy", "shape": [8, 4]}
    assert len(plan_cases(entry).cases) == len(plan_cases(entry | {"chunks": "contiguous"}).cases)
    with pytest.raises(ImpossibleCaseError, match="has no chunks"):
        plan_cases(entry | {"chunks": chunks})


@pytest.mark.parametrize("path", sorted(REPOSITORY.joinpath("configs").rglob("*.yaml")), ids=str)
def test_shipped_experiments_begin_with_what_they_answer_write_and_take(path):
    lines = path.read_text().splitlines()
    head = [line for line in lines[:12] if line.startswith("#")]
    for word in ("Question:", "Writes:", "Takes:"):
        assert sum(line.startswith(f"# {word}") for line in head) == 1, word
    assert lines[0].startswith("# Question:")


@pytest.mark.parametrize("name", backend_names())
def test_backends_tell_what_they_can_without_their_library(name):
    kind = backend_class(name)
    assert kind.name == name
    assert kind.capabilities.transfers
    assert kind.options_type() == kind.options_type()  # every option has a default


@pytest.mark.parametrize("name", workload_names())
def test_workloads_are_known_by_their_own_name(name):
    assert workload(name).name == name


def test_a_case_is_named_by_what_it_is():
    (case,) = expanded()
    assert isinstance(case, Case)
    assert case.id.startswith("hdf5.hyperslab.one-shared.independent.matched.")
    assert Path(case.id).name == case.id


# What nobody means


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("hdf5.alignment", 2**63 - 1, "9223372036854775807 is more than 1 GiB, which is the most"),
        ("hdf5.chunk_cache", "2 TiB", "'2 TiB' is more than 1 TiB"),
        ("netcdf4.alignment", "1025 MiB", "is more than 1 GiB"),
        ("zarr.concurrency", 10**5, "<= 10000"),
        ("tensorstore.threads", 99_999_999, "<= 4096"),
        ("tensorstore.cache_pool", 2**62, "is more than 1 TiB"),
        ("null.delays", {"write": 1e300}, "<= 1000000.0"),
        ("null.fail_rank", 10**30, "null.fail_rank"),
    ],
)
def test_an_absurd_option_is_refused(key, value, told):
    backend, option = key.split(".")
    entry = ENTRY | {"backend": backend, backend: {option: value}}
    with pytest.raises(UserError, match=rf"x: cases\[0\]\.{re.escape(key)}") as error:
        from_data({"name": "x", "cases": [entry]}, "x")
    assert told in str(error.value)


@pytest.mark.parametrize("text", ['"\\e[31mred"', '"\\ud800"', '"\\u202eabc"', '"a\\rb"', '"\\0"'])
def test_control_characters_are_refused_where_they_stand(text):
    with pytest.raises(UserError, match="x: line 2: not valid YAML: a text holds control char"):
        parse(f"name: x\nquestion: {text}\n", "x")
    with pytest.raises(UserError, match="x: line 1: not valid YAML: a text holds control char"):
        parse(f"{text}: 1\n", "x")


def test_several_lines_of_text_are_text():
    assert parse('a: "b\\tc\\nd"', "x") == {"a": "b\tc\nd"}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"workload": "hyperslab", "shape": [7, 3], "steps": 2}, None),
        ({"workload": "hyperslab", "shape": [7], "steps": 2}, r"\[7\] has 2 axes, steps included"),
        ({"workload": "hyperslab", "shape_per_rank": [2, 7, 3]}, None),
        ({"workload": "datasets", "shape": [7, 3], "datasets": 2}, r"\[7, 3\] has 2 axes, the var"),
        ({"workload": "updates", "shape": [2, 7, 3]}, "what is changed must differ"),
    ],
)
def test_axes_of_a_users_file_are_those_of_the_arrays_and_their_steps(tmp_path, keys, said):
    """The steps of updates are not an axis."""
    np.save(tmp_path / "a.npy", np.zeros((2, 7, 3), "float32"))
    entry = {"backend": "hdf5", "source": "file", "file": str(tmp_path / "a.npy"), **keys}
    if said is None:
        assert len(plan_cases(entry, ranks=1).cases) >= 1
        return
    with pytest.raises(UserError, match=said):
        plan_cases(entry, ranks=1)
