"""The API's page in a real browser: it works, and nothing that it does breaks the policy."""

from typing import TYPE_CHECKING

import pytest

from tests.journey.site import PASSWORD, Site

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser]
REPORT_VIOLATIONS = """
    window.violations = [];
    document.addEventListener("securitypolicyviolation",
        event => window.violations.push(event.violatedDirective + " " + event.blockedURI));
"""


@pytest.fixture
def page(browser: "Browser", site: Site) -> "Page":
    """A page of somebody who has signed in."""
    page = browser.new_context().new_page()
    page.add_init_script(REPORT_VIOLATIONS)
    page.goto(f"{site.url}/admin/login/?next=/api/docs/")
    page.fill("#id_username", "admin")
    page.fill("#id_password", PASSWORD)
    return page


def test_the_page_shows_the_operations_and_breaks_no_policy(page: "Page", site: Site) -> None:
    noise: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: noise.append(message.text))
    page.on("pageerror", lambda error: noise.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))

    page.click("[type=submit]")
    page.wait_for_selector("text=Run a job now")
    page.click("text=Run a job now")
    page.wait_for_selector("text=Idempotency-Key")

    assert page.evaluate("window.violations") == []
    assert noise == []
    assert [url for url in asked if not url.startswith((site.url, "data:"))] == []


def test_an_operation_is_tried_out_with_the_persons_session(page: "Page") -> None:
    page.click("[type=submit]")
    page.wait_for_selector("text=Freeze the fleet")
    page.click("text=Freeze the fleet")
    page.click("text=Try it out")
    page.fill("textarea", '{"reason": "from the page"}')
    page.click("text=Execute")
    page.wait_for_selector(".live-responses-table .response-col_status")

    shown = page.inner_text(".live-responses-table")
    assert "200" in shown
    assert "frozen: from the page" in shown
