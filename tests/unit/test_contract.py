"""The contract of a backend: its traits, and which backends have which."""

from __future__ import annotations

import re

import numpy as np
import pytest
from msgspec.structs import replace

from calls import calls_of_ours
from capable import KINDS
from launch import REPOSITORY
from pffbench.backends import traits
from pffbench.backends.array_spec import ArraySpec, Capabilities
from pffbench.backends.base import Array, Backend, Store, define_arrays, open_arrays
from pffbench.backends.registry import backend_class, backend_names, missing_library
from pffbench.backends.traits import TRAITS
from pffbench.case import Options

SPEC = ArraySpec(
    name="a", shape=(4, 6), dtype="float32", number=0, origin=(0, 0), logical_shape=(4, 6),
    offset=0, owner=0, chunks="library", codec="library", level=0, fill="library",
)  # fmt: skip


@pytest.fixture(scope="module")
def implementers(tmp_path_factory):
    """Return the traits of each backend that is installed, its stores and its arrays."""
    found = {kind.__name__: set() for kind in TRAITS}
    for name in backend_names():
        kind = backend_class(name)
        if missing_library(kind):
            continue
        made = objects_of(kind, str(tmp_path_factory.mktemp(name) / f"store{kind.suffix}"))
        for trait in TRAITS:
            if any(isinstance(one, trait) for one in made):
                found[trait.__name__].add(name)
    return found


def test_our_backends_can_do_what_they_could():
    """The matrix runs what a class says, so a layout or transfer that it lost would go unseen.

    A new backend needs no line here: the matrix runs it as it comes.
    """
    apart_only, every = {"per_rank"}, {"per_rank", "shared"}
    apart, both = {"independent"}, {"independent", "collective"}
    together = dict.fromkeys(("hdf5", "netcdf4", "mpiio", "null"), (every, both))
    others = ("zarr", "tensorstore", "npy", "posix")
    expected = together | dict.fromkeys(others, (every, apart)) | {"blosc2": (apart_only, apart)}
    for name, (arrays, transfers) in expected.items():
        able = backend_class(name).capabilities
        assert (name, able.arrays, able.transfers) == (name, arrays, transfers)


@pytest.mark.parametrize("name", [*KINDS, "null"])
def test_only_the_library_works_while_arrays_are_defined_and_opened(tmp_path, name):
    """At most one function of ours is called for each array: what it passes is made before."""
    kind = backend_class(name)
    specs = [replace(SPEC, name=f"a{n}", number=n, offset=96 * n) for n in range(9)]
    backend = kind(kind.options_type(), "matched")
    for number in range(2):  # the first imports what the library needs
        path = str(tmp_path / f"store-{number}{kind.suffix}")
        store = backend.create(path, None)
        define = store.definer(specs)
        with calls_of_ours() as defining:
            returned = define()
        for array in store.wrap(specs, returned).values():
            array.writer(SPEC.whole, np.ones(SPEC.shape, SPEC.dtype), False)()
        store.close()
        store = backend.open(path, None)
        open_all = store.opener(specs)
        with calls_of_ours() as opening:
            open_all()
        store.close()
    assert len(defining) <= len(specs) + 3, defining
    assert len(opening) <= len(specs) + 3, opening


def objects_of(kind, path):
    """Return a backend, a store of it and an array, as they are where data are read."""
    backend = kind(kind.options_type(), "defaults")
    store = backend.create(path, None)
    array = define_arrays(store, [SPEC])["a"]
    array.writer(SPEC.whole, np.ones(SPEC.shape, SPEC.dtype), False)()
    store.close()
    store = backend.open(path, None)
    array = open_arrays(store, [SPEC])["a"]
    store.close()
    return backend, store, array


def test_each_trait_has_an_implementer(implementers):
    assert all(implementers.values())


def test_planning_asks_a_class_for_what_its_instance_has(implementers):
    """Except for attributes, which a store has: `Capabilities` says so before there is one."""
    for name in backend_names():
        kind = backend_class(name)
        if missing_library(kind):
            continue
        for trait in (traits.Changes, traits.Describes, traits.SizesChunks):
            assert issubclass(kind, trait) == (name in implementers[trait.__name__])
        assert kind.capabilities.attributes == (name in implementers["HasAttributes"])


def test_a_backend_says_nothing_of_what_it_lacks():
    """Each fact of a backend that has named nothing means that it has nothing of it."""
    nothing = Capabilities()
    flags = {name: value for name, value in vars_of(nothing).items() if isinstance(value, bool)}
    assert flags
    assert not any(flags.values())
    assert (nothing.arrays, nothing.transfers) == (frozenset(), {"independent"})
    assert nothing.codecs == {"none"}


def vars_of(struct):
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


def test_the_document_lists_every_method_of_the_contract_and_every_trait():
    text = (REPOSITORY / "docs" / "contract.md").read_text(encoding="utf-8")
    for kind in (Backend, Store, Array):
        for method in kind.__abstractmethods__:
            assert f"`{kind.__name__}.{method}`" in text
    for trait in TRAITS:
        (row,) = (line for line in text.splitlines() if line.startswith(f"| `{trait.__name__}` |"))
        methods = {name for name in vars(trait) if not name.startswith("_")}
        assert set(re.findall(r"`(?:Backend|Store|Array)\.(\w+)`", row)) == methods


def test_the_type_of_options_is_named_once():
    class OwnOptions(Options, frozen=True, kw_only=True):
        """Options of a backend of a test."""

    class Own(Backend[OwnOptions]):
        """A backend of a test."""

    class Derived(Own):
        """One that derives from it."""

    assert Own.options_type is Derived.options_type is OwnOptions
    assert Backend.options_type is Options
    for name in backend_names():
        kind = backend_class(name)
        assert issubclass(kind.options_type, Options)
    assert backend_class("npy").options_type is Options
    assert backend_class("zarr").options_type is not Options
