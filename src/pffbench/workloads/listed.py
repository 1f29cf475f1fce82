"""Workloads whose arrays may differ, or be cut by a decomposition map.

Such a workload declares the arrays of one kind. Lists of arrays, maps, and parts of a map in files
of groups follow from that.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from pffbench.backends.base import Backend
from pffbench.case import ArrayShape, ChunkShape, Count, DataSize, Parameters
from pffbench.data.base import DType
from pffbench.geometry.box import Shape
from pffbench.geometry.cut import Decomposition
from pffbench.geometry.maps import Consecutive, MapCut
from pffbench.workloads.arrays import CaseArrays, Family, of_owner
from pffbench.workloads.base import Workload
from pffbench.workloads.irregular import MapFile
from pffbench.workloads.map_rules import check_map, elements_on_disk, refuse_map
from pffbench.workloads.refusals import unfit_chunks

if TYPE_CHECKING:
    from typing import Self

#: Names of arrays that every format allows, and every language that reads them.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")


class ListedArray(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Arrays of one kind among several in a file; what is left out is as the case has it."""

    #: Name in the file; with a count the arrays are ``name_000``, ``name_001`` and so on.
    name: str
    #: As in the parameters of the workload.
    shape: ArrayShape | None = None
    dtype: DType | None = None
    decomposition: Decomposition | MapFile | None = None
    chunks: Literal["auto", "rank_part", "contiguous"] | ChunkShape | None = None
    #: Number of such arrays.
    count: Count = 1

    def name_of(self, index: int) -> str:
        """Return the name of one of them."""
        return self.name if self.count == 1 else f"{self.name}_{index:03d}"

    @property
    def names(self) -> list[str]:
        """Names of all of them."""
        return [self.name_of(index) for index in range(self.count)]

    def within(self, p: P) -> P:
        """Return the parameters of a case that has these arrays only."""
        keys = [key for key in self.__struct_fields__ if key not in ("name", "count")]
        given = {key: value for key in keys if (value := getattr(self, key)) is not None}
        return replace(p, datasets=self.count, **given)


class MappedArray(ListedArray, frozen=True):
    """As `ListedArray`, of a workload that cuts its arrays in one way, unless a map cuts them."""

    decomposition: MapFile | None = None


class MappedPart(MappedArray, frozen=True):
    """As `MappedArray`, of a workload that has the key `shape_per_rank`."""

    shape_per_rank: ArrayShape | None = None


OneOrMore = msgspec.Meta(min_length=1)


class ArrayParameters(Parameters, frozen=True, kw_only=True):
    """Parameters of a workload whose arrays may differ, or be cut by a map."""

    if TYPE_CHECKING:  # keys of the workloads, some of which allow more values than others

        @property
        def datasets(self) -> int | tuple[ListedArray, ...] | None: ...

        @property
        def decomposition(self) -> Decomposition | MapFile | None: ...

    @property
    def map_file(self) -> MapFile | None:
        """The decomposition map that cuts the arrays, if one does."""
        return self.decomposition if isinstance(self.decomposition, MapFile) else None

    @property
    def map_shape(self) -> Shape | None:
        """Shape of the map."""
        return None if self.map_file is None else self.map_file.map.shape

    @property
    def irregular(self) -> bool:
        """Whether ranks have stretches of an array: the parts of a map in one shared array.

        Other files have the elements of their ranks one after the other.
        """
        return self.map_file is not None and self.files_word == "one-shared"

    @property
    def number(self) -> int:
        """Number of arrays, if they are of one kind."""
        assert isinstance(self.datasets, int)
        return self.datasets

    @property
    def each(self) -> tuple[tuple[str, Self], ...]:
        """Parameters of each kind of array, with the beginning of a message about it."""
        if not isinstance(self.datasets, tuple):
            return (("", self),)
        return tuple(
            (f"datasets[{n}] ({one.name}): ", one.within(self))
            for n, one in enumerate(self.datasets)
        )

    @property
    def input_files(self) -> tuple[str, ...]:
        maps = [one.map_file.file for _, one in self.each if one.map_file is not None]
        return (*super().input_files, *dict.fromkeys(maps))


