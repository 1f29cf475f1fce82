"""YAML to plain data, whoever wrote it: no objects, and no text that takes long or much to read.

An experiment can come from anybody. What it may hold is what an experiment needs: mappings with
text as keys, lists, text, numbers, true, false and null.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from pffbench.errors import UserError
from pffbench.text import has_controls

#: Bytes: an experiment is a page of text; anything larger is the wrong file.
LARGEST = 2**20
#: Values in the text, and in what it means: an alias stands for all that it names, each time.
MOST_VALUES = 100_000
#: Lists and mappings within each other.
DEEPEST = 20
#: Numbers as YAML 1.1 has them, but for two that nobody expects: 1:30 is text, which no number
#: takes the place of, and not 90; 1e3 is a number, and not text.
_NUMBERS = {
    "tag:yaml.org,2002:int": re.compile(
        r"[-+]?(?:0b[0-1_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)$"
    ),
    "tag:yaml.org,2002:float": re.compile(
        r"(?:[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
}
_PLAIN = frozenset(f"tag:yaml.org,2002:{kind}" for kind in (
    "null", "bool", "int", "float", "str", "seq", "map",
))  # fmt: skip


def parse(text: str, name: str) -> Any:
    """Return what a text in YAML means.

    Parameters
    ----------
    text : str
        The text.
    name : str
        Where it comes from, for messages.

    Raises
    ------
    UserError
        It is not YAML, too large, or holds something that no experiment has.
    """
    if len(text) > LARGEST:
        raise UserError(f"{name}: larger than 1 MiB, which no experiment is")
    try:
        data = yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = "" if mark is None else f" line {mark.line + 1}:"
        raise UserError(f"{name}:{place} not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:  # such as a number with thousands of digits
        told = " ".join(str(error).split())
        raise UserError(f"{name}: not valid YAML: {told}") from None
    _check_amount(data, name)
    return data


class _Loader(yaml.SafeLoader):
    """Plain data only, no key twice, and an end to what grows."""

    # Dates stay the text that they are: they would be objects.
    yaml_implicit_resolvers = {  # noqa: RUF012 -- a table that the base class has too
        first: [(tag, _NUMBERS.get(tag, pattern)) for tag, pattern in resolvers if tag in _PLAIN]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._values = 0
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._values += 1
        self._depth += 1
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        if self._values > MOST_VALUES:
            raise _refused(f"more than {MOST_VALUES} values, which no experiment has", mark)
        if self._depth > DEEPEST:
            raise _refused(f"more than {DEEPEST} lists and mappings within each other", mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if node is not None and node.tag not in _PLAIN:
            raise _refused(f"{node.tag!r} is no kind of plain data", mark)
        if isinstance(node, yaml.ScalarNode) and has_controls(node.value):
            raise _refused("a text holds control characters", mark)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _refused("a key is a list or a mapping", key.start_mark)
            if key.value in seen:
                raise _refused(f"the key {key.value!r} stands here twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _whole_or_not(loader: _Loader, node: yaml.ScalarNode) -> float | int:
    """Return a number; one such as 1e3 is whole, so that it can be a count."""
    value: float = loader.construct_yaml_float(node)
    exact = "." not in node.value and abs(value) < 2**53
    return int(value) if exact and value.is_integer() else value


_Loader.add_constructor("tag:yaml.org,2002:float", _whole_or_not)


def _refused(why: str, mark: yaml.Mark) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(None, None, why, mark)


def _check_amount(data: Any, name: str) -> None:
    """Count values with all aliases followed, and stop early: they may be endless."""
    stack, seen = [data], 0
    while stack:
        value = stack.pop()
        seen += 1
        if seen > MOST_VALUES:
            raise UserError(f"{name}: more than {MOST_VALUES} values, which no experiment has")
        if isinstance(value, dict):
            stack += value.values()
        elif isinstance(value, list):
            stack += value
