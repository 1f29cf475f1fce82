"""Generation of code for h5py, netCDF4 or zarr that repeats a case."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from pffbench.backends.hdf5_files import (
    SZIP_BLOCK,
    Hdf5FileOptions,
    plugin_filter,
)
from pffbench.backends.hints import asked_hints
from pffbench.backends.netcdf4 import NetCdf4Options
from pffbench.backends.registry import backend_class
from pffbench.case import FileCount, Options, Parameters
from pffbench.commands import to_install_analysis
from pffbench.geometry.box import Shape
from pffbench.geometry.cut import Grid
from pffbench.record.run_json import CaseEntry
from pffbench.text import abridged, one_line
from pffbench.workloads.arrays import Family
from pffbench.workloads.registry import workload

if TYPE_CHECKING:
    import jinja2

_WORKLOADS = ("datasets", "hyperslab")
#: Arrays of a list that are named.
_MOST_NAMED = 3
_SUFFIXES = {"hdf5": ".h5", "netcdf4": ".nc", "zarr": ".zarr"}


class NoCodeError(Exception):
    """No code can be given; the message gives the reason."""


@dataclass(frozen=True)
class Geometry:
    """The part of an array that a rank holds, for any number of ranks if possible."""

    #: Ranks along each axis, as Python.
    grid: tuple[str, ...]
    #: Shape of the part of a rank.
    block: Shape
    #: The whole array where it is not a multiple of the block in each axis.
    shape: Shape | None
    #: Arrays of each rank, or in total where all ranks write them together.
    count: int


def code_for(case: CaseEntry, ranks: int) -> str:
    """Return a program that writes and reads arrays like a case; of a list its first array.

    Parameters
    ----------
    case : CaseEntry
        The case.
    ranks : int
        Number of ranks with which it was measured.

    Raises
    ------
    NoCodeError
        There is no template for the case; the message gives the reason.
    """
    parameters, options = _typed(case)
    _refuse(parameters, options)
    group = parameters.files if isinstance(parameters.files, FileCount) else None
    if group is not None:  # the program of the same arrays in one file, on another communicator
        independent = {parameters.transfer, parameters.transfer_of_reads} == {"independent"}
        alone = group.count == ranks and independent
        group = None if alone else group
        parameters = replace(parameters, files="per_rank" if alone else "one")
    try:
        family = workload(parameters.workload).arrays(parameters, ranks).families[0]
        spec = family.specs(0)[0]
        geometry = _geometry(family)
    except (AssertionError, IndexError, ValueError):
        raise NoCodeError("the shape of the arrays is not in run.json") from None
    if group is not None and (geometry.shape or geometry.grid[:1] not in ((), ("comm.size",))):
        raise NoCodeError("the parts of the ranks of a group are no equal slabs")
    plugin = None if case.backend == "zarr" else plugin_filter(spec)
    if plugin is not None and case.backend == "netcdf4":
        raise NoCodeError(
            f"codec {spec.codec} is a filter that pffbench sets below netCDF4-python, which offers "
            "it only where netCDF-C was built with it"
        )
    leaves_unfilled = isinstance(options, NetCdf4Options) and options.fill is False
    told = {
        "plugin": plugin,
        "szip_block": SZIP_BLOCK,
        "shuffled": spec.shuffled_before,
        "p": family.parameters,
        "o": options,
        "hints": _hints(options),
        "spec": spec,
        "g": geometry,
        "group": group,
        "ndim": len(geometry.block),
        "steps": family.steps,
        "path": f"data{_SUFFIXES[case.backend]}",
        "fill": spec.fill == "library" and not leaves_unfilled,
        "chunks": spec.chunks if isinstance(spec.chunks, tuple) else None,
    }
    template = _environment().get_template(f"{case.backend}.py.j2")
    return template.render(told).strip() + "\n"


def notes_for(case: CaseEntry) -> list[str]:
    """Return where a program differs from the case that was measured, in sentences."""
    p, options = case.parameters, case.options
    found = []
    collective = options.get("collective_metadata")
    if collective is None:
        collective = p["settings"] == "matched"
    if case.backend == "hdf5" and p["files"] != "per_rank" and collective:
        found.append(
            "Measured with collective metadata, as netCDF has it. h5py offers no call for it, and "
            "with many datasets opening may be slower without."
        )
    listed = p.get("datasets")
    if isinstance(listed, list) and len(listed) > 1:
        first, *others = (one_line(kind["name"]) for kind in listed)
        found.append(
            f"These lines are for the array {first}. The measured times are of all arrays: "
            f"{abridged(others, _MOST_NAMED, ', ')} need the same calls on the same open file."
        )
    return found


def _hints(options: Options) -> str:
    """Return hints and striping as a dictionary of Python; empty without any."""
    asked = asked_hints(options) if isinstance(options, Hdf5FileOptions) else {}
    return repr(asked) if asked else ""


def _refuse(parameters: Parameters, options: Options) -> None:
    """Refuse cases that the libraries have no plain code for."""
    if parameters.workload not in _WORKLOADS:
        raise NoCodeError(f"there are no lines for the workload {parameters.workload}")
    if parameters.exchanges:
        raise NoCodeError("there are no lines for data that go through writer ranks")
    if parameters.arrays == "per_rank" and parameters.transfer == "collective":
        raise NoCodeError(
            "collective writing of arrays that belong to one rank each needs calls with empty "
            "selections, which h5py and netCDF4 skip; pffbench makes them below these libraries"
        )
    if isinstance(options, NetCdf4Options) and options.unlimited:
        raise NoCodeError(
            "unlimited dimensions slow down every access to netCDF files of many variables; "
            "netcdf4.dimensions: fixed is what to take, and has lines"
        )


def _typed(case: CaseEntry) -> tuple[Parameters, Options]:
    """Return parameters and options as values of checked types, since they become code."""
    backend = case.backend
    if backend not in _SUFFIXES:
        raise NoCodeError(f"there are no lines for the backend {backend}")
    kind = workload(str(case.parameters["workload"])).parameters_type
    # Which environment ran it is no parameter of the case.
    given = {key: value for key, value in case.parameters.items() if key != "environment"}
    try:
        parameters = msgspec.convert(given, kind)
        options = msgspec.convert(
            case.options,
            backend_class(backend).options_type,
            dec_hook=lambda kind, value: kind(value),  # the number in run.json is a size
        )
    except msgspec.ValidationError as error:
        raise NoCodeError(f"its entry in run.json is of another pffbench: {error}") from None
    return parameters, options


def _geometry(family: Family) -> Geometry:
    """Return blocks and the grid of ranks, without the axis of time steps."""
    if family.dealt_to is not None:
        return Geometry((), family.cut.whole, None, -(-family.count // family.ranks))
    if not family.shared:
        return Geometry((), family.first_part, None, family.count)
    if not isinstance(family.cut, Grid):
        raise NoCodeError("the array was cut by a decomposition map")
    shape, grid = family.cut.whole, family.cut.grid
    uneven = any(n % g for n, g in zip(family.cut.in_units, grid, strict=True))
    if uneven and family.cut.distribution == "balanced":
        raise NoCodeError("the array was cut in parts of different size (distribution: balanced)")
    block = family.cut.part(0).shape
    slab = math.prod(grid[1:]) == 1
    told = ("comm.size", *["1"] * (len(grid) - 1)) if slab else tuple(map(str, grid))
    return _cut(shape, told, block, family.count, family.ranks)


def _cut(shape: Shape, grid: tuple[str, ...], block: Shape, count: int, ranks: int) -> Geometry:
    numbers = [ranks if g == "comm.size" else int(g) for g in grid]
    even = all(g * b == n for g, b, n in zip(numbers, block, shape, strict=True))
    return Geometry(grid, block, None if even else shape, count)


def _environment() -> jinja2.Environment:
    try:
        import jinja2
    except ModuleNotFoundError:
        raise NoCodeError(
            f"they need jinja2, which is not installed: {to_install_analysis()}"
        ) from None
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pffbench_analysis.recommend"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # the output is Python of checked numbers, not HTML
    )
    environment.filters["tuple"] = _as_tuple
    return environment


def _as_tuple(values: tuple[Any, ...]) -> str:
    inner = ", ".join(map(str, values))
    return f"({inner},)" if len(values) == 1 else f"({inner})"
