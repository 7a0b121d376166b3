"""The main job in a real browser: with the policy on, without one violation or foreign request."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.journey.site import PASSWORD, Site, until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.concurrency,
]


@pytest.fixture(scope="module")
def running(site: Site) -> Site:
    """A site with a runner and one agent that has been heard."""
    site.start_runner()
    site.start_agent("pc-1")
    token = site.token()
    until(
        lambda: site.api(token, "GET", "agents/pc-1/")[0] == 200,
        within_s=60,
        what="the agent enrols",
        log=lambda: site.log("agent-pc-1"),
    )
    return site


@pytest.fixture
def page(running: Site, browser: "Browser") -> Iterator["Page"]:
    """A signed-in page; afterwards nothing may have been refused, failed or fetched elsewhere."""
    page = browser.new_page()
    wrong: list[str] = []
    page.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "request",
        lambda request: (
            None if request.url.startswith((running.url, "data:")) else wrong.append(request.url)
        ),
    )
    page.goto(running.url)
    page.fill("#id_username", "admin")
    page.fill("#id_password", PASSWORD)
    page.click("[type=submit]")
    page.wait_for_url("**/admin/")
    yield page
    page.close()
    assert wrong == []


def text_of(page: "Page") -> str:
    return page.inner_text("#content, main, body")


def add_job(page: "Page", site: Site, name: str, script: str) -> None:
    page.goto(f"{site.url}/admin/fleet/job/add/")
    page.fill("[name=ident]", name)
    page.fill("[name=version]", "1")
    page.select_option("[name=shell]", "sh")
    page.fill("[name=script]", script)
    page.fill("[name=timeout]", "5m")
    page.click("[name=_save]")
    page.wait_for_load_state()


def add_schedule(page: "Page", site: Site, name: str, job: str, **fields: str) -> None:
    page.goto(f"{site.url}/admin/fleet/schedule/add/")
    page.fill("[name=ident]", name)
    page.fill("[name=job_ident]", job)
    page.check("[name=all_pcs]")
    for field, value in fields.items():
        if field == "when_shape":
            page.select_option("[name=when_shape]", value)
        else:
            page.fill(f"[name={field}]", value)
    page.click("[name=_save]")
    page.wait_for_load_state()


def shown(page: "Page", address: str, words: str, *, within_s: float = 40) -> None:
    """Look at a page until it shows the words."""

    def look() -> bool:
        page.goto(address)
        return words in text_of(page)

    until(look, within_s=within_s, what=f"{words!r} on {address}", log=lambda: text_of(page))


def test_a_job_and_a_schedule_made_in_the_browser_give_output_on_the_page(
    page: "Page", running: Site
) -> None:
    add_job(page, running, "greet", "echo hello from the browser test")
    add_schedule(page, running, "greet-6h", "greet", when_shape="per_pc every", when_every="6h")

    shown(page, f"{running.url}/admin/fleet/result/", "greet")
    page.click("#result_list tbody a")
    page.wait_for_load_state()

    assert "hello from the browser test" in text_of(page)
    assert "succeeded" in text_of(page)


def test_a_cron_that_cannot_be_is_refused_at_its_field_and_nothing_is_stored(
    page: "Page", running: Site
) -> None:
    add_job(page, running, "never", "echo never")
    add_schedule(
        page, running, "bad-cron", "never", when_shape="calendar cron", when_cron="61 * * * *"
    )

    assert "minute" in page.inner_text(".errorlist:visible >> nth=0").lower() or "61" in text_of(
        page
    )
    assert page.url.endswith("/schedule/add/")
    assert running.api(running.token(), "GET", "schedules/bad-cron/")[0] == 404


def test_frozen_shows_on_every_page_and_holds_a_run_by_hand(page: "Page", running: Site) -> None:
    add_job(page, running, "held", "echo held")
    page.goto(f"{running.url}/admin/fleet/freeze/set/")
    page.fill("[name=reason]", "year end")
    page.click("main [type=submit], #content [type=submit]")
    page.wait_for_load_state()
    try:
        for path in ("", "fleet/job/", "fleet/agent/", "scheduler/task/"):
            page.goto(f"{running.url}/admin/{path}")
            assert "year end" in page.inner_text("body")
        status, told = running.api(
            running.token(), "POST", "jobs/held/exec/", {"target": {"pcs": ["pc-1"]}}
        )
        assert status == 409
        assert "year end" in str(told)
    finally:
        page.goto(f"{running.url}/admin/fleet/freeze/clear/")
        page.click("main [type=submit], #content [type=submit]")
        page.wait_for_load_state()
    page.goto(f"{running.url}/admin/")
    assert "year end" not in page.inner_text("body")


def test_a_closed_window_is_explained_with_when_it_opens(page: "Page", running: Site) -> None:
    opens = (datetime.now(UTC) + timedelta(hours=2)).strftime("%H:00")
    closes = (datetime.now(UTC) + timedelta(hours=3)).strftime("%H:00")
    add_job(page, running, "nightly", "echo nightly")
    add_schedule(
        page,
        running,
        "nightly-6h",
        "nightly",
        when_shape="per_pc every",
        when_every="6h",
        window=f"{opens}-{closes}",
    )

    page.goto(f"{running.url}/admin/fleet/schedule/?q=nightly-6h")
    page.click("#result_list tbody a")
    page.click("a:has-text('Explain')")
    page.wait_for_load_state()

    assert f"{opens}-{closes}" in text_of(page)
    assert "window" in text_of(page).lower()


def test_a_running_script_shows_its_output_and_is_killed(page: "Page", running: Site) -> None:
    add_job(page, running, "long", "echo it has begun; sleep 600")
    token = running.token()
    status, execution = running.api(token, "POST", "jobs/long/exec/", {"target": {"pcs": ["pc-1"]}})
    assert status in {200, 201, 202}, execution

    address = f"{running.url}/admin/fleet/execution/{execution['id']}/change/"
    shown(page, address, "started")
    page.click("a[href*='/fleet/command/'][href*='/change/']")
    page.wait_for_load_state()
    shown(page, page.url, "it has begun", within_s=20)

    page.goto(f"{running.url}/admin/fleet/execution/{execution['id']}/kill/")
    page.click("main [type=submit], #content [type=submit]")
    page.wait_for_load_state()
    shown(page, address, "killed")
