"""The page of one run: its output as it comes and as it was, and what exactly ran."""

import pytest
from django.test import Client
from django.urls import reverse

from fleet.models import Command, Output, OutputChunk, Result
from fleet.rules.command_states import CommandState
from tests.fleet.admin.conftest import Visit
from tests.fleet.admin.reading import Page
from tests.fleet.make import NOW, make_command, make_job, revise

pytestmark = pytest.mark.django_db


def ended(head: bytes, tail: bytes = b"", *, total: int = 0, code_page: str = "") -> Command:
    command = make_command(job=make_job("patch", version="1"), state=CommandState.FAILED)
    Result.objects.create(
        command_id=command.pk,
        agent_id=command.agent_id,
        job_id=command.job_id,
        revision_id=command.revision_id,
        job_version="1",
        outcome="failed",
        exit_code=3,
        code_page=code_page,
        received_at=NOW,
    )
    Output.objects.create(
        command_id=command.pk,
        stream="stdout",
        head=head,
        tail=tail,
        total=total or len(head) + len(tail),
        received_at=NOW,
    )
    return command


def page_of(client: Client, command: Command, model: str = "result") -> Page:
    address = reverse(f"admin:fleet_{model}_change", args=[command.pk])
    return Page(client.get(address).content.decode())


def output(page: Page) -> list[str]:
    return [element.text for element in page.all("pre", class_="output")]


@pytest.mark.parametrize("model", ["result", "command"])
def test_the_output_is_text_and_nothing_else(model: str, root: Client) -> None:
    command = ended(b"\x1b[31m<script>alert(1)</script>\x1b[0m\n")

    assert output(page_of(root, command, model)) == ["<script>alert(1)</script>\n"]


def test_bytes_are_read_by_the_code_page_of_the_pc(root: Client) -> None:
    command = ended("印刷".encode("cp932"), code_page="cp932")

    assert output(page_of(root, command)) == ["印刷"]


def test_what_was_cut_stands_between_head_and_tail(root: Client) -> None:
    command = ended(b"first", b"last", total=5_000_009)

    page = page_of(root, command)

    assert output(page) == ["first", "last"]
    cut = [element.text for element in page.all("p", class_="output-cut")]
    assert cut == ["4.8\xa0MB in the middle were not kept by the PC"]


def test_a_large_output_opens_with_its_ends_and_the_rest_is_in_the_download(root: Client) -> None:
    command = ended(b"x" * 400_000)
    address = reverse("admin:fleet_result_change", args=[command.pk])

    answer = root.get(address)

    assert len(answer.content) < 250_000
    assert "more are in the download" in answer.content.decode()
    assert len(download(root, command).content) == 400_000


def download(client: Client, command: Command, stream: str = "stdout"):  # type: ignore[no-untyped-def]  # the test client's answer
    return client.get(reverse("admin:fleet_result_download", args=[command.pk, stream]))


def test_a_download_is_the_bytes_as_they_came_and_never_a_page(root: Client) -> None:
    answer = download(root, ended(b"<html>\0\xff"))

    assert answer.content == b"<html>\0\xff"
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["Content-Disposition"].startswith("attachment; filename=")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Security-Policy"] == "sandbox; default-src 'none'"


def test_a_download_marks_what_is_not_kept(root: Client) -> None:
    answer = download(root, ended(b"first", b"last", total=19))

    assert answer.content.decode() == "first\n[… 10 bytes are not kept …]\nlast"


@pytest.mark.parametrize("stream", ["stderr", "passwd"])
def test_a_stream_that_is_not_there_is_not_found(stream: str, root: Client) -> None:
    assert download(root, ended(b"x"), stream).status_code == 404


def test_who_may_not_see_results_downloads_none(visit: Visit) -> None:
    assert download(visit("nobody"), ended(b"x")).status_code == 403


def test_live_output_is_the_end_of_what_came_so_far(root: Client) -> None:
    command = make_command(state=CommandState.STARTED, started_at=NOW)
    for offset, data in ((0, b"one\n"), (4, b"two\n")):
        OutputChunk.objects.create(
            command_id=command.pk, stream="stdout", offset=offset, data=data, received_at=NOW
        )
    address = reverse("admin:fleet_command_live", args=[command.pk])

    page = Page(root.get(address).content.decode())

    assert output(page) == ["one\ntwo\n"]
    assert not [element for element in page.elements if "data-ended" in element.attributes]


def test_the_page_of_an_ended_run_asks_no_more(root: Client) -> None:
    command = ended(b"x")
    address = reverse("admin:fleet_command_live", args=[command.pk])

    page = Page(root.get(address).content.decode())

    assert [element.tag for element in page.elements if "data-ended" in element.attributes]


def test_the_live_part_is_asked_for_within_two_seconds(root: Client) -> None:
    page = page_of(root, make_command(state=CommandState.STARTED), "command")

    live = [element.attributes for element in page.elements if "data-live" in element.attributes]
    assert [float(found["data-every"]) <= 2 for found in live] == [True]


def test_the_page_shows_the_revision_that_ran_and_not_the_current_one(root: Client) -> None:
    command = ended(b"x")
    revise(command.job, version="2", execute={"script": "echo newer"})

    text = " ".join(element.text for element in page_of(root, command).all("section"))

    assert "version 1 (revision 1)" in text
    assert "echo hello" in text
    assert "echo newer" not in text


def test_a_result_outlives_its_command(root: Client) -> None:
    command = ended(b"still here")
    key = command.pk
    command.delete()

    answer = root.get(reverse("admin:fleet_result_change", args=[key]))

    assert "still here" in answer.content.decode()
    assert root.get(reverse("admin:fleet_command_change", args=[key])).status_code == 404


@pytest.mark.parametrize("model", ["result", "command", "execution", "jobrevision", "agent"])
def test_what_ran_is_never_changed_by_a_form(model: str, root: Client) -> None:
    command = ended(b"x")
    keys = {
        "execution": command.execution_id,
        "jobrevision": command.revision_id,
        "agent": command.agent_id,
    }
    address = reverse(f"admin:fleet_{model}_change", args=[keys.get(model, command.pk)])

    root.post(address, {"outcome": "succeeded", "state": "succeeded", "name": "x"})

    command.refresh_from_db()
    assert command.state == CommandState.FAILED
    assert Result.objects.get().outcome == "failed"
