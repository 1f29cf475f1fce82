"""Expanding the entries of an experiment into cases."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from pffbench.backends.registry import backend_class, backend_names
from pffbench.case import Case, Options, Parameters
from pffbench.errors import UserError
from pffbench.experiment.convert import check_keys, join, shown, to_struct
from pffbench.workloads.registry import workload, workload_names

#: No experiment has more cases: a slip in a sweep should not fill a night.
MOST_CASES = 100_000

#: Parameters whose one value is itself a list; a list of lists sweeps them.
_LISTS = frozenset(
    {
        "shape", "shape_per_rank", "chunks", "read_start", "read_shape", "shards", "box",
        "cut_unit", "repack_chunks",
    }
)  # fmt: skip


def expand(entry: Mapping[str, Any], where: str) -> Iterator[Case]:
    """Yield the cases of an entry: every combination of the values that are lists.

    Parameters
    ----------
    entry : mapping
        A case's parameters, backend options under the backend's name, and ``zip``.
    where : str
        File and key of the entry, for messages.

    Raises
    ------
    UserError
        A key is unknown, a value is not allowed or the lists of a ``zip`` differ in length.
    """
    flat = _flatten(entry, where)
    seen: set[str] = set()
    for point in _points(flat, _zips(entry, flat, where), where):
        case = _case(point, where)
        if case.id not in seen:  # sweeps of other backends' options give the same case again
            seen.add(case.id)
            yield case


def _flatten(entry: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Bring the options of backends to the top, as ``zarr.format``."""
    flat: dict[str, Any] = {}
    for key, value in entry.items():
        if key == "zip":
            continue
        if key not in backend_names():
            flat[key] = value
            continue
        if not isinstance(value, Mapping):
            raise UserError(f"{join(where, key)}: the options of a backend are a mapping")
        flat.update({f"{key}.{option}": chosen for option, chosen in value.items()})
    return flat


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
        lengths = {key: len(_values(key, flat[key])) for key in group}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{key} has {n}" for key, n in lengths.items())
            raise UserError(f"{place}: the lists must be equally long ({told})")
    return [group for group in groups if group]


def _values(key: str, value: Any) -> list[Any]:
    """Return the values that a key takes, one after the other."""
    if not isinstance(value, list):
        return [value]
    if key.rsplit(".", 1)[-1] in _LISTS and all(isinstance(v, int) for v in value):
        return [value]
    return value


def _points(flat: Mapping[str, Any], zips: list[list[str]], where: str) -> Iterator[dict[str, Any]]:
    """Yield one plain mapping for each point of the sweep, in the order of the keys."""
    zipped = {key for group in zips for key in group}
    axes: list[list[dict[str, Any]]] = []
    for key, value in flat.items():
        if key not in zipped:
            axes.append([{key: v} for v in _values(key, value)])
            continue
        group = next((g for g in zips if g[0] == key), None)
        if group is not None:
            lists = [_values(k, flat[k]) for k in group]
            axes.append(
                [dict(zip(group, values, strict=True)) for values in zip(*lists, strict=True)]
            )
    if any(not axis for axis in axes):
        raise UserError(f"{where}: an empty list sweeps nothing; give at least one value")
    count = 1
    for axis in axes:
        count *= len(axis)
    if count > MOST_CASES:
        raise UserError(f"{where}: {count} combinations are too many (at most {MOST_CASES})")
    for combination in itertools.product(*axes):
        yield {key: value for part in combination for key, value in part.items()}


def _case(point: dict[str, Any], where: str) -> Case:
    if "backend" in point and point["backend"] is None:
        point = {**point, "backend": "null"}  # YAML reads the bare word null as nothing
    backend = _known(point, "backend", backend_names(), where)
    name = _known(point, "workload", workload_names(), where)
    plain = {key: value for key, value in point.items() if "." not in key}
    fields = workload(name).parameters_type
    check_keys(plain, (*fields.__struct_fields__, *backend_names(), "zip"), where, tag="workload")
    parameters = to_struct(plain, fields, where)
    return Case(parameters, _options(backend, point, where))


def _known(point: Mapping[str, Any], key: str, names: tuple[str, ...], where: str) -> str:
    if key not in point:
        raise UserError(f"{where}: {key} is missing (allowed: {', '.join(names)})")
    if point[key] not in names:
        raise UserError(
            f"{join(where, key)}: unknown {key} {shown(point[key])} (allowed: {', '.join(names)})"
        )
    return str(point[key])


def _options(backend: str, point: Mapping[str, Any], where: str) -> Options:
    """Return the options of the case's backend; check the spelling of the others' too."""
    for key in point:
        owner, dot, option = key.partition(".")
        if dot and owner not in backend_names():
            raise UserError(f"{join(where, shown(key))}: unknown key")
        if dot:
            kind = backend_class(owner).options_type
            check_keys({option: None}, kind.__struct_fields__, join(where, owner))
    prefix = f"{backend}."
    mine = {k.removeprefix(prefix): v for k, v in point.items() if k.startswith(prefix)}
    return to_struct(mine, backend_class(backend).options_type, join(where, backend))


def with_roofline(cases: Sequence[Case]) -> list[Case]:
    """Add the raw transfers that bound the cases, unless the experiment has some itself.

    A file per process is bounded by POSIX calls, a shared file by MPI-IO with the same transfer.
    """
    own = {(c.group, c.parameters.backend) for c in cases if not _formatted(c)}
    present = {case.id for case in cases}
    complete: list[Case] = []
    for case in cases:
        complete.append(case)
        if not _formatted(case):
            continue
        raw = _roofline_of(case.parameters)
        if (raw.group, raw.parameters.backend) not in own and raw.id not in present:
            present.add(raw.id)
            complete.append(raw)
    return complete


def _formatted(case: Case) -> bool:
    capabilities = backend_class(case.parameters.backend).capabilities
    return capabilities.formatted


def _roofline_of(p: Parameters) -> Case:
    backend = "posix" if p.layout == "file_per_process" else "mpiio"
    formats_only = p.ways - {"backend", "transfer"}
    usual = {f.name: f.default for f in msgspec.structs.fields(p) if f.name in formats_only}
    raw = msgspec.structs.replace(p, **usual, backend=backend)
    return Case(raw, backend_class(backend).options_type(), roofline=True)
