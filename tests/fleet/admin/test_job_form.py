"""The form of a job, and manifests as text."""

import pytest
from django.test import Client
from django.urls import reverse

from fleet.models import Group, Job, JobRevision, Schedule
from tests.fleet.admin.conftest import Visit
from tests.fleet.admin.posting import JOB, post, post_well, said
from tests.fleet.admin.reading import Page, errors_at
from tests.fleet.make import make_agent, make_group, make_job, make_schedule

pytestmark = pytest.mark.django_db

BAD: list[tuple[dict[str, str], str, str]] = [
    ({"script": ""}, "script", "required"),
    ({"script": "a\0b"}, "script", "Null"),
    ({"script": "a\x1bb"}, "script", "control character"),
    ({"script": "x" * (128 * 1024 + 1)}, "script", "131072"),
    ({"timeout": ""}, "timeout", "required"),
    ({"timeout": "25h"}, "timeout", "24h"),
    ({"timeout": "0s"}, "timeout", "1s"),
    ({"shell": "perl"}, "shell", "perl"),
    ({"version": ""}, "version", "required"),
    ({"ident": "<b>"}, "ident", "no id"),
    ({"max_output": "2GiB"}, "max_output", "1"),
    ({"params": "lower: x"}, "params", "capital"),
    ({"other": "finalize: x"}, "other", "finalize"),
]


@pytest.mark.parametrize(
    ("change", "place", "words"), BAD, ids=[f"{place}-{n}" for n, (_, place, _) in enumerate(BAD)]
)
def test_what_is_wrong_is_said_at_its_field_and_nothing_is_stored(
    change: dict[str, str], place: str, words: str, root: Client
) -> None:
    page = post(root, "job_add", JOB | change)

    assert words in (errors_at(page, place) or said(page)), said(page)
    assert not Job.objects.exists()


def test_a_job_is_stored_with_the_line_ends_of_unix(root: Client) -> None:
    post_well(root, "job_add", JOB | {"script": "echo one\r\necho two\r\n"})

    revision = JobRevision.objects.get()
    assert revision.manifest["execute"]["script"] == "echo one\necho two\n"
    assert (revision.created_by, revision.number) == ("root", 1)


def test_a_changed_script_under_the_same_version_is_refused_with_the_next_one(
    root: Client,
) -> None:
    job = make_job("patch", version="1.2.0")
    changed = JOB | {"version": "1.2.0", "script": "echo other"}

    page = post(root, "job_change", changed, job.pk)

    assert "used already" in errors_at(page, "version")
    offers = [button.attributes["value"] for button in page.all("input", name="_bump")]
    assert offers == ["Save as version 1.2.1"]
    assert job.revisions.count() == 1


def test_the_offered_version_is_saved_by_its_button(root: Client) -> None:
    job = make_job("patch", version="1.2.0")
    changed = JOB | {"version": "1.2.0", "script": "echo other", "_bump": "Save as version 1.2.1"}

    post_well(root, "job_change", changed, job.pk)

    job.refresh_from_db()
    assert job.current is not None
    assert job.current.version == "1.2.1"


def test_keys_without_effect_are_kept_and_named(root: Client) -> None:
    answer = root.post(
        reverse("admin:fleet_job_add"), JOB | {"other": "inventory: {a: 1}"}, follow=True
    )

    assert "To know: inventory: is kept but has no effect here" in answer.content.decode()
    assert JobRevision.objects.get().manifest["inventory"] == {"a": 1}


def test_a_job_in_use_is_not_deleted_and_the_page_says_why(root: Client) -> None:
    schedule = make_schedule("nightly", job=make_job("patch"))
    address = reverse("admin:fleet_job_delete", args=[schedule.job_id])

    answer = root.post(address)

    assert Job.objects.filter(slug="patch").exists()
    assert "nightly" in answer.content.decode()


def test_deleting_many_deletes_each_by_its_verb(root: Client) -> None:
    used, unused = make_job("used"), make_job("unused")
    make_schedule("nightly", job=used)
    chosen = {"action": "delete", "_selected_action": [used.pk, unused.pk], "confirmed": "yes"}

    answer = root.post(reverse("admin:fleet_job_changelist"), chosen, follow=True)

    assert list(Job.objects.values_list("slug", flat=True)) == ["used"]
    assert "the schedule &quot;nightly&quot; uses it" in answer.content.decode()
    assert "done for 1 of 2" in answer.content.decode()


