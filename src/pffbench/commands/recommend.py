"""`pffbench recommend`: the format and settings to use, by measurements."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pffbench.commands import needing_analysis
from pffbench.run.output import make_console, print_json

if TYPE_CHECKING:
    from rich.console import Console

#: Version of what `--json` prints; a higher one changed or removed a key.
_JSON_VERSION = 1


def main(arguments: argparse.Namespace) -> int:
    """Print the recommendation of runs. Return the exit status."""
    with needing_analysis("recommend"):
        from pffbench_analysis.recommend import Filters, Weights, recommend
    write, read = arguments.weight
    filters = Filters(
        tuple(arguments.layout),
        tuple(arguments.format),
        tuple(arguments.transfer),
        arguments.one_file,
    )
    found = recommend(arguments.runs, Weights(write, read), filters)
    if arguments.json:
        print_json({"format": "pffbench recommend", "version": _JSON_VERSION, **found.data()})
    elif sys.stdout.isatty():
        print_markdown(found.lines(), make_console())
    else:
        for line in found.lines():
            print(line)
    return 0


def print_markdown(lines: Iterable[str], console: Console) -> None:
    """Print Markdown on a terminal: headings, items that wrap under their text, programs.

    Parameters
    ----------
    lines : iterable of str
        Headings, list items with words in ``**``, fenced code and paragraphs. Other marks are
        printed as they are.
    console : Console
        The terminal.
    """
    from rich.syntax import Syntax
    from rich.table import Table
    from rich.text import Text

    # Lines of a program are left to the terminal to wrap, so that they can be copied.
    python = Syntax("", "python", theme="ansi_dark", background_color="default")
    code: list[str] | None = None
    for line in lines:
        if line.startswith("```"):
            if code is not None:
                console.print(python.highlight("\n".join(code)), soft_wrap=True)
            code = [] if code is None else None
        elif code is not None:
            code.append(line)
        elif line.startswith("#"):
            style = "bold underline" if line.startswith("# ") else "bold"
            console.print(Text(line.lstrip("# "), style))
        else:
            text = line.lstrip()
            item = text.startswith("- ")
            words = text[2 * item :].split("**")
            shown = Text.assemble(*((w, "bold" if i % 2 else "") for i, w in enumerate(words)))
            if item:
                grid = Table.grid()
                grid.add_row(" " * (len(line) - len(text)) + "• ", shown)
                console.print(grid)
            else:
                console.print(shown)