class MappedParameters(ArrayParameters, frozen=True, kw_only=True):
    """Parameters of a workload that cuts its arrays in one way, unless a map cuts them."""

    #: Number of arrays. Or a list of arrays that differ, which are written in this order.
    datasets: DataSize[Count | Annotated[tuple[MappedArray, ...], OneOrMore]] = 1
    #: A map of the stretches of the flattened array that each process has, as of the workload
    #: `hyperslab`.
    decomposition: MapFile | None = None


P = TypeVar("P", bound=ArrayParameters)


class ArrayWorkload(Workload):
    """A workload with parameters of the type `ArrayParameters`."""

    #: Whether a map is one of each row of an array.
    map_of_rows: ClassVar[bool] = False

    @abstractmethod
    def family(self, p: Any, ranks: int) -> Family:
        """Return the arrays of one kind, which is not refused.

        With a decomposition map their cut is replaced by the map's.
        """

    def check(self, p: Any, ranks: int) -> str | None:
        """Return why arrays of one kind cannot be as they are described, or None."""
        return None

    def check_family(self, family: Family) -> str | None:
        """Return why the chunks cannot be those of arrays of one kind, or None."""
        return unfit_chunks(family)

    def arrays(self, parameters: Any, ranks: int) -> CaseArrays:
        return arrays_of_kinds(parameters, partial(self.family, ranks=ranks))

    def refuse(self, parameters: Any, ranks: int, backend: type[Backend]) -> str | None:
        p: ArrayParameters = parameters
        if reason := _check_list(p):
            return reason
        found = [(label, self._check(one, ranks)) for label, one in p.each]
        found += [(label, refuse_map(one, backend)) for label, one in p.each]
        return next((type(why)(f"{label}{why}") for label, why in found if why), None)

    def _check(self, p: ArrayParameters, ranks: int) -> str | None:
        reason = check_map(p, ranks, rows=self.map_of_rows) or self.check(p, ranks)
        if reason is not None:
            return reason
        (family,) = self.arrays(p, ranks).families
        return self.check_family(family)


def arrays_of_kinds(p: P, family: Callable[[P], Family]) -> CaseArrays:
    """Return the arrays of a case, from those of one kind.

    Parameters
    ----------
    p : ArrayParameters
        The case.
    family : callable
        Returns the arrays of a case that has one kind.
    """
    if not isinstance(p.datasets, tuple):
        return CaseArrays((_by_map(p, family(p)),))
    families: list[Family] = []
    first = 0
    for (label, one), listed in zip(p.each, p.datasets, strict=True):
        name = partial(_name, listed)
        families.append(replace(_by_map(one, family(one)), name=name, first=first, label=label))
        first += families[-1].count
    return CaseArrays(tuple(families))


def _by_map(p: ArrayParameters, family: Family) -> Family:
    """Return arrays cut by the decomposition map of a case; as they are without one."""
    if p.map_file is None:
        return family
    found, file = p.map_file.map, p.map_file.file
    if not p.irregular:
        return replace(family, cut=Consecutive(found, family.ranks, file))
    on_disk = partial(elements_on_disk, p, prod(found.shape))
    cut = MapCut(found, family.ranks, file)
    return replace(family, cut=cut, block=_no_part, elements_on_disk=on_disk)


def _no_part(part: Shape) -> None:
    """Return no chunk: the part of a rank is not a box."""


def _name(listed: ListedArray, index: int, owner: int | None) -> str:
    return listed.name_of(index % listed.count) + of_owner(owner)


def _check_list(p: ArrayParameters) -> str | None:
    """Return why a case cannot list arrays, or not these, or None."""
    if not isinstance(p.datasets, tuple):
        return None
    found = ["source: file"] if p.source == "file" else list(p.shape_keys)
    if found:
        return (
            f"datasets: {', '.join(found)} cannot be given with a list, whose arrays differ; leave "
            "it out, or make a case of each array"
        )
    if wrong := [one.name for one in p.datasets if not _NAME.fullmatch(one.name)]:
        return (
            f"datasets: the name {wrong[0]!r} is not possible in every format; use a letter, then "
            "at most 63 letters, digits and _"
        )
    names = Counter(name for one in p.datasets for name in one.names)
    if twice := [name for name, times in names.items() if times > 1]:
        return f"datasets: two arrays have the name {twice[0]}; give each array another one"
    return None
