"""Write the tables of `docs/evidence/zarr.md` from the runs that it names; take further runs."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pffbench.summary.cautions import cautions
from pffbench.summary.columns import Column, columns_of, ordered, title
from pffbench.summary.conclusions import verdict_lines
from pffbench.summary.labels import parameters_apart
from pffbench.summary.shards import shard_costs, shard_lines
from pffbench.summary.summary import CaseSummary, Summary, summarise
from pffbench.text import escape_markdown, markdown_table, without_digests
from pffbench_bundles.appendix import platform
from pffbench_bundles.masking import masked_copy

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "evidence" / "zarr.md"
#: Where a run that the page does not name yet is put: before this heading.
_END = "## Again\n"
_BLOCK = re.compile(r"(<!-- run (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
#: Columns of a summary that are the same in all rows, or tell the same as another one here.
_LEFT_OUT = {"settings", "transfer", "n", "×best", "roof", "MiB/s", "ratio"}
#: Libraries whose versions belong to a table.
_LIBRARIES = ("zarr", "zarrs", "tensorstore", "numcodecs", "numpy", "mpi4py")


def written(page: str) -> str:
    """Return the page with the tables of its runs."""

    def block(found: re.Match[str]) -> str:
        run = PAGE.parent / found[2]
        return f"{found[1]}\n{chr(10).join(_lines(summarise(run)))}\n\n{found[3]}"

    return _BLOCK.sub(block, page)


def _lines(summary: Summary) -> Iterator[str]:
    yield platform(summary, _LIBRARIES)
    costs = shard_costs(summary)
    for group, cases in summary.groups.items():
        apart = parameters_apart(summary.record).get(group, "")
        yield from ("", f"**{escape_markdown(f'{title(cases, summary)}; {apart}')}**", "")
        columns = _columns(cases)
        yield from markdown_table(
            [column.heading for column in columns],
            ([_short(column.cell(case).text) for column in columns] for case in ordered(cases)),
            [column.heading for column in columns if column.is_text],
        )
        if told := shard_lines(costs, group):
            yield ""
            yield from (f"- {escape_markdown(_short(line))}" for line in told)
    yield ""
    lines = (*verdict_lines(summary), *cautions(summary))
    yield from (f"- {escape_markdown(without_digests(line))}" for line in lines)


def _columns(cases: Sequence[CaseSummary]) -> list[Column]:
    return [column for column in columns_of(cases) if column.heading not in _LEFT_OUT]


def _short(text: str) -> str:
    """Return the variant of a case without what was not asked for."""
    return " ".join(word for word in text.split(" ") if not word.endswith("=None"))


def take(run: Path, page: Path = PAGE) -> None:
    """Keep the tables of a run, and name it on the page.

    Parameters
    ----------
    run : Path
        Results directory. The directories and hosts that it names are masked in the copy.
    page : Path, optional
        The page; its runs are in ``../results/zarr``.
    """
    kept = Path("..") / "results" / "zarr" / run.name
    masked_copy(run, page.parent / kept, "vm")
    told = page.read_text(encoding="utf-8")
    if f"<!-- run {kept} -->" not in told:
        heading = f"### {run.name.replace('-', ' ').capitalize()}"
        block = f"{heading}\n\n<!-- run {kept} -->\n<!-- end -->\n\n"
        page.write_text(told.replace(_END, block + _END), encoding="utf-8")


def main() -> None:
    """Take the runs of a directory, if one is named, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--take", type=Path, metavar="DIRECTORY", help="results directories in it")
    given = parser.parse_args()
    for run in sorted(given.take.iterdir()) if given.take else ():
        take(run)
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
