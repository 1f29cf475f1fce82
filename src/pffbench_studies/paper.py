"""Configuration files of study 1, read as experiments that reproduce its program's runs."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

import yaml

from pffbench.backends.registry import installed
from pffbench.errors import UserError
from pffbench.experiment.convert import check_keys, shown

#: Keys of the study's files. Its program reads the first three; one file has the others too.
_KEYS = ("FILE_NAME", "NUMBER_DATASETS", "NUMBER_ELEMENTS", "CHUNK_SIZE", "MIN_DATA_VALUE")
_MOST_DATASETS = 1_000_000


def from_paper(data: dict[str, Any], where: str) -> dict[str, Any] | None:
    """Return the experiment of a configuration file: all formats, five trials, as the study had it.

    None of any other file. Datasets are created and written in turns through the interfaces that
    most programs use; a copy is read, and reads are printed. Zarr is the installed zarr-python, in
    format 2.

    Parameters
    ----------
    data : dict
        Contents of the file.
    where : str
        The file, for messages.

    Raises
    ------
    UserError
        A key is missing or unknown, or has a value that the study's program cannot use.
    """
    if data.keys().isdisjoint(_KEYS[1:3]):
        return None
    check_keys(data, _KEYS, f"{where}:")
    for key in _KEYS[:3]:
        if key not in data:
            raise UserError(f"{where}: {key} is missing (a configuration file of study 1 has it)")
    datasets, shape = data["NUMBER_DATASETS"], data["NUMBER_ELEMENTS"]
    if not (_is_count(datasets) and datasets <= _MOST_DATASETS):
        raise UserError(
            f"{where}: NUMBER_DATASETS is a number from 1 to {_MOST_DATASETS}, "
            f"not {shown(datasets)}"
        )
    if not (isinstance(shape, list) and 1 <= len(shape) <= 3 and all(map(_is_count, shape))):
        raise UserError(
            f"{where}: NUMBER_ELEMENTS is a list of one to three lengths, such as [128, 128], "
            f"not {shown(shape)}"
        )
    found: dict[str, Any] = yaml.safe_load((files(__package__) / "study-1.yaml").read_text("utf-8"))
    found["name"] = _name(str(data["FILE_NAME"]))
    found["question"] = (
        f"How long do create, open, write and read of one of {datasets} datasets of "
        f"{'x'.join(map(str, shape))} float32 take, done as in study 1?"
    )
    found["common"] |= {"datasets": datasets, "shape": shape}
    version_2 = (installed("zarr") or "").startswith("2.")
    zarr = {"backend": "zarr", "codec": "blosc", "zarr": {"format": 2}}
    found["cases"].append({"backend": "zarr2"} if version_2 else zarr)
    return found


def _is_count(value: Any) -> bool:
    return type(value) is int and 1 <= value < 2**63


def _name(file_name: str) -> str:
    """Derive an experiment's name, which also names a directory, from a file name."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", file_name).lstrip("._-")
    return plain[:64] or "study-1"