def test_djangos_own_way_to_delete_many_is_closed(root: Client) -> None:
    job = make_job("patch")
    chosen = {"action": "delete_selected", "_selected_action": [job.pk], "post": "yes"}

    root.post(reverse("admin:fleet_job_changelist"), chosen)

    assert Job.objects.filter(pk=job.pk).exists()


YAML = 'id: patch\nversion: "1"\nexecute: {shell: sh, script: echo hello, timeout: 30s}\n'


def test_a_job_is_made_from_text(root: Client) -> None:
    post_well(root, "job_add_yaml", {"text": YAML})

    assert JobRevision.objects.get().manifest["execute"]["timeout"] == "30s"


BAD_TEXTS = [
    ("job_add_yaml", "id: [", "is no YAML"),
    ("job_add_yaml", "", "required"),
    ("job_add_yaml", YAML + "---\n" + YAML, "one document, not 2"),
    ("job_add_yaml", YAML + "verison: 2\n", "line 4: verison: unknown key; did you mean"),
    ("job_add_yaml", 'id: patch\nversion: "1"\n', "execute: is required"),
    ("job_add_yaml", "&a [*a]", "line 1"),
    (
        "schedule_add_yaml",
        "id: s\njob_id: patch\nwhen: {per_pc: {evry: 6h}}\n",
        "line 3: when.per_pc.evry: unknown key; did you mean &quot;every&quot;",
    ),
    (
        "schedule_add_yaml",
        'id: s\njob_id: patch\nwhen: {calendar: {cron: "61 * * * *"}}\n',
        "line 3: when.calendar.cron",
    ),
    ("schedule_add_yaml", 'id: "\\ud800"\n', "line 1"),
    ("group_add_yaml", "id: g\nmembers: [nobody]\n", "line 2: members: there is no PC"),
]


@pytest.mark.parametrize(("page", "text", "words"), BAD_TEXTS, ids=range(len(BAD_TEXTS)))
def test_a_bad_text_is_refused_with_its_line(
    page: str, text: str, words: str, root: Client
) -> None:
    answer = root.post(reverse(f"admin:fleet_{page}"), {"text": text})

    assert answer.status_code == 200
    assert words in answer.content.decode(), said_in(answer.content.decode())
    assert not Schedule.objects.exists()
    assert not Job.objects.exists()
    assert not Group.objects.exists()


def said_in(html: str) -> str:
    start = html.find("errorlist")
    return html[start : start + 500]


def test_the_text_of_one_job_does_not_save_another(root: Client) -> None:
    job = make_job("patch")

    answer = root.post(
        reverse("admin:fleet_job_yaml", args=[job.pk]), {"text": YAML.replace("patch", "other")}
    )

    assert answer.status_code == 200
    assert list(Job.objects.values_list("slug", flat=True)) == ["patch"]


def test_who_may_only_look_sees_the_text_and_cannot_save_it(visit: Visit) -> None:
    job = make_job("patch")
    client = visit("viewer")
    address = reverse("admin:fleet_job_yaml", args=[job.pk])

    assert "echo hello" in client.get(address).content.decode()
    assert client.post(address, {"text": YAML}).status_code == 403
    assert job.revisions.count() == 1


def test_a_group_is_saved_with_its_members(root: Client) -> None:
    for name in ("pc-1", "pc-2"):
        make_agent(name)

    post_well(root, "group_add", {"ident": "office", "about": "", "members": "pc-1\r\npc-2"})

    group = Group.objects.get()
    assert sorted(group.agents.values_list("name", flat=True)) == ["pc-1", "pc-2"]


def test_an_unknown_member_is_said_at_the_field(root: Client) -> None:
    page = post(root, "group_add", {"ident": "office", "members": "nobody"})

    assert "no PC" in errors_at(page, "members")
    assert not Group.objects.exists()


def test_a_group_that_a_schedule_names_is_kept(root: Client) -> None:
    group = make_group("office")
    make_schedule("nightly", target={"groups": ["office"]})

    answer = root.post(reverse("admin:fleet_group_delete", args=[group.pk]))

    assert Group.objects.filter(pk=group.pk).exists()
    assert "nightly" in answer.content.decode()


def test_the_list_tells_what_runs_a_job_and_what_it_is_for(root: Client) -> None:
    post_well(root, "job_add", JOB | {"about": "Keeps PCs up to date.", "shell": "bash"})

    page = Page(root.get(reverse("admin:fleet_job_changelist")).content.decode())

    assert [cell.text for cell in page.all("td", class_="field-shell")] == ["bash"]
    assert [cell.text for cell in page.all("td", class_="field-about")] == ["Keeps PCs up to date."]
