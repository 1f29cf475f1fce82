"""A real headless Chromium for tests, with the switches that a test machine needs."""

from __future__ import annotations

import json
import shutil
import time
import warnings
from pathlib import Path
from typing import Any

from launch import cannot_run

_ARGUMENTS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--no-first-run",
    "--window-size=1300,1000",
)  # fmt: skip


def programs() -> tuple[str, str]:
    """Return Chromium and its driver; without them fail in CI, and say so loudly elsewhere."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if browser and driver:
        return browser, driver
    told = (
        "the page was opened in no browser: install chromium and chromium-driver "
        "(apt-get install --no-install-recommends chromium chromium-driver)"
    )
    warnings.warn(told, stacklevel=2)
    return cannot_run(told)


class Browser:
    """A page in a browser.

    Parameters
    ----------
    downloads : Path
        Where downloads go.
    """

    def __init__(self, downloads: Path) -> None:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        browser, driver = programs()
        options = webdriver.ChromeOptions()
        options.binary_location = browser
        for argument in _ARGUMENTS:
            options.add_argument(argument)
        options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(driver))
        self.driver.set_script_timeout(200)

    def media(self, scheme: str) -> None:
        """Say which colours the user prefers."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def open(self, page: Path) -> None:
        """Open a file."""
        self.driver.get(page.resolve().as_uri())

    def js(self, text: str) -> Any:
        """Evaluate an expression in the page."""
        return self.driver.execute_script(f"return {text}")

    def wait(self, text: str, seconds: float = 200) -> Any:
        """Wait until an expression is true, and return it."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if found := self.js(text):
                return found
            time.sleep(0.05)
        raise AssertionError(f"never came true: {text}; console: {self.console()}")

    def text(self, selector: str) -> str:
        """Return the text of what a selector finds, folded up or not."""
        return str(self.js(f"document.querySelector({json.dumps(selector)}).textContent"))

    def count(self, selector: str) -> int:
        """Return how many elements a selector finds."""
        return int(self.js(f"document.querySelectorAll({json.dumps(selector)}).length"))

    def click(self, selector: str) -> None:
        """Click on what a selector finds."""
        self.driver.execute_script("document.querySelector(arguments[0]).click()", selector)

    def console(self) -> list[str]:
        """Return and forget what the console got: errors, warnings and messages."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return and forget the addresses that the page asked for."""
        events = [json.loads(e["message"])["message"] for e in self.driver.get_log("performance")]
        return [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]
