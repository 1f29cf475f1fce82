"""Maps of irregular decompositions: their files, what ranks get, and what is refused."""

import io
import os
import zipfile

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pffbench.backends.registry import backend_class
from pffbench.data import make_source
from pffbench.data.views import Gathered
from pffbench.errors import UserError
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import from_data
from pffbench.experiment.plan import arrays_of
from pffbench.geometry.box import Box
from pffbench.geometry.maps import DecompositionMap
from pffbench.geometry.stretches import Stretches, common_runs, merged
from pffbench.workloads.hyperslab import Hyperslab, HyperslabParameters
from pffbench.workloads.irregular import MapFile
from pffbench.workloads.made_maps import MADE
from pffbench.workloads.made_maps import main as make_map
from pffbench.workloads.map_files import read_map, write_npz, write_text
from pffbench.workloads.map_rules import in_stored_order
from plans import plan_cases

#: What Scorpio writes of an array of 2 × 3 elements, which the text calls 3 × 2: the second process
#: has nothing, and there are places of memory that belong to no element.
TEXT = """version 2001 npes 3 ndims 2
3 2
0 4
6 0 1 2
1 0

2 3
5 3 4
Obtained 10 stack frames.
/bin/model.exe() [0x1403f3a]
"""


@st.composite
def selections(draw):
    """An array's shape, and which of its elements are selected."""
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=4)))
    size = int(np.prod(shape))
    taken = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    return shape, np.array(taken)


def stretches_of(shape, taken):
    edges = np.flatnonzero(np.diff(np.concatenate(([0], taken.astype(int), [0]))))
    return Stretches.of(shape, edges[::2], edges[1::2] - edges[::2])


@given(selections(), st.integers(1, 9))
def test_boxes_and_parts_of_stretches_are_their_elements_in_order(selection, limit):
    shape, taken = selection
    whole = np.arange(taken.size).reshape(shape)
    stretches = stretches_of(shape, taken)
    found = [whole[box.slices].reshape(-1) for box in stretches.boxes()]
    assert np.concatenate([[], *found]).tolist() == np.flatnonzero(taken).tolist()
    parts = [part for part in stretches.split(limit) if part.size]
    assert all(part.size <= limit for part in parts)
    found = [whole[box.slices].reshape(-1) for part in parts for box in part.boxes()]
    assert np.concatenate([[], *found]).tolist() == np.flatnonzero(taken).tolist()


@given(selections(), st.data())
def test_runs_in_common_with_a_box_are_in_the_right_places_of_both_memories(selection, data):
    shape, taken = selection
    start = [data.draw(st.integers(0, n - 1)) for n in shape]
    extent = [data.draw(st.integers(1, n - a)) for n, a in zip(shape, start, strict=True)]
    box, whole = Box(tuple(start), tuple(extent)), np.arange(taken.size).reshape(shape)
    packed, inside = np.flatnonzero(taken), whole[box.slices].reshape(-1)
    found = []
    for a, b, length in zip(*common_runs(stretches_of(shape, taken), box), strict=True):
        assert packed[a : a + length].tolist() == inside[b : b + length].tolist()
        found += inside[b : b + length].tolist()
    assert found == sorted(set(packed) & set(inside))


@given(selections(), st.integers(0, 1), st.data())
def test_every_second_of_the_elements_is_in_a_lattice_that_a_box_may_have(selection, before, data):
    shape, taken = selection
    even = (np.indices(shape)[-1].reshape(-1) + before) % 2 == 0
    stretches = stretches_of(shape, taken).every_second(before)
    assert stretches.offsets.tolist() == np.flatnonzero(taken & even).tolist()
    assert set(stretches.lengths) <= {1}
    whole, lattice = np.arange(taken.size).reshape(shape), stretches.lattice
    assert whole[lattice.slices].reshape(-1).tolist() == np.flatnonzero(even).tolist()
    start = tuple(data.draw(st.integers(0, n - 1)) for n in shape)
    area = Box(start, tuple(n - a for n, a in zip(shape, start, strict=True)))
    box = area.common(lattice)
    runs = common_runs(stretches, box)
    inside, found = whole[box.slices].reshape(-1), []
    for a, b, length in zip(*runs, strict=True):
        assert stretches.offsets[a : a + length].tolist() == inside[b : b + length].tolist()
        found += inside[b : b + length].tolist()
    assert found == sorted(set(stretches.offsets) & set(inside))


