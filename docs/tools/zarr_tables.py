"""Write the tables of `docs/zarr.md` from the runs that it names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pffbench.summary.columns import Column, columns_of, ordered, title
from pffbench.summary.conclusions import cautions, verdict_lines
from pffbench.summary.labels import parameters_apart
from pffbench.summary.shards import shard_costs, shard_lines
from pffbench.summary.summary import CaseSummary, Summary, summarise
from pffbench.text import escape_markdown, markdown_table, without_digests

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "zarr.md"
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
    yield _platform(summary)
    costs = shard_costs(summary)
    for group, cases in summary.groups.items():
        apart = parameters_apart(summary.record).get(group, "")
        yield from ("", f"**{escape_markdown(f'{title(cases, summary)}; {apart}')}**", "")
        columns = _columns(cases)
        yield from markdown_table(
            [column.heading for column in columns],
            ([_short(column.cell(case)) for column in columns] for case in ordered(cases)),
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


def _platform(summary: Summary) -> str:
    record = summary.record
    provenances = [told["provenance"] for told in record.environments.values()]
    first = (provenances or [record.provenance])[0]
    (host, *_), software = first["hosts"], first["software"]
    names = list(record.environments) or [""]
    versions = [_versions(p["software"]["libraries"]) for p in provenances or [first]]
    told = "; ".join(": ".join(filter(None, pair)) for pair in zip(names, versions, strict=True))
    ranks = f"{record.ranks} rank{'s' * (record.ranks > 1)}"
    mpi = software["libraries"]["mpi4py"]["mpi_library"].partition(",")[0]
    return (
        f"{ranks} on {host['cores']} cores ({host['cpu_model']}), {host['os']}, Python "
        f"{software['python']['version']}, {mpi}, {first['filesystem']['type']}, "
        f"{record.started[:10]}. {told}."
    )


def _versions(libraries: dict[str, dict[str, str]]) -> str:
    found = [(name, libraries.get(name, {}).get("version")) for name in _LIBRARIES]
    return ", ".join(f"{name} {version}" for name, version in found if version)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
