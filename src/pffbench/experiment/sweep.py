"""Expansion of an experiment's entries into cases."""

from __future__ import annotations

import itertools
import mmap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import replace

from pffbench.backends.registry import backend_class, backend_names, is_backend
from pffbench.case import LEVELS, Case, Options, Parameters, itemsize, work_of
from pffbench.data import default_dtype, is_source, source_names
from pffbench.errors import UserError
from pffbench.experiment.convert import (
    allowed_instead,
    check_keys,
    converted,
    join,
    short,
    shown,
)
from pffbench.units import Size
from pffbench.workloads.registry import is_workload, workload, workload_names

if TYPE_CHECKING:
    from pffbench.backends.raw.layout import RawBackend

#: Maximum number of cases: a mistake in a sweep should not fill a night.
MOST_CASES = 10_000


def expand(entry: Mapping[str, Any], where: str, seen: set[str]) -> Iterator[Case]:
    """Yield the cases of an entry: every combination of the values that are lists.

    Parameters
    ----------
    entry : mapping
        A case's parameters, backend options under the backend's name, and ``zip``.
    where : str
        File and key of the entry, for messages.
    seen : set of str
        Names of the existing cases: these are not repeated, new ones are added.

    Raises
    ------
    UserError
        A key is unknown, a value is not allowed or the lists of a ``zip`` differ in length.
    """
    flat = _flatten(entry)
    _check_option_names(flat, where)
    axes = _axes(flat, _zips(entry, flat, where), where)
    codecs = frozenset(map(str, _values("codec", flat))) if "codec" in flat else frozenset()
    for steps in itertools.product(*(axis.steps for axis in axes)):
        point = {
            key: value
            for axis, step in zip(axes, steps, strict=True)
            for key, value in zip(axis.keys, step, strict=True)
        }
        case = _case(point, where, codecs)
        if case.id not in seen:  # sweeps of other backends' options give the same case again
            seen.add(case.id)
            yield case