@given(selections(), st.data())
def test_the_chunks_of_stretches_are_counted_once_each(selection, data):
    shape, taken = selection
    chunks = tuple(data.draw(st.integers(1, n)) for n in shape)
    index = np.unravel_index(np.flatnonzero(taken), shape)
    hit = set(zip(*(i // c for i, c in zip(index, chunks, strict=True)), strict=True))
    assert stretches_of(shape, taken).count_chunks(chunks) == len(hit)


@pytest.mark.parametrize("shape", [(100_003,), (3, 40_000), (2, 3, 300, 120)])
@pytest.mark.parametrize("kind", ["uniform", "smooth"])
def test_the_data_of_stretches_are_those_of_the_array(shape, kind):
    source, size = make_source(kind, "float32", 3), int(np.prod(shape))
    truth = np.empty(shape, np.float32)
    source.fill(truth, 2, (0,) * len(shape), shape)
    taken = np.random.default_rng(0).random(size) < 0.6
    stretches = stretches_of(shape, taken)
    gathered = Gathered(source, shape, stretches.offsets, stretches.lengths)
    out = np.empty(stretches.size, np.float32)
    gathered.fill(out, 2, (0,), out.shape)
    assert (out == truth.reshape(-1)[taken]).all()
    gathered.fill(out[:50], 2, (7,), out.shape)
    assert (out[:50] == truth.reshape(-1)[taken][7:57]).all()
    assert gathered.index((7,)) == tuple(np.argwhere(taken.reshape(shape))[7])


@pytest.mark.parametrize("steps", [None, 3])
@pytest.mark.parametrize("files", [{"files": "per_rank"}, {"arrays": "per_rank"}])
def test_a_users_array_is_stored_in_the_order_of_a_map(tmp_path, files, steps):
    (tmp_path / "map.dat").write_text(TEXT)
    of_map = {"file": str(tmp_path / "map.dat")}
    plain = {"workload": "hyperslab", "backend": "posix", "source": "file", "steps": steps}
    p = msgspec.convert(plain | files | {"decomposition": of_map}, HyperslabParameters)
    assert Hyperslab().refuse(p, 2, backend_class("posix")) is None
    data, shape = make_source("uniform", "float32", 3), (2, 3) if steps is None else (steps, 2, 3)
    truth = np.empty(shape, np.float32)
    data.fill(truth, 1, (0,) * len(shape), shape)
    stored = in_stored_order(data, Hyperslab().arrays(p, 2))
    order = [0, 1, 5, 2, 3, 4]  # rank 0 has process 0, and rank 1 the processes 1 and 2
    expected = truth.reshape(*shape[:-2], 6)[..., order]
    found = np.empty_like(expected)
    stored.fill(found, 1, (0,) * expected.ndim, expected.shape)
    assert (found == expected).all()
    part = np.empty_like(expected[..., 1:5])
    stored.fill(part, 1, (*(0 for _ in shape[:-2]), 1), expected.shape)
    assert (part == expected[..., 1:5]).all()


SLICES = {
    "gather needs parts that are boxes": {"backend": "hdf5", "rearranger": "gather",
                                          "files": {"count": 1}},
    "npy moves boxes only": {"backend": "npy", "files": "per_rank"},
    "use arrays: per_rank": {"backend": "posix", "holes": "allow"},
}  # fmt: skip


@pytest.mark.parametrize("why", SLICES)
def test_slices_of_a_map_that_cannot_be_read_are_refused(tmp_path, why):
    given = dict(SLICES[why])
    of_map = {"holes": given.pop("holes")} if "holes" in given else {}
    (tmp_path / "map.npz").write_bytes(npz(shape=[1, 2, 3]))
    case = {"workload": "slices", "axis": 0, **given,
            "decomposition": {"file": str(tmp_path / "map.npz"), **of_map}}  # fmt: skip
    with pytest.raises(UserError, match=why):
        plan_cases(case, ranks=2)
    assert plan_cases(
        case | {"backend": "hdf5", "files": "per_rank", "rearranger": "none"}, ranks=2
    )


def test_the_text_form_counts_elements_from_one_and_names_the_fastest_axis_first(tmp_path):
    (tmp_path / "map.dat").write_text(TEXT)
    found = read_map(str(tmp_path / "map.dat"))
    assert found.shape == (2, 3)
    assert found.counts.tolist() == [2, 0, 1]
    assert list(zip(found.offsets, found.lengths, strict=True)) == [(0, 2), (5, 1), (2, 3)]


@pytest.mark.parametrize("kind", MADE)
def test_a_made_map_is_the_same_in_both_forms(tmp_path, kind, capsys):
    for name in ("map.npz", "map.txt"):
        assert make_map([kind, str(tmp_path / name), "--processes", "3", "--seed", "5"]) == 0
    assert "3 processes" in capsys.readouterr().out
    npz, text = (read_map(str(tmp_path / name)) for name in ("map.npz", "map.txt"))
    assert npz.shape == text.shape
    for key in ("counts", "offsets", "lengths"):
        assert getattr(npz, key).tolist() == getattr(text, key).tolist()
    used = MapFile(str(tmp_path / "map.npz"), holes="allow" if kind == "land" else "refuse")
    assert used.error(3) is None
    assert int(npz.counts.min()) > 200
    write_npz(tmp_path / "again.npz", text)
    write_text(tmp_path / "again.txt", npz)
    assert (tmp_path / "again.txt").read_bytes() == (tmp_path / "map.txt").read_bytes()


def write_arrays(path, form, maps):
    """Write maps as dat2decomp of E3SM-IO does; `form` is one of netCDF's, or HDF5."""
    import h5py
    import netCDF4

    if form == "HDF5":
        with h5py.File(path, "w") as file:
            for name, (shape, arrays) in maps.items():
                file.attrs[f"{name}.dims"] = np.array(shape, "i4")
                for key, values in arrays.items():
                    file[f"{name}.{key}"] = np.array(values, "i4")
        return
    with netCDF4.Dataset(path, "w", format=form) as file:
        for name, (shape, arrays) in maps.items():
            file.setncattr(f"{name}.dims", np.array(shape, "i4"))
            for key, values in arrays.items():
                file.createDimension(f"{name}.{key}", len(values))
                file.createVariable(f"{name}.{key}", "i4", (f"{name}.{key}",))[:] = values


#: The map of `TEXT` with a stretch of fill values, and a map of one axis.
SHIPPED = {
    "D1": ((5,), {"nreqs": [1, 1], "fill_starts": [1, 1], "offsets": [0, 3], "lengths": [3, 2],
                  "raw_offsets": [1, 2, 3, 4, 5]}),
    "D2": ((2, 3), {"nreqs": [3, 0, 1], "fill_starts": [2, 0, 1], "offsets": [0, 5, 4, 2],
                    "lengths": [2, 1, 1, 3]}),
}  # fmt: skip


@pytest.mark.parametrize(
    "form", ["HDF5", "NETCDF4", "NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"]
)
def test_maps_of_e3sm_io_are_those_of_its_text_form(tmp_path, form):
    write_arrays(tmp_path / "map", form, SHIPPED)
    (tmp_path / "map.dat").write_text(TEXT)
    got, text = MapFile(str(tmp_path / "map"), "D2").map, read_map(str(tmp_path / "map.dat"))
    assert got.shape == text.shape
    for key in ("counts", "offsets", "lengths"):
        assert getattr(got, key).tolist() == getattr(text, key).tolist()
    assert MapFile(str(tmp_path / "map"), "D1").error(2) is None
    assert "the key 'variable' (D1, D2)" in MapFile(str(tmp_path / "map")).error(2)
    assert "it has no map 'D3' (there are: D1, D2)" in MapFile(str(tmp_path / "map"), "D3").error(2)
    assert "it has one map" in MapFile(str(tmp_path / "map.dat"), "D1").error(2)
    write_arrays(tmp_path / "one", form, {"D1": SHIPPED["D1"]})
    assert MapFile(str(tmp_path / "one")).error(2) is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"nreqs": [1, 2]}, "counts add up to 3 stretches"),
        ({"fill_starts": [2, 1]}, "fill_starts has numbers beyond D1.nreqs"),
        ({"fill_starts": [1]}, "fill_starts has numbers beyond D1.nreqs"),
        ({"offsets": [0, 9]}, "a stretch of 2 elements begins at 9"),
        ({"lengths": [3, -2]}, "a length is -2"),
    ],
)
def test_bad_maps_of_e3sm_io_are_refused(tmp_path, change, why):
    shape, arrays = SHIPPED["D1"]
    write_arrays(tmp_path / "map", "HDF5", {"D1": (shape, arrays | change)})
    assert why in MapFile(str(tmp_path / "map")).error(2)


