"""The experiments that the package has, by name: ``question:writers`` is questions/writers.yaml.

They are data of the package. In a checkout `configs` here is a link to the folder at its top, and a
wheel has the files.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

FOLDER = Path(__file__).parents[1] / "configs"
#: Folders of experiments, by the word before the colon of a name; those at the top have none. In
#: the order in which they are listed.
FOLDERS = {
    "question": "questions",
    "": "",
    "standard": "standard",
    "cookbook": "cookbook",
    "shape": "shapes",
    "issue": "issues",
    "study": "studies",
    "paper": "paper",
}
#: A line at the head of an experiment, which the next lines may go on with.
_LINE = re.compile(r"^# (\w+): +(.*(?:\n#  +\S.*)*)", re.MULTILINE)


class ShippedExperiment(msgspec.Struct, frozen=True):
    """An experiment of the package."""

    #: The name that `pffbench run` takes.
    name: str
    #: The question that it answers, in a sentence.
    question: str
    #: Ranks and time.
    takes: str


def shipped_files() -> dict[str, Path]:
    """Return the files of the package's experiments by their names, in the order of a list."""
    found = {}
    for kind, folder in FOLDERS.items():
        place = FOLDER / folder
        for path in sorted(place.rglob("*.yaml") if folder else place.glob("*.yaml")):
            name = path.relative_to(place).with_suffix("").as_posix()
            found[f"{kind}:{name}" if kind else name] = path
    return found


def shipped_file(name: str) -> Path | None:
    """Return the file of an experiment of the package; None where none has this name.

    A file of the user's with this name goes before it.
    """
    kind, _, word = name.rpartition(":")
    if kind not in FOLDERS or ".." in word:
        return None
    path = FOLDER / FOLDERS[kind] / f"{word}.yaml"
    try:
        return path if path.is_file() and not Path(name).exists() else None
    except OSError:  # such as a name too long for a file
        return None


def shipped_experiments() -> list[ShippedExperiment]:
    """Return the package's experiments with what each says at its head."""
    return [
        ShippedExperiment(name, said.get("Question", ""), said.get("Takes", ""))
        for name, path in shipped_files().items()
        for said in [head_of(path.read_text("utf-8"))]
    ]


def head_of(text: str) -> dict[str, str]:
    """Return what the first lines of an experiment say: ``Question``, ``Takes`` and others."""
    head = re.split(r"^[^#]", text, maxsplit=1, flags=re.MULTILINE)[0]
    return {word: re.sub(r"\n#\s+", " ", said) for word, said in _LINE.findall(head)}


def similar_names(name: str) -> str:
    """Return the nearest names, as the end of a sentence that says that there is no such name."""
    from difflib import get_close_matches  # for errors only

    known = list(shipped_files())
    by_word = {one.rpartition(":")[2]: one for one in reversed(known)}
    near = get_close_matches(name, known)
    near += [by_word[word] for word in get_close_matches(name.rpartition(":")[2], by_word)]
    told = f"; the nearest: {', '.join(dict.fromkeys(near))}" if near else ""
    return f"{told}; pffbench run --list names all"
