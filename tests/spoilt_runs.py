"""Results directories and scratch directories that somebody has spoilt on purpose, drawn by number.

Every act is a function of the directory and a `random.Random`; the same number gives the same case.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path

import h5py
import numpy as np

from pffbench.storage.ownership import MARKER
from pffbench.storage.scratch import Scratch

#: What a run and a report of it consist of, and what is made beside them.
FILES = [
    "run.json", "samples.csv", "counters.csv", "ranks.h5", "run.lock", "run.lock.taking",
    "samples.csv.unfinished", "ranks.h5.damaged", "summary.csv", "summary.md", "fom.txt",
    "report.html", "plots", "published.md",
]  # fmt: skip
#: Raw files weigh most: all else follows from them.
RAW = FILES[:5]
NUMBERS = [
    float("nan"), float("inf"), -float("inf"), -1, -1.5, 0, 1e15, 10**15, 10**30, 10**400, 1e308,
    -(10**15), 2**63, 2**64, 5e-324, True, "NaN", "-inf", "1e999", "0x10", "1_0",
]  # fmt: skip
TEXTS = [
    "", "\x1b[31m\x07", "\x1b]0;x\x07", "\ud800", "\udcff", "\x00", "a\nb", "a\r\nb", "\u202e",
    "<script>x</script>", "[/]", "[link=x]y[/link]", "![x](http://y)", "| a |", "../../x", "/etc/x",
    "x" * 100_000, "ä😀", '"', "'", ",", "=1+1", "%s%n{0}", "\ufeff", "CON", "-x", "--help", "\t",
]  # fmt: skip


def nested(depth):
    """Return lists within each other, as text: no program makes them of objects so deep."""
    return "[" * depth + "]" * depth


#: What stands in JSON for text that Python would not write there.
RAW_JSON = {
    "@deep": nested(100_000), "@deeper": '{"a":' * 5000 + "1" + "}" * 5000, "@nan": "NaN",
    "@inf": "-Infinity", "@long": "9" * 10_000, "@exp": "1e400", "@twice": '{"a": 1, "a": 2}',
    "@bytes": '"\udcff\udc80"', "@half": '"\\ud800"', "@control": '"\x01"',
}  # fmt: skip


def value(draw):
    """Draw a value that stands nowhere in a good file."""
    kinds = [NUMBERS, TEXTS, [None, [], {}, [[]], [None], [{}], {"": {}}, {"x": [1, "a"]}],
             list(RAW_JSON)]  # fmt: skip
    return draw.choice(draw.choice(kinds))


def encoded(data):
    """Return data as JSON, with what it cannot say put in by hand."""
    text = json.dumps(data, allow_nan=True)
    for name, raw in RAW_JSON.items():
        text = text.replace(json.dumps(name), raw)
    return text.encode("utf-8", "surrogateescape")


# What a name stands for


def away(path):
    """Take away what has the name."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def fifo(path, draw, outside):
    os.mkfifo(path)


def link_to_a_file(path, draw, outside):
    path.symlink_to(outside / "precious")


def link_to_a_good_file(path, draw, outside):
    path.symlink_to(outside / "run" / path.name)


def link_to_a_directory(path, draw, outside):
    path.symlink_to(outside)


def link_to_nothing(path, draw, outside):
    path.symlink_to(outside / "absent")


def link_to_itself(path, draw, outside):
    path.symlink_to(path.name)


def link_to_a_device(path, draw, outside):
    path.symlink_to(draw.choice(["/dev/zero", "/dev/full", "/dev/tty", "/proc/self/mem"]))


def endpoint(path, draw, outside):
    here = os.getcwd()
    os.chdir(path.parent)  # the path of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def directory(path, draw, outside):
    path.mkdir()
    (path / "file").write_text("x")


def sparse_giant(path, draw, outside):
    with path.open("wb") as file:
        file.write(draw.choice([b"", b"{", b"case,repetition\n", b"\x89HDF\r\n\x1a\n"]))
        file.truncate(2 ** draw.choice([30, 36, 42]))


def empty(path, draw, outside):
    path.write_bytes(b"")


def noise(path, draw, outside):
    path.write_bytes(draw.choice([b"\0" * 500, b"\xff\xfe", draw.randbytes(3000), b"[" * 200_000]))


