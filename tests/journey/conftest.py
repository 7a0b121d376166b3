"""A prepared site for each test module, and a browser."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.journey.site import Site

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with its web process; runners and agents are started by the tests."""
    found = Site(Path(tmp_path_factory.mktemp("site")))
    try:
        found.prepare()
        found.start_web()
        yield found
    finally:
        found.stop()


# Per module: the driver keeps an event loop in this thread, and later modules want their own.
@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """The machine's Chromium, headless."""
    # Imported here: the pure suite needs no browser driver.
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                  "--disable-background-networking", "--disable-component-update",
                  "--disable-sync"],
        )  # fmt: skip
        yield chromium
        chromium.close()