def test_other_files_of_hdf5_are_no_maps(tmp_path):
    import h5py

    with h5py.File(tmp_path / "map", "w") as file:
        file["x"] = np.arange(4)
    assert "it has no array such as D1.offsets" in MapFile(str(tmp_path / "map")).error(2)
    with h5py.File(tmp_path / "map", "a") as file:
        file["D1.offsets"] = np.arange(4)
    assert "the attribute D1.dims is missing" in MapFile(str(tmp_path / "map")).error(2)
    with h5py.File(tmp_path / "map", "a") as file:
        file.attrs["D1.dims"] = [4]
    assert "has no variable 'D1.nreqs'" in MapFile(str(tmp_path / "map")).error(2)
    (tmp_path / "map").write_bytes(b"CDF\x01" + bytes(7))
    assert "cannot be read" in MapFile(str(tmp_path / "map")).error(2)


@pytest.mark.parametrize("kind", MADE)
def test_the_maps_that_come_with_pffbench_are_those_that_the_program_makes(tmp_path, kind):
    make_map([kind, str(tmp_path / "map.npz")])
    made = read_map(str(tmp_path / "map.npz"))
    ours = MapFile(f"package:pffbench/maps/{kind}.npz").map
    assert made.shape == ours.shape
    for key in ("counts", "offsets", "lengths"):
        assert (getattr(made, key) == getattr(ours, key)).all()


