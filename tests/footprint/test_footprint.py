"""`pffbench footprint` without a run: regular cuts give what each rank gives."""

import json
import re
from itertools import product

import pytest
from msgspec.structs import replace

from launch import REPOSITORY, pffbench_here, write_experiment
from pffbench.backends.inspection import places
from pffbench.backends.raw.layout import place_of
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import from_data
from pffbench.mpi.topology import Topology
from pffbench.workloads.registry import workload
from pffbench.workloads.writers import WriterRanks, parts_of_writers
from pffbench_footprint import calls
from pffbench_footprint.laws import LAWS
from pffbench_footprint.quantities import QUANTITIES, Footprint, Stripe, amounts_of
from sharing import keys_of, word_of

pytestmark = pytest.mark.long

#: Cases whose parts are unequal, empty, and lie anyhow in chunks.
CASES = [
    {"backend": ["posix", "hdf5", "zarr", "npy", "mpiio"], **keys_of(layout), "shape": [14, 9],
     "decomposition": decomposition, "distribution": distribution, "chunks": "auto", "steps": steps,
     "datasets": 2}
    for layout in ("one-shared", "one-per_rank", "per_rank")
    for decomposition, distribution in product(("slab", "block"), ("block", "balanced"))
    for steps in (None, 3)
] + [
    {"backend": ["hdf5"], "shape": [21, 10], "chunks": [[4, 3]], "decomposition": "block"},
    {"backend": ["hdf5"], "shape": [21, 10], "chunks": [[2, 4, 3]], "decomposition": "pencil",
     "steps": 5},
    {"backend": ["posix", "hdf5"], "shape": [40, 6], "read_decomposition": "block",
     "read_start": [3, 0], "read_shape": [20, 4]},
    {"backend": ["posix", "hdf5"], "files": {"count": 3},
     "shape": [40, 6], "distribution": "balanced"},
]  # fmt: skip


def footprints(cases, ranks, nodes=1, stripe=None):
    common = {"workload": "hyperslab"}
    data = {"name": "t", "roofline": False, "unsupported": "skip",
            "cases": [common | case for case in cases]}  # fmt: skip
    topology = Topology.even(ranks, nodes)
    plan = make_plan(from_data(data, "t"), ranks, topology=topology, as_installed=False)
    return [Footprint(case, topology, stripe) for case in plan.cases]


@pytest.mark.parametrize("ranks", [1, 3, 8])
def test_regular_cuts_give_what_each_rank_gives(monkeypatch, ranks):
    stripe = Stripe(64, 4)
    found = [amounts_of(one) for one in footprints(CASES, ranks, 2, stripe)]
    assert len(found) > 80
    monkeypatch.setattr(calls, "_regular", lambda *_: ([], [], 0))
    asked = [amounts_of(one) for one in footprints(CASES, ranks, 2, stripe)]
    known = [
        [{name: (a.value, a.certainty) for name, a in one.items()} for one in amounts]
        for amounts in (found, asked)
    ]
    assert known[0] == known[1]  # of several reasons the first one is named


