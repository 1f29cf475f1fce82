"""Configuration files of study 1, read as experiments that reproduce its program's runs."""

from __future__ import annotations

from importlib.resources import files
from typing import Annotated, Any

import msgspec
import yaml

from pffbench.case import Count, Extent
from pffbench.experiment.convert import to_struct
from pffbench.text import plain_name


class PaperFile(msgspec.Struct, frozen=True):
    """A configuration file of the study; its program ignores the last two keys."""

    FILE_NAME: Any
    NUMBER_DATASETS: Count
    NUMBER_ELEMENTS: Annotated[tuple[Extent, ...], msgspec.Meta(min_length=1, max_length=3)]
    CHUNK_SIZE: Any = None
    MIN_DATA_VALUE: Any = None


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
    if data.keys().isdisjoint(("NUMBER_DATASETS", "NUMBER_ELEMENTS")):
        return None
    file = to_struct(data, PaperFile, f"{where}:")
    datasets, shape = file.NUMBER_DATASETS, file.NUMBER_ELEMENTS
    found: dict[str, Any] = yaml.safe_load((files(__package__) / "study-1.yaml").read_text("utf-8"))
    found["name"] = plain_name(str(file.FILE_NAME)) or "study-1"
    found["question"] = (
        f"How long do create, open, write and read of one of {datasets} datasets of "
        f"{'x'.join(map(str, shape))} float32 take, done as in study 1?"
    )
    found["common"] |= {"datasets": datasets, "shape": list(shape)}
    # zarr-python 2 compressed with Blosc by itself.
    found["cases"].append({"backend": "zarr", "codec": "blosc", "zarr": {"format": 2}})
    return found