def test_a_rank_gets_consecutive_processes_whose_stretches_are_joined(tmp_path):
    (tmp_path / "map.dat").write_text(TEXT)
    found = read_map(str(tmp_path / "map.dat"))
    parts = [[found.part(ranks, rank) for rank in range(ranks)] for ranks in (1, 2, 3)]
    told = [[list(zip(p.offsets, p.lengths, strict=True)) for p in some] for some in parts]
    assert told == [
        [[(0, 6)]], [[(0, 2), (5, 1)], [(2, 3)]], [[(0, 2), (5, 1)], [], [(2, 3)]]
    ]  # fmt: skip
    assert found.beyond(4) == "the map is for 3 processes, fewer than the 4 ranks"


@pytest.mark.parametrize("ranks", [1, 2, 5, 7])
@pytest.mark.parametrize("overlaps", [False, True])
def test_the_sizes_of_all_ranks_are_those_of_their_parts(ranks, overlaps):
    draw = np.random.default_rng(ranks)
    counts = draw.integers(0, 9, 7)
    offsets = draw.permutation(60)[: counts.sum()] * (1 if overlaps else 4)
    lengths = draw.integers(1, 5, counts.sum())
    of = DecompositionMap((300,), counts, offsets, lengths)
    parts = [of.part(ranks, rank) for rank in range(ranks)]
    assert of.sizes(ranks).tolist() == [part.size for part in parts]
    number = [len(part.offsets) for part in parts]
    assert f"{min(number)} to {max(number)} stretches" in of.describe(ranks, 4) or ranks == 1


