"""Reading of an experiment: YAML, overrides of the command line, expansion into cases."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec.structs import replace

from pffbench.backends.registry import is_backend
from pffbench.case import Case, Parameters
from pffbench.errors import UserError
from pffbench.experiment.convert import allowed_instead, join, short, shown, to_struct
from pffbench.experiment.schema import MOST_TRACED, Experiment, study_names, this_environment
from pffbench.experiment.shipped import shipped_file, similar_names
from pffbench.experiment.sweep import MOST_CASES, expand, with_roofline
from pffbench.plugins import load, plugins
from pffbench.regular_files import LARGEST_RECORD, read_regular, similar_path
from pffbench.text import counted, escaped, has_controls, one_line
from pffbench.workloads.registry import workload, workload_names

#: Experiments of the package that take the time that is left to a job.
BUILT_IN = ("default", "defaults", "quick", "nightly")
#: Other packages read files of another form through entry points of this group: functions that take
#: the data of a file and its name, and return those of the experiment, or None.
FORMS_GROUP = "pffbench.experiments"
#: The file of a results directory that has the experiment of the run.
RECORD = "run.json"
#: Maximum bytes: an experiment is a page of text; a larger file is the wrong one.
LARGEST = 2**20
#: Maximum number of values.
MOST_VALUES = 100_000


def parse(text: str, name: str) -> Any:
    """Return the data of a YAML text.

    Parameters
    ----------
    text : str
        The text.
    name : str
        Its source, for messages.

    Raises
    ------
    UserError
        It is not YAML, is too large, or has a key twice.
    """
    if len(text) > LARGEST:
        raise UserError(f"{name}: larger than 1 MiB, which no experiment is")
    try:
        data = yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = "" if mark is None else f" line {mark.line + 1}:"
        raise UserError(f"{name}:{place} not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        why = " ".join(str(error).split())
        raise UserError(f"{name}: not valid YAML: {why}") from None
    _refuse_too_many(data, name)
    return data


class _Loader(yaml.SafeLoader):
    """The safe loader, which also refuses keys given twice, merge keys and control characters."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            why = ""
            if not isinstance(key, yaml.ScalarNode):
                why = "a key must be text"
            elif key.value in seen:
                why = f"the key {key.value!r} is given twice"
            elif key.tag == "tag:yaml.org,2002:merge":
                why = "merge keys are not allowed"
            if why:
                raise yaml.MarkedYAMLError(None, None, why, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        value = super().construct_scalar(node)
        if has_controls(value):
            why = "a text holds control characters"
            raise yaml.MarkedYAMLError(None, None, why, node.start_mark)
        return value


def _refuse_too_many(data: Any, name: str) -> None:
    """Refuse more values than an experiment has: a page of aliases can stand for any number."""
    left, count = [data], 0
    while left:
        value = left.pop()
        count += 1
        if count > MOST_VALUES:
            raise UserError(f"{name}: more than {MOST_VALUES} values, which no experiment has")
        left += (
            value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
        )


class LoadedExperiment(msgspec.Struct, frozen=True):
    """An experiment and its cases, before the check for a number of ranks."""

    #: The file, for messages.
    path: str
    #: Its contents.
    experiment: Experiment
    #: The cases in the order of the file, each with its place in the file.
    cases: tuple[tuple[str, Case], ...]
    #: Options of backends that none of their cases has: each with its place and a reason.
    idle: tuple[str, ...] = ()
    #: Number of ranks of the run that it repeats.
    ranks: int | None = None

    def compare_ranks(self, ranks: int) -> Iterator[str]:
        """Yield a remark if the run that is repeated had another number of ranks."""
        if self.ranks not in (None, ranks):
            yield f"{self.path} is of {counted(self.ranks or 0, 'rank')}, and this run of {ranks}"


class _Record(msgspec.Struct):
    """What is read of the record of a run that is repeated."""

    experiment: dict[str, Any]
    ranks: int


def load_experiment(path: str | None, overrides: Sequence[str] = ()) -> LoadedExperiment:
    """Read an experiment file and expand it.

    Parameters
    ----------
    path : str, optional
        The YAML file, the results directory of a run to repeat, or the name of one of the package;
        the first built-in one when not given.
    overrides : sequence of str
        ``key=value`` pairs; a key of the experiment or of its cases, values in YAML.

    Raises
    ------
    UserError
        The file cannot be read, or a key or value in it is unknown or not allowed.
    """
    ranks = None
    if path is not None and is_results(path):
        record = _recorded(path)
        name, data, ranks = path, record.experiment, record.ranks
    else:
        name, text = _text(path)
        data = _in_our_form(_parsed(text, name), name)
    for override in overrides:
        _override(data, override)
    return replace(from_data(data, name), ranks=ranks)


def is_folder(path: str) -> bool:
    """Return whether a path is a folder of experiments."""
    return Path(path).is_dir() and not is_results(path)


def is_results(path: str) -> bool:
    try:
        return Path(path, RECORD).exists()
    except OSError:  # such as a name too long for a file
        return False


def _recorded(directory: str) -> _Record:
    """Return what the record of a run says of its experiment."""
    file = Path(directory, RECORD)
    try:
        record = msgspec.json.decode(read_regular(file, LARGEST_RECORD), type=_Record)
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{file}: not the record of a run: {one_line(str(error), 200)}") from None
    _refuse_too_many(record.experiment, str(file))
    return replace(record, experiment=escaped(record.experiment))


def _in_our_form(data: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the data of an experiment, also of a file of another form."""
    if "cases" in data:  # to look for other forms would search the installed packages
        return data
    others = (load(place)(data, name) for place in plugins(FORMS_GROUP).values())
    return next((other for other in others if other is not None), data)


def experiment_files(folder: str) -> list[str]:
    """Return the experiments of a folder in the order of names, in which they run.

    Raises
    ------
    UserError
        There is none, or the folder cannot be read.
    """
    try:
        found = sorted(p for p in Path(folder).iterdir() if p.suffix in (".yaml", ".yml"))
    except OSError as error:
        raise UserError(f"{folder}: cannot be read: {error.strerror}") from None
    if not found:
        raise UserError(f"{folder}: no experiment (*.yaml) is in this folder")
    return [str(path) for path in found]


def from_data(data: dict[str, Any], name: str) -> LoadedExperiment:
    """Build an experiment from plain data, such as a results directory stores.

    Raises
    ------
    UserError
        A key or value is unknown or not allowed.
    """
    experiment = to_struct(data, Experiment, f"{name}:")
    _check_study(experiment.study, name)
    _check_environments(experiment, name)
    _check_counters(experiment, name)
    _check_unsafe(experiment, name)
    if experiment.hang_timeout is not None and not experiment.hang_timeout:
        raise UserError(f"{name}: hang_timeout: must be above 0")
    experiment = _with_starts(experiment, name)
    cases: list[tuple[str, Case]] = []
    idle: list[str] = []
    seen: set[str] = set()
    for number, entry in enumerate(experiment.cases):
        where = f"{name}: cases[{number}]"
        merged = _scaled(_merged(experiment.common, entry), experiment.scale)
        idle += _idle(entry, _backends(merged), where)
        cases += [(where, case) for case in expand(merged, where, seen)]
        if len(cases) > MOST_CASES:
            raise UserError(f"{where}: more than {MOST_CASES} cases in all")
    if experiment.roofline:
        cases = with_roofline(cases, f"{name}: roofline", seen)
    used = {case.parameters.backend for _, case in cases}
    idle += _idle(experiment.common, used, f"{name}: common")
    return LoadedExperiment(name, experiment, tuple(cases), tuple(idle))


def _with_starts(experiment: Experiment, name: str) -> Experiment:
    """Return an experiment with `starts` as a run of a single environment, this one."""
    if experiment.starts is None:
        return experiment
    if experiment.environments:
        raise UserError(
            f"{name}: starts: the ranks of environments start anew in each round: set repetitions "
            "in its place"
        )
    return replace(experiment, repetitions=experiment.starts, environments=(this_environment(),))


def _backends(entry: dict[str, Any]) -> set[str]:
    """Return the backends that an entry names; one or a list."""
    given = entry.get("backend")
    names = given if isinstance(given, list) else [given]
    return {"null" if name is None else str(name) for name in names}  # as YAML reads the word


def _idle(entry: dict[str, Any], used: set[str], where: str) -> Iterator[str]:
    """Yield the options of backends that are not used."""
    for key, options in entry.items():
        # Options are a mapping; to look every key up would search the installed packages.
        if isinstance(options, dict) and key not in used and is_backend(key):
            yield f"{where}.{key}: no case of it has backend {key}, so it has no effect"


def _check_study(study: str | None, name: str) -> None:
    """Reject a study that no installed package has numbers of."""
    if study is not None and study not in (known := study_names()):
        allowed = ", ".join(known) or "none is installed"
        raise UserError(f"{name}: study: {shown(study)} is not allowed (allowed: {allowed})")


def _check_environments(experiment: Experiment, name: str) -> None:
    """Reject a name that two environments have, and one that is started in no or several ways."""
    seen: set[str] = set()
    for number, environment in enumerate(experiment.environments):
        where = f"{name}: environments[{number}]"
        if environment.name in seen:
            raise UserError(f"{where}.name: {environment.name} is the name of another one too")
        seen.add(environment.name)
        ways = {key: getattr(environment, key) for key in ("python", "activate", "command")}
        if sum(bool(value) for value in ways.values()) != 1:
            raise UserError(f"{where}: give one of {', '.join(ways)}")
        if environment.command:
            _check_words(environment.command, f"{where}.command")
        if environment.activate and not _may_be_script(environment.activate):
            raise UserError(f"{where}.activate: {environment.activate}: it is not a regular file")
    if experiment.launcher is not None:
        _check_words(experiment.launcher, f"{name}: launcher")
    if experiment.launcher is not None and not (experiment.environments or experiment.starts):
        raise UserError(f"{name}: launcher: only a run with environments or starts has one")


def _check_counters(experiment: Experiment, name: str) -> None:
    """Reject so many repetitions of traced cases that their times would be judged."""
    times = experiment.repetitions
    if experiment.counters == "calls" and (times == "auto" or times > MOST_TRACED):
        raise UserError(
            f"{name}: repetitions: {times}: with counters: calls times mean nothing, and counts "
            f"need one repetition (allowed: 1 to {MOST_TRACED}; --set repetitions=1)"
        )


def _check_unsafe(experiment: Experiment, name: str) -> None:
    """Reject a run of losses that starts its ranks again, or counts their system calls."""
    others = {
        "environments": experiment.environments,
        "starts": experiment.starts,
        "counters: calls": experiment.counters == "calls",
    }
    if experiment.unsafe and (given := [key for key, value in others.items() if value]):
        raise UserError(f"{name}: unsafe cannot be used with {given[0]}; leave one of them out")


def _check_words(text: str, where: str) -> None:
    """Reject a command that a shell could not read, or without a program."""
    try:
        if shlex.split(text):
            return
        why = "it names no program"
    except ValueError as error:
        why = f"{one_line(text)}: {str(error).lower()}"
    raise UserError(f"{where}: {why}")


def _may_be_script(path: str) -> bool:
    """Return whether a script may be there; where it is sourced it may be on another machine."""
    there = Path(path).expanduser()
    return there.is_file() or not there.exists()


def _merged(common: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    """Merge an entry's keys over the common ones; backend options are merged key by key."""
    merged = {**common, **entry}
    for key, value in common.items():
        if isinstance(value, dict) and isinstance(entry.get(key), dict):
            merged[key] = {**value, **entry[key]}
    return merged


#: Keys whose first axis `scale` multiplies.
_SCALED = frozenset({"shape", "shape_per_rank"})


def _scaled(value: Any, scale: float, is_shape: bool = False) -> Any:
    """Return keys of an entry with the first axis of all shapes in them multiplied by a number."""
    if scale == 1:
        return value
    if isinstance(value, dict):
        return {key: _scaled(one, scale, key in _SCALED) for key, one in value.items()}
    if not isinstance(value, list):
        return value
    if is_shape and value and all(isinstance(one, int) for one in value):
        return [math.ceil(value[0] * scale), *value[1:]]
    return [_scaled(one, scale, is_shape) for one in value]


def is_built_in(path: str | None) -> bool:
    """Return whether an experiment takes a job's time; a file of its name goes before it."""
    return path is None or (path in BUILT_IN and not Path(path).exists())


def _text(path: str | None) -> tuple[str, str]:
    path = path or BUILT_IN[0]
    if shipped := shipped_file(path):
        return f"built-in {path}", shipped.read_text("utf-8")
    try:
        return path, read_regular(path, LARGEST).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path}: not a text file") from None
    except FileNotFoundError as error:
        if not Path(path).suffix and "/" not in path:
            why = "no file and no experiment of pffbench has this name"
            raise UserError(f"{one_line(path)}: {why}{similar_names(path)}") from None
        hint = one_line(similar_path(path))
        raise UserError(f"{path}: cannot be read: {error.strerror}{hint}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None


def _parsed(text: str, name: str) -> dict[str, Any]:
    data = parse(text, name)
    if not isinstance(data, dict):
        raise UserError(f"{name}: an experiment is a mapping with at least name and cases")
    return data


def _override(data: dict[str, Any], override: str) -> None:
    """Set a key of the experiment, or one of all its cases."""
    key, equals, text = override.partition("=")
    place = f"--set {short(override)}"
    if not equals or not key:
        raise UserError(f"{place}: write it as key=value, such as repetitions=3")
    value = parse(text, place)
    if key in Experiment.__struct_fields__:
        data[key] = value
        return
    if key.split(".")[0] not in _case_keys():
        names = [*Experiment.__struct_fields__, *sorted(_case_keys())]
        raise UserError(f"{place}: unknown key {shown(key)} ({allowed_instead(key, names)})")
    cases = data.get("cases")
    for entry in cases if isinstance(cases, list) else []:
        if isinstance(entry, dict):
            _put(entry, key.split("."), value)


def _put(entry: dict[str, Any], path: list[str], value: Any) -> None:
    for part in path[:-1]:
        below = entry.get(part)
        entry[part] = dict(below) if isinstance(below, dict) else {}
        entry = entry[part]
    entry[path[-1]] = value


def _case_keys() -> set[str]:
    from pffbench.backends.registry import backend_names

    kinds: list[type[Parameters]] = [workload(name).parameters_type for name in workload_names()]
    fields = {field for kind in kinds for field in kind.__struct_fields__}
    return fields | {"workload", *backend_names()}


def to_plain(experiment: Experiment) -> dict[str, Any]:
    """Return an experiment as plain data, the form stored in a results directory."""
    plain: dict[str, Any] = msgspec.to_builtins(experiment, enc_hook=_encode)
    if experiment.starts is not None:  # the environment is the one that runs it
        plain["environments"] = []
    return plain


def _encode(value: Any) -> Any:
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    raise NotImplementedError(type(value))


__all__ = [
    "LoadedExperiment",
    "experiment_files",
    "from_data",
    "join",
    "load_experiment",
    "to_plain",
]