def ranks_of_stripes(case, ranks, size):
    """Return the ranks that write to each stripe of a raw file."""
    p, found = case.parameters, {}
    for rank in range(ranks):
        for access in workload(p.workload).arrays(p, ranks).writes(rank):
            if access.box.size:
                place = place_of(access.spec, case.options)
                runs = place.runs(access.box)
                for begin in runs.offsets.tolist():
                    for stripe in range(begin // size, (begin + runs.length - 1) // size + 1):
                        found.setdefault(stripe, set()).add(rank)
    return found


@pytest.mark.parametrize("ranks", [1, 3, 8])
@pytest.mark.parametrize("size", [32, 100, 4096])
def test_shared_stripes_are_those_of_the_bytes_of_each_rank(ranks, size):
    cases = [one | {"backend": "posix"} for one in CASES[:24] if word_of(one) != "per_rank"]
    exact = 0
    for one in footprints(cases, ranks, stripe=Stripe(size, 4)):
        amounts, stripes = amounts_of(one), ranks_of_stripes(one.case, ranks, size)
        shared = sum(len(of) > 1 for of in stripes.values())
        if amounts["shared_stripes"].kind == "exact":
            exact += 1
            assert amounts["shared_stripes"].value == shared, one.case.parameters
        else:
            assert amounts["shared_stripes"].value >= shared
        assert amounts["stripes"].value == max(stripes) + 1
    assert exact >= 8


@pytest.mark.parametrize("ranks", [1, 3, 8])
def test_shared_chunks_are_those_that_several_ranks_touch(ranks):
    cases = [{"backend": "hdf5", "shape": [21, 10], "chunks": [chunks], "decomposition": of,
              "steps": steps}
             for chunks in ([4, 3], [7, 10], [1, 1]) for of in ("slab", "block")
             for steps in (None, 3)]  # fmt: skip
    for one in footprints(cases, ranks):
        p, touched = one.case.parameters, {}
        for rank in range(ranks):
            for access in workload("hyperslab").arrays(p, ranks).writes(rank):
                unit = access.spec.chunks
                for place in places(access.box, unit) if access.box.size else ():
                    touched.setdefault(place, set()).add(rank)
        shared = sum(len(of) > 1 for of in touched.values())
        amount = amounts_of(one)["shared_chunks"]
        assert (amount.value, amount.kind) == (shared, "exact")


@pytest.mark.parametrize("ranks", [2, 6])
def test_exchanged_bytes_are_those_of_other_ranks(ranks):
    cases = [{"backend": "hdf5", "shape": [24, 40], "decomposition": "block", "steps": 2,
              "chunks": [[5, 7]], "rearranger": ["gather", "box", "chunk_owner"],
              "writers": [{"count": 1}, {"count": 2}, {"per_node": 1}, "all"]}]  # fmt: skip
    for one in footprints(cases, ranks, nodes=2):
        p = one.case.parameters
        direct = replace(p, rearranger="none", writers="all", steps=None)
        arrays = workload("hyperslab").arrays(direct, ranks)
        parts = [arrays.writes(rank)[0].box for rank in range(ranks)]
        writers = WriterRanks.of(p.writers, one.topology)
        placed = parts_of_writers(p.rearranger, writers, parts, (24, 40), (5, 7))
        sent = sum(
            box.common(part).size
            for writer, boxes in placed.items() for box in boxes
            for rank, part in enumerate(parts) if rank != writer
        )  # fmt: skip
        assert amounts_of(one)["exchanged_bytes"].value == 4 * 2 * sent


def test_a_hundred_thousand_ranks_are_counted_in_closed_form():
    case = {"backend": ["posix", "zarr"], "files": "one", "arrays": "shared",
            "shape_per_rank": [24, 512, 512],
            "chunks": [[4, 512, 512]], "durability": "sync"}  # fmt: skip
    raw, zarr = (amounts_of(one) for one in footprints([case], 100_000, 782, Stripe(2**24, 64)))
    assert {key: raw[key].value for key in ("write_requests", "stripes", "shared_stripes")} == {
        "write_requests": 100_000, "stripes": 150_000, "shared_stripes": 50_000,
    }  # fmt: skip
    assert raw["syncs"].value == 2 * 782
    assert (zarr["files"].value, zarr["files"].kind) == (600_002, "exact")


def footprint(*arguments):
    return pffbench_here("footprint", *arguments)


def test_a_workload_of_another_package_is_counted_if_it_makes_the_calls_of_a_built_in_one():
    for experiment in ("configs/compression.yaml", "configs/studies/file-format-testing.yaml"):
        done = footprint(experiment, "--ranks", 4)
        assert done.status == 0, done.said
    refused = footprint("configs/studies/hdf5-compression-tuning.yaml", "--ranks", 4)
    assert refused.status == 2
    assert "workload study_chunk_cache has no footprint here" in refused.stderr


def test_what_differs_between_two_cases_is_sorted_by_its_factor():
    done = footprint(
        "--ranks", 64, "--stripe", "16MiB×4", "--case", 10, "--case", "zarr.hyperslab.one-per_rank"
    )
    assert done.status == 0, done.said
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["10", "8"]
    rows = {
        re.split(r"\s{2,}", line.strip())[0]: line.split()[-1] for line in lines[4:] if line.strip()
    }
    assert rows["directories"] == "0"
    data = json.loads(footprint("--ranks", 64, "--case", 10, "--json").stdout)
    (case,) = data["cases"]
    assert case["number"] == 10
    assert case["quantities"]["write_requests"]["kind"] == "exact"
    assert case["sizes"]["write_requests"] == [{"bytes": 24 * 2**20, "requests": 64}]


@pytest.mark.parametrize(("arguments", "words"), [
    (["--ranks", "0"], "is not a number of ranks (1 to 10000000)"),
    ([], "--ranks"),
    (["--ranks", "8", "--ranks-per-node", "0"], "is not a number of ranks (1 to 10000000)"),
    (["--ranks", "8", "--stripe", "16MiB"], "is not a size and a number of servers, such as 16MiB"),
    (["--ranks", "8", "--stripe", "0:4"], "is not a size and a number of servers"),
    (["--ranks", "8", "--stripe", "1MiB:0"], "is not a size and a number of servers"),
    (["--ranks", "8", "--case", "nothing"], "no case of 24 has it in its name"),
    (["--ranks", "8", "--case", "hdf5"], "6 cases (1, 5, 9, 13, 17, 21"),
    (["--ranks", "8", *["--case", "1"] * 3], "at most two cases are compared"),
    (["configs/studies/versioned-hdf5.yaml", "--ranks", "8"], "not known before it runs"),
    (["--ranks", "5000", "--set", "files=one", "--set", "arrays=shared",
      "--set", "read_start=[0,0,0]"],
     "take at most 4096 ranks"),
])  # fmt: skip
def test_wrong_input_gets_one_sentence(arguments, words):
    done = footprint(*arguments)
    assert done.status == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


MATRIX = [
    {"backend": names, "files": ["one", "per_rank"], "arrays": ["shared", "per_rank"],
     "chunks": chunks,
     "transfer": ["independent", "collective"], "shape_per_rank": [8, 64, 64],
     "durability": ["close", "sync"]}
    for chunks, names in (
        ([[4, 64, 64]], ["hdf5", "netcdf4", "zarr", "tensorstore", "blosc2"]),
        ("contiguous", ["posix", "npy", "mpiio", "hdf5", "netcdf4"]),
    )
]  # fmt: skip
FORMATS = [
    "posix", "npy", "mpiio", "hdf5", "netcdf4", "zarr", "tensorstore", "blosc2",
]  # fmt: skip


def footprint_table():
    """Return the table of the documents: which quantity is what in which format."""
    kinds = {(q.name, name): set() for q in QUANTITIES for name in FORMATS}
    for one in footprints(MATRIX, 4, stripe=Stripe(2**20, 4)):
        for name, amount in amounts_of(one).items():
            kinds[name, one.case.parameters.backend].add(amount.kind)
    lines = [["quantity", *FORMATS], ["---"] * (len(FORMATS) + 1)]
    for quantity in QUANTITIES:
        found = [kinds[quantity.name, name] for name in FORMATS]
        cells = ["/".join(k for k in ("exact", "bound", "unknown") if k in of) for of in found]
        lines.append([f"{quantity.explanation} (`{quantity.name}`)", *cells])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def test_the_table_of_the_documents_is_that_of_the_declaration():
    text = (REPOSITORY / "docs" / "reference" / "footprint.md").read_text()
    assert footprint_table() in text, footprint_table()


def test_every_format_of_the_table_has_a_law():
    assert LAWS.keys() == set(FORMATS)


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_of_a_backend_without_a_law_the_rest_is_shown(tmp_path, form):
    case = {"workload": "hyperslab", "backend": "null", "shape_per_rank": [4, 8]}
    path = write_experiment(tmp_path, cases=[case | {"files": "per_rank"}])
    done = footprint(path, "--ranks", 4, *form)
    assert done.status == 0, done.said
    assert "nothing is known of this backend" in done.stdout