def test_a_map_of_many_processes_is_planned_without_the_part_of_each(tmp_path, monkeypatch):
    count = 100_000
    each = np.arange(count)
    ones = np.ones_like(each)
    write_npz(tmp_path / "m.npz", DecompositionMap((count,), ones, each, ones))
    case = {"workload": "hyperslab", "backend": "mpiio", "decomposition": {"file": "m.npz"}}
    data = {"name": "x", "roofline": False, "cases": [case]}
    listed = []
    part = DecompositionMap.part
    monkeypatch.setattr(DecompositionMap, "part", lambda *of: listed.append(0) or part(*of))
    monkeypatch.chdir(tmp_path)
    plan = make_plan(from_data(data, "exp.yaml"), ranks=count)
    case = plan.cases[0]
    assert plan.costs[case.id].nbytes == 4 * count
    assert "1 stretches a rank" in str(arrays_of(case.parameters, count).maps)
    assert len(listed) < 10


def test_holes_take_no_space_where_files_may_have_them(tmp_path, monkeypatch):
    """25 elements in an array of 32 GiB: what is moved, and what files take."""
    write_npz(tmp_path / "m.npz", DecompositionMap(
        (2**33,), np.array([5, 20]), np.arange(25) * 2**28, np.ones(25, np.int64)
    ))  # fmt: skip
    case = {"workload": "hyperslab", "backend": "mpiio",
            "decomposition": {"file": "m.npz", "holes": "allow"}}  # fmt: skip
    by_owners = {**case, "backend": "hdf5", "rearranger": "chunk_owner", "chunks": [2**20]}
    data = {"name": "x", "roofline": False, "cases": [case, by_owners]}
    monkeypatch.chdir(tmp_path)
    plan = make_plan(from_data(data, "exp.yaml"), ranks=2)
    sparse, filled = (plan.costs[case.id] for case in plan.cases)
    assert sparse.nbytes == 100
    assert sparse.space < 2**19
    assert filled.nbytes == 2**35
    assert filled.space > 2**35


def npz(**changes):
    """An .npz of two processes that share 2 × 3 elements, changed."""
    arrays = {"shape": [2, 3], "counts": [1, 2], "offsets": [2, 0, 4], "lengths": [2, 2, 2]}
    arrays |= changes
    file = io.BytesIO()
    np.savez(file, **{key: np.array(value) for key, value in arrays.items() if value is not None})
    return file.getvalue()


def cut(data, member):
    """An archive in which one member is not that long."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name)[: -8 if name == member else None])
    return file.getvalue()


def spoilt(member, data):
    """An archive with other contents of a member."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(npz())) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            new.writestr(name, data if name == member else old.read(name))
    return file.getvalue()


def with_bytes(signature, place, value):
    """An archive whose entries have another number of two bytes, behind a signature."""
    data, found = bytearray(npz()), -1
    while (found := data.find(signature, found + 1)) >= 0:
        data[found + place : found + place + 2] = value.to_bytes(2, "little")
    return bytes(data)


def header(text):
    """An .npy file with that text as its header."""
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


