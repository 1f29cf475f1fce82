"""`report.html`: a run as one self-contained page; see `pffbench_analysis.page.build`."""

from pffbench_analysis.page.build import write_page

__all__ = ["write_page"]