def _flatten(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten the options of backends to keys such as ``zarr.format``, ``hdf5.hints.cb_nodes``."""
    flat: dict[str, Any] = {}
    for key, value in entry.items():
        if key == "zip":
            continue
        if not isinstance(value, Mapping) or not is_backend(key):
            flat[key] = value
            continue
        for option, chosen in value.items():
            if isinstance(chosen, Mapping) and _has_lists(chosen):
                flat.update({f"{key}.{option}.{name}": one for name, one in chosen.items()})
            else:
                flat[f"{key}.{option}"] = chosen
    return flat


def _has_lists(mapping: Mapping[str, Any]) -> bool:
    return any(isinstance(value, list) for value in mapping.values())


def _nested(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with mappings that were flattened, as ``hints.cb_nodes`` was."""
    found: dict[str, Any] = {}
    for key, value in options.items():
        option, dot, name = key.partition(".")
        if dot:
            found.setdefault(option, {})[name] = value
        else:
            found[key] = value
    return found


def _zips(entry: Mapping[str, Any], flat: Mapping[str, Any], where: str) -> list[list[str]]:
    """Return the groups of keys that advance together."""
    given = entry.get("zip", [])
    place = join(where, "zip")
    if not isinstance(given, list):
        raise UserError(f"{place}: name the keys as a list, such as [shape, chunks]")
    groups = given if given and all(isinstance(g, list) for g in given) else [given]
    for group in groups:
        for key in group:
            if not isinstance(key, str) or key not in flat:
                raise UserError(f"{place}: {shown(key)} is not a key of this entry")
        lengths = {k: len(_values(k, flat)) for k in group if not _is_constant(k, flat)}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{key} has {n}" for key, n in lengths.items())
            raise UserError(f"{place}: the lists must be equally long ({told})")
    return [group for group in groups if group]


def _values(key: str, flat: Mapping[str, Any]) -> list[Any]:
    """Return the values of a key, one after the other; a list may be one value, such as a shape."""
    value = flat[key]
    if not isinstance(value, list):
        return [value]
    item = _item_of(key, flat)
    if item and value and all(isinstance(v, item) for v in value):
        return [value]
    return value


def _is_constant(key: str, flat: Mapping[str, Any]) -> bool:
    """Whether a key has one value and no list of values; in a ``zip`` it holds for all steps."""
    values = _values(key, flat)
    return len(values) == 1 and values[0] is flat[key]


def _item_of(key: str, flat: Mapping[str, Any]) -> type | None:
    """Return the type of the items if a value of a key may be a list, else None."""
    owner, dot, option = key.partition(".")
    if dot:
        return _items(backend_class(owner).options_type).get(option)
    names = flat.get("workload")
    names = [one for one in (names if isinstance(names, list) else [names]) if isinstance(one, str)]
    kinds = (_items(workload(one).parameters_type) for one in names if is_workload(one))
    return next((items[key] for items in kinds if key in items), None)


@cache
def _items(kind: type[msgspec.Struct]) -> dict[str, type]:
    """Return the fields of a record that may be lists, each with the type of the items."""
    found = {field: _item_in(hint) for field, hint in get_type_hints(kind).items()}
    return {field: item for field, item in found.items() if item is not None}


def _item_in(hint: Any) -> type | None:
    """Return the type of the items of the list in a type; None if it is no list."""
    if get_origin(hint) is tuple:
        item = get_args(hint)[0]
        is_record = isinstance(item, type) and issubclass(item, msgspec.Struct)
        return Mapping if is_record else int
    return next((item for part in get_args(hint) if (item := _item_in(part))), None)


class _Axis(msgspec.Struct, frozen=True):
    """Keys that advance together, and their values: one tuple per step."""

    keys: tuple[str, ...]
    steps: list[tuple[Any, ...]]


def _axes(flat: Mapping[str, Any], zips: list[list[str]], where: str) -> list[_Axis]:
    """Return the axes of a sweep's product, in the order of the keys."""
    axes = []
    for key in flat:
        group = next((g for g in zips if key in g), [key])
        if key == group[0]:
            steps = max(len(_values(k, flat)) for k in group)
            lists = [_values(k, flat) * (steps if _is_constant(k, flat) else 1) for k in group]
            axes.append(_Axis(tuple(group), list(zip(*lists, strict=True))))
    if any(not axis.steps for axis in axes):
        raise UserError(f"{where}: an empty list sweeps nothing; give at least one value")
    count = prod(len(axis.steps) for axis in axes)
    if count > MOST_CASES:
        raise UserError(f"{where}: {count} combinations are too many (at most {MOST_CASES})")
    return axes


def _case(point: Mapping[str, Any], where: str, codecs: frozenset[str]) -> Case:
    """Return the case at a point of a sweep, which has these codecs: a value for each key."""
    plain = {key: value for key, value in point.items() if "." not in key}
    parameters = _without_idle(_parameters(plain, where), codecs)
    own = f"{parameters.backend}."
    options = {k.removeprefix(own): v for k, v in point.items() if k.startswith(own)}
    kind = _options_type(parameters.backend, options)
    return Case(parameters, converted(_nested(options), kind, join(where, parameters.backend)))


def _without_idle(p: Parameters, codecs: frozenset[str]) -> Parameters:
    """Return parameters without the keys of other codecs, which the codec of a case lacks.

    They are refused later where no codec of the sweep has them.
    """
    none, others = p.codec == "none", codecs - {p.codec}
    idle = {
        "level": none or (p.codec not in LEVELS and not others.isdisjoint(LEVELS)),
        "compressor": none or (p.codec != "blosc" and "blosc" in others),
        "shuffle": none or (p.codec == "szip" and bool(others - {"none"})),
    }
    return replace(p, **dict.fromkeys((key for key, drop in idle.items() if drop), None))


def _parameters(point: dict[str, Any], where: str) -> Parameters:
    if "backend" in point and point["backend"] is None:
        point["backend"] = "null"  # YAML reads the bare word null as nothing
    _known(point, "backend", is_backend, backend_names, where)
    name = _known(point, "workload", is_workload, workload_names, where)
    if "source" in point:
        _known(point, "source", is_source, source_names, where)
    kind = workload(name).parameters_type
    _check_parameters(point, kind.__struct_fields__, where)
    found = converted(point, kind, where)
    if found.dtype is not None or found.source == "file":
        return found
    return replace(found, dtype=default_dtype(found.source))


def _check_parameters(point: dict[str, Any], fields: tuple[str, ...], where: str) -> None:
    """Refuse keys that are no parameters of the workload."""
    if point.keys() <= {"workload", *fields}:
        return
    check_keys(point, (*fields, *backend_names(), "zip"), where, tag="workload")
    backend = next(key for key in point if is_backend(key))
    raise UserError(f"{join(where, backend)}: the options of a backend are a mapping")


def _known(
    point: Mapping[str, Any],
    key: str,
    is_known: Callable[[object], bool],
    names: Callable[[], tuple[str, ...]],
    where: str,
) -> str:
    """Return the name that a key has, one of those registered."""
    if key not in point:
        raise UserError(f"{where}: {key} is missing (allowed: {', '.join(names())})")
    value = point[key]
    if not isinstance(value, str) or not is_known(value):
        raise UserError(
            f"{join(where, key)}: unknown {key} {shown(value)} "
            f"({allowed_instead(short(str(value)), names())})"
        )
    return value


def _check_option_names(flat: Mapping[str, Any], where: str) -> None:
    """Refuse options that no backend has, also those of backends that no case uses."""
    for key in flat:
        owner, dot, option = key.partition(".")
        option = option.partition(".")[0]
        if dot and not is_backend(owner):
            raise UserError(f"{join(where, shown(key))}: unknown key")
        if dot:
            kind = _options_type(owner, (option,))
            check_keys({option: None}, kind.__struct_fields__, join(where, owner))


def _options_type(backend: str, names: Collection[str]) -> type[Options]:
    """Return the type of the options of a backend.

    Job steps of a run of several environments name those of the transfers that the run added.
    """
    kind = backend_class(backend)
    chunked: type[Options] = getattr(kind, "chunked_options", kind.options_type)
    return chunked if "call" in names else kind.options_type


def with_roofline(
    cases: Sequence[tuple[str, Case]], where: str, seen: set[str]
) -> list[tuple[str, Case]]:
    """Add the raw transfers that bound the cases, unless the experiment has some of its own.

    A file per process is bounded by POSIX calls, a shared file by MPI-IO with the same transfer.
    Those that are read from the device have a small header, which is read first, and calls as large
    as the formats' chunks: without them the kernel reads ahead less than for a format.

    Parameters
    ----------
    cases : sequence of (str, Case)
        The cases, each with the place that it comes from.
    where : str
        Place reported for the added cases.
    seen : set of str
        Names of the cases; those of added cases are added to it.
    """
    own = {(c.group, c.parameters.backend) for _, c in cases if not _formatted(c)}
    bounded: set[tuple[Parameters, int | None]] = set()
    complete: list[tuple[str, Case]] = []
    for place, case in cases:
        complete.append((place, case))
        if not _formatted(case):
            continue
        call = chunk_bytes(case.parameters) if case.parameters.cache == "dropped" else None
        alike = work_of(case.parameters, "transfer", "files", "arrays")
        if (work := (alike, call)) in bounded:
            continue
        bounded.add(work)
        raw = _roofline_of(alike, call)
        if (raw.group, raw.parameters.backend) not in own and raw.id not in seen:
            seen.add(raw.id)
            complete.append((where, raw))
    return complete


def _formatted(case: Case) -> bool:
    capabilities = backend_class(case.parameters.backend).capabilities
    return not capabilities.raw


def chunk_bytes(parameters: Parameters) -> int | None:
    """Return the bytes of a chunk; None where the experiment does not give its shape."""
    if not isinstance(parameters.chunks, tuple) or parameters.dtype is None:
        return None
    return prod(parameters.chunks) * itemsize(parameters.dtype)


def _roofline_of(work: Parameters, call: int | None) -> Case:
    backend = "posix" if work.alone else "mpiio"
    raw = replace(work, backend=backend)
    kind = cast("type[RawBackend[Any]]", backend_class(backend))
    if call is None or call < mmap.PAGESIZE:
        return Case(raw, kind.options_type(), roofline=True)
    options = converted({"call": Size(call)}, kind.chunked_options, "roofline")
    return Case(raw, options, roofline=True)