ENTRY = b"PK\x01\x02"
TRUNCATED = TEXT.partition("2 3\n")[0].encode()
BAD = {
    "hole": (npz(counts=[1, 1], offsets=[2, 0], lengths=[2, 2]),
             "no process has elements 4 to 5, in all 2 of 6 are missing; holes: allow takes"),
    "overlap": (npz(lengths=[2, 3, 2]), "processes 0 and 1 both have element 2; overlaps: allow"),
    "twice": (npz(offsets=[2, 0, 1], lengths=[2, 2, 1]), "process 1 has twice element 1"),
    "negative": (npz(offsets=[2, -1, 4]), "an offset is -1, and must be at least 0"),
    "empty stretch": (npz(lengths=[2, 0, 2]), "a length is 0, and must be at least 1"),
    "outside": (npz(lengths=[2, 2, 3]), "a stretch of 3 elements begins at 4"),
    "overflow": (npz(lengths=[2, 2, 2**63 - 1]), "begins at 4, and the array"),
    "counts": (npz(counts=[1, 1]), "counts add up to 2 stretches, and there are 3 offsets"),
    "sum of counts that runs over": (
        npz(counts=[1, *[2**62] * 4, 1], offsets=[0, 3], lengths=[3, 3]),
        f"a count is {2**62}, and there are 2 offsets"),
    "member of text": (spoilt("offsets.npy", b"0 1 2"), "offsets is not an array"),
    "empty member": (spoilt("counts.npy", b""), "is not a decomposition map"),
    "header that is no Python": (spoilt("lengths.npy", header("{{{{\n")),
                                 "is not a decomposition map"),
    "shape of truth": (spoilt("lengths.npy", header(
        "{'descr': '<i8', 'fortran_order': False, 'shape': (True,)}\n") + bytes(8)),
        "is not a decomposition map"),
    "encrypted": (with_bytes(ENTRY, 8, 1), "encrypted"),
    "compressed in an unknown way": (with_bytes(ENTRY, 10, 99), "is not a decomposition map"),
    "spoilt LZMA": (with_bytes(ENTRY, 10, 14), "is not a decomposition map"),
    "zip version": (with_bytes(ENTRY, 6, 99), "is not a decomposition map"),
    "long line": (b"version 2001 npes 3 ndims 2" + bytes(2**17), "a line is longer than 64 KiB"),
    "long line of elements": (TEXT.replace("5 3 4", "5 3 4" + " " * 80).encode(),
                              "a line is longer than 65 B"),
    "negative count": (npz(counts=[-1, 4]), "a count is -1"),
    "no process": (npz(counts=np.array([], int), offsets=np.array([], int),
                       lengths=np.array([], int)), "it has 0 processes"),
    "nothing": (npz(counts=[0], offsets=np.array([], int), lengths=np.array([], int)),
                "no process has an element"),
    "shape": (npz(shape=[2, 0]), "shape [2, 0]"),
    "axes": (npz(shape=[1, 1, 1, 1, 6]), "shape [1, 1, 1, 1, 6]"),
    "huge": (npz(shape=[2**40, 2**40]), "shape"),
    "floats": (npz(offsets=[2.0, 0.0, 4.0]), "offsets must be a list of integers, not float64"),
    "objects": (npz(offsets=np.array([2, None, 4])), "Object arrays cannot be loaded"),
    "missing": (npz(lengths=None), "the array lengths is missing (needed: shape, counts,"),
    "cut": (cut(npz(), "offsets.npy"), "is not a decomposition map"),
    "half": (npz()[:400], "neither .npz, netCDF, HDF5, nor text that begins with: version 2001"),
    "no text": (b"lat lon\n1 2\n", "it is neither .npz, netCDF, HDF5, nor text"),
    "nothing at all": (b"", "it is neither .npz, netCDF, HDF5, nor text"),
    "version": (TEXT.replace("2001", "2002").encode(), "version 2002 of the text form is not"),
    "truncated": (TRUNCATED, "it ends before process 2 of 3"),
    "truncated line": (TEXT.replace("5 3 4", "5 3").encode(),
                       "the line of process 2 has 2 numbers instead of 3"),
    "no number": (TEXT.replace("5 3 4", "5 x 4").encode(), "something other than whole numbers"),
    "large number": (TEXT.replace("5 3 4", "5 9999999999999999999999 4").encode(),
                     "something other than whole numbers"),
    "below": (TEXT.replace("5 3 4", "5 -3 4").encode(), "process 2 has element -3, and there are"),
    "above": (TEXT.replace("5 3 4", "5 7 4").encode(), "process 2 has element 7, and there are 1"),
    "order": (TEXT.replace("1 0\n", "0 0\n").encode(), "process 0 stands where 1 to 2 can stand"),
    "dimensions": (TEXT.replace("ndims 2", "ndims 3").encode(), "the second line has 2 numbers"),
    "text twice": (TEXT.replace("5 3 4", "5 5 3").encode(), "process 2 has twice element 4"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_map_is_refused_in_one_sentence_that_names_the_file(tmp_path, name):
    data, why = BAD[name]
    path = tmp_path / "map"
    path.write_bytes(data)
    reason = MapFile(str(path)).error(2)
    assert reason is not None
    assert why in reason
    assert str(path) in reason
    assert "\n" not in reason


def test_no_file_a_directory_and_a_fifo_are_refused(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for name, why in (("none", "No such file"), ("", "directory"), ("fifo", "FIFO")):
        assert why in MapFile(str(tmp_path / name)).error(1)


CHOICES = ["refuse", "allow"]


@pytest.mark.parametrize("holes", CHOICES)
@pytest.mark.parametrize("overlaps", CHOICES)
def test_holes_and_overlaps_are_allowed_when_asked(tmp_path, holes, overlaps):
    (tmp_path / "map.npz").write_bytes(npz(offsets=[2, 0, 1], lengths=[2, 2, 1]))
    reason = MapFile(str(tmp_path / "map.npz"), holes=holes, overlaps=overlaps).error(2)
    assert (reason is None) == (holes == overlaps == "allow")
    assert merged(np.array([4, 0, 1]), np.array([1, 2, 3]))[1].tolist() == [5]


CONTRADICTIONS = {
    "reading another part needs files: one": {"files": "per_rank", "read_start": [0, 1]},
    "leave cut_unit out": {"cut_unit": [1, 1]},
    "shape [4, 4] is not that of the decomposition map, [2, 3]": {"shape": [4, 4]},
    "shape_per_rank is not that of": {"shape_per_rank": [2, 3]},
    "no chunk is the part of a rank": {"chunks": "rank_part"},
    "gather needs parts that are boxes": {"rearranger": "gather"},
    "overlaps: allow needs rearranger: none": {"rearranger": "box", "overlaps": "allow"},
    "needs a read_decomposition too": {"read_start": [0, 1]},
    "holes: allow needs the map to read by": {"read_decomposition": "slab", "holes": "allow"},
}


@pytest.mark.parametrize("why", CONTRADICTIONS)
def test_what_contradicts_a_map_is_refused(tmp_path, why):
    (tmp_path / "map.npz").write_bytes(npz())
    given = dict(CONTRADICTIONS[why])
    of_map = {key: given.pop(key) for key in ("holes", "overlaps") if key in given}
    plain = {"workload": "hyperslab", "backend": "posix", **given,
             "decomposition": {"file": str(tmp_path / "map.npz"), **of_map}}  # fmt: skip
    assert why in Hyperslab().refuse(
        msgspec.convert(plain, HyperslabParameters), 2, backend_class("posix")
    )


def test_a_map_that_changed_is_read_anew(tmp_path):
    path = tmp_path / "map.npz"
    path.write_bytes(npz())
    assert MapFile(str(path)).map.shape == (2, 3)
    path.write_bytes(npz(shape=[6]))
    assert MapFile(str(path)).map.shape == (6,)
    path.unlink()
    with pytest.raises(UserError, match="cannot be read"):
        _ = MapFile(str(path)).map


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_plan_knows_of_a_map_what_listing_its_arrays_tells(tmp_path, ranks):
    (tmp_path / "map.dat").write_text(TEXT)
    plain = {"workload": "hyperslab", "backend": "posix", "datasets": 2, "steps": 3,
             "dtype": "int16",
             "decomposition": {"file": str(tmp_path / "map.dat")}}  # fmt: skip
    p, pattern = msgspec.convert(plain, HyperslabParameters), Hyperslab()
    assert pattern.refuse(p, ranks, backend_class("posix")) is None
    arrays = pattern.arrays(p, ranks).specs(0)
    writes = [pattern.arrays(p, ranks).writes(rank) for rank in range(ranks)]
    assert [spec.shape for spec in arrays] == [(3, 2, 3)] * 2
    declared = pattern.arrays(p, ranks)
    assert declared.kinds == arrays[:1]
    volume = declared.volume
    assert (volume.arrays, volume.nbytes) == (2, sum(spec.nbytes for spec in arrays))
    assert sum(access.nbytes for some in writes for access in some) == volume.nbytes
    longest = max(access.nbytes for some in writes for access in some)
    assert declared.held == longest
    assert declared.families[0].writer_edges == ((), (), ())
