"""The browser that tests share, and a page that most of them look at."""

from __future__ import annotations

import pytest
from chromium import Browser

from drawn_runs import USUAL, a_case, a_run
from pffbench_analysis.report import report

CASES = (
    *USUAL,
    a_case("netcdf4"),
    a_case("zarr", settings="defaults"),
    a_case("hdf5", files="one", arrays="per_rank"),
    a_case("zarr", files="one", arrays="per_rank"),
    a_case("mpiio", files="one", arrays="per_rank"),
)


@pytest.fixture(scope="session")
def page(tmp_path_factory):
    place = tmp_path_factory.mktemp("some") / "run"
    a_run(place, CASES, repetitions=8, experiment={"repetitions": 8})
    return next(path for path in report([place]) if path.name == "report.html")


@pytest.fixture(scope="session")
def started(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("downloads"))
    yield browser
    browser.driver.quit()


@pytest.fixture
def browser(started):
    """The browser; afterwards neither its console nor the network may have got anything."""
    started.media("light")
    started.console()
    started.requests()
    yield started
    assert started.console() == []
    asked = [url for url in started.requests() if not url.startswith(("file:", "data:", "blob:"))]
    assert asked == []
