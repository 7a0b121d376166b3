"""What a browser sends from the forms."""

from django.test import Client
from django.urls import reverse

from tests.fleet.admin.reading import Page

SCHEDULE = {
    "ident": "nightly",
    "job_ident": "patch",
    "when_shape": "per_pc every",
    "when_every": "6h",
    "all_pcs": "on",
    "is_enabled": "on",
}
CALENDAR = {**SCHEDULE, "when_shape": "calendar cron", "when_every": ""}
JOB = {
    "ident": "patch",
    "version": "1",
    "shell": "sh",
    "script": "echo hello",
    "timeout": "5m",
    "run_as": "system",
}


def post(client: Client, page: str, data: dict[str, str], *args: object) -> Page:
    """Send a form that is refused, and return the page that says why."""
    answer = client.post(reverse(f"admin:fleet_{page}", args=args), data)
    assert answer.status_code == 200, answer.status_code
    return Page(answer.content.decode())


def post_well(client: Client, page: str, data: dict[str, str], *args: object) -> str:
    """Send a form that is accepted, and return the address that follows."""
    answer = client.post(reverse(f"admin:fleet_{page}", args=args), data)
    assert answer.status_code == 302, said(Page(answer.content.decode()))
    return str(answer.headers["Location"])


def said(page: Page) -> str:
    """Every error that a page shows."""
    return " | ".join(" ".join(item.text.split()) for item in page.all("ul", class_="errorlist"))