def no_rights(path, draw, outside):
    path.write_bytes(b"{}")
    path.chmod(0)


STAND_INS = (
    fifo, link_to_a_file, link_to_a_good_file, link_to_a_directory, link_to_nothing, link_to_itself,
    link_to_a_device, endpoint, directory, sparse_giant, empty, noise, no_rights,
)  # fmt: skip


def stand_in(run, draw, outside):
    """Put something else in the place of a file."""
    path = run / draw.choice(draw.choice([RAW, FILES]))
    make = draw.choice(STAND_INS)
    away(path)
    make(path, draw, outside)
    return f"{path.name}: {make.__name__}"


# What a file holds


def content(path):
    """Return what a file holds that nothing has been put in the place of."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > 10**7:
        raise OSError("spoilt already")
    return path.read_bytes()


def spoil_record(run, draw, outside):
    """Change values of `run.json`, take keys away or put some in."""
    path = run / "run.json"
    record = json.loads(content(path))
    told = []
    for _ in range(draw.randint(1, 3)):
        places = list(_places(record))
        *above, key = draw.choice(places)
        target = record
        for step in above:
            target = target[step]
        how = draw.random()
        if how < 0.75:
            target[key] = value(draw)
        elif how < 0.9 and isinstance(target, dict):
            target[draw.choice(TEXTS)] = value(draw)
        else:
            del target[key]
        told.append(".".join(map(str, [*above, key]))[:80])
    path.write_bytes(encoded(record))
    return f"run.json: {', '.join(told)}"


def _places(data, path=()):
    pairs = data.items() if isinstance(data, dict) else enumerate(data)
    for key, item in list(pairs):
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from _places(item, (*path, key))


def spoil_table(run, draw, outside):
    """Change cells of a table, double rows, tear lines, put in bytes."""
    name = draw.choice(["samples.csv", "samples.csv", "counters.csv"])
    path = run / name
    lines = content(path).splitlines(keepends=True)
    told = []
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(lines))
        how = draw.choice(["cell"] * 3 + ["double", "swap", "cut", "bytes", "quote", "long"])
        cells = lines[at].rstrip(b"\n").split(b",")
        if how == "cell":
            new = str(draw.choice(draw.choice([NUMBERS, TEXTS])))
            cells[draw.randrange(len(cells))] = new.encode("utf-8", "surrogatepass")
            lines[at] = b",".join(cells) + b"\n"
        elif how == "double":
            lines.insert(draw.randrange(len(lines) + 1), lines[at])
        elif how == "swap":
            other = draw.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        elif how == "cut":
            lines[at] = lines[at][: draw.randrange(len(lines[at]) + 1)]
        elif how == "bytes":
            place = draw.randrange(len(lines[at]))
            lines[at] = lines[at][:place] + draw.choice([b"\xff", b"\0", b"\r", b"\n"]) + lines[at]
        elif how == "quote":
            lines[at] = b'"' + lines[at]
        else:
            lines[at] = lines[at].rstrip(b"\n") + b"x" * draw.choice([1000, 10**6]) + b"\n"
        told.append(how)
    path.write_bytes(b"".join(lines))
    return f"{name}: {', '.join(told)}"


def spoil_bytes(run, draw, outside):
    """Change bytes of any raw file."""
    path = run / draw.choice(["run.json", "samples.csv", "counters.csv", "ranks.h5"])
    data = bytearray(content(path))
    for _ in range(draw.choice([1, 3, 20])):
        data[draw.randrange(min(len(data), draw.choice([200, 10**6])))] = draw.randrange(256)
    path.write_bytes(data)
    return f"{path.name}: bytes"


def spoil_ranks(run, draw, outside):
    """Make `ranks.h5` say what is not so, or lead to other files."""
    path = run / "ranks.h5"
    with h5py.File(path, "r+") as file:
        case = draw.choice([name for name in file if name != "host"])
        group = file[case]
        name = draw.choice(["own", "synced", "bytes", "peak_memory", "repetition"])
        shape, kind = group[name].shape, group[name].dtype
        how = draw.choice([
            "giant", "numbers", "external", "virtual", "link", "soft", "gone", "kind", "axes",
            "phases", "repetitions", "host", "rows",
        ])  # fmt: skip
        if how == "numbers":
            group["own"][...] = draw.choice([np.nan, np.inf, -np.inf, -1.0, 1e300, 5e-324])
        elif how == "phases":
            phases = draw.choice([["x"], ["write"] * 11, [], ["\x1b[1m"] * 11, ["x" * 3000] * 11])
            group.attrs["phases"] = np.array(phases, dtype=object) if phases else np.zeros(0)
        elif how == "repetitions":
            group["repetition"][...] = draw.choice([0, -1, 2**62, -(2**63)])
        elif how == "host":
            del file["host"]
            texts = ["\x1b[1m", "x" * 5000, "ä"]
            file.create_dataset("host", data=texts, dtype=h5py.string_dtype())
        else:
            del group[name]
            if how == "giant":
                huge = (10**15 // 22, *shape[1:])
                group.create_dataset(name, huge, kind, chunks=(1, *shape[1:]))
            elif how == "external":
                files = [(str(outside / draw.choice(["precious", "fifo"])), 0, 10**6)]
                group.create_dataset(name, shape, kind, external=files)
            elif how == "virtual":
                layout = h5py.VirtualLayout(shape, kind)
                layout[...] = h5py.VirtualSource(str(outside / "fifo"), "x", shape=shape)
                group.create_virtual_dataset(name, layout)
            elif how == "link":
                group[name] = h5py.ExternalLink(str(outside / "fifo"), "x")
            elif how == "soft":
                group[name] = h5py.SoftLink(f"/{case}/{name}")
            elif how == "kind":
                group.create_dataset(name, data=np.full(shape, b"x", "S3"))
            elif how == "axes":
                group.create_dataset(name, data=np.zeros(7, kind))
            elif how == "rows":
                group.create_dataset(name, (shape[0] + 3, *shape[1:]), kind)
    return f"ranks.h5: {how} {name}"


def spoil_lock(run, draw, outside):
    """Leave a lock of nonsense."""
    (run / "run.lock").unlink(missing_ok=True)
    facts = {"host": "a", "user": "b", "pid": 1, "date": "2026-01-01T00:00:00+00:00", "job": "",
             "boot": "x", "started": "1", "namespace": "", "restart": "0"}  # fmt: skip
    for _ in range(draw.randint(1, 3)):
        facts[draw.choice(list(facts))] = value(draw)
    (run / "run.lock").write_bytes(encoded(facts))
    return "run.lock: facts"


ACTS = (*[stand_in] * 4, spoil_record, spoil_record, spoil_table, spoil_bytes, spoil_ranks,
        spoil_lock)  # fmt: skip


def spoil(run, draw, outside):
    """Spoil a run in up to three ways; return them in words."""
    told = []
    for _ in range(draw.choice([1, 1, 2, 3])):
        act = draw.choice(ACTS)
        if act is spoil_ranks and any(one.startswith("ranks.h5") for one in told):
            continue  # opening a damaged file here could end the tests
        try:
            told.append(act(run, draw, outside))
        except (OSError, ValueError, KeyError, IndexError, TypeError, RuntimeError, RecursionError):
            told.append(f"({act.__name__}: nothing, after what went before)")
    return "; ".join(told)


# Scratch


def spoil_scratch(parent, draw, outside):
    """Leave directories of killed runs in a scratch parent, with markers of any kind."""
    told = []
    for number in range(draw.randint(1, 3)):
        place = Path(Scratch.create(str(parent), f"run-{number}").directory)
        (place / "file").write_text("x")
        (place / "link").symlink_to(outside / "precious")
        marker = place / MARKER
        facts = json.loads(marker.read_text()) | {"started": "1", "kept_for": ""}
        if draw.random() < 0.4:
            away(marker)
            make = draw.choice(STAND_INS)
            make(marker, draw, outside)
            told.append(make.__name__)
            continue
        for _ in range(draw.randint(0, 3)):
            facts[draw.choice(list(facts))] = value(draw)
        if draw.random() < 0.2:
            facts["kept_for"] = str(draw.choice([outside / "run", "/dev", outside / "fifo"]))
        marker.write_bytes(encoded(facts))
        told.append("facts")
    return f"markers: {', '.join(told)}"
