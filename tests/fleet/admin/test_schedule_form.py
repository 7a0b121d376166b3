"""The form of a schedule: what is wrong is said where it was typed, and nothing is stored."""

import json

import pytest
from django.test import Client
from django.urls import reverse

from fleet.models import Schedule
from tests.fleet.admin.conftest import Visit
from tests.fleet.admin.posting import CALENDAR, SCHEDULE, post, post_well, said
from tests.fleet.admin.reading import errors_at
from tests.fleet.make import make_job, make_schedule

pytestmark = pytest.mark.django_db

BAD: list[tuple[dict[str, str], str, str]] = [
    ({"when_cron": "0 0 31 2 *"}, "when_cron", "never"),
    ({"when_cron": "61 * * * *"}, "when_cron", "61"),
    ({"when_cron": "R * * * *"}, "when_cron", "R"),
    ({"when_cron": "5-1 * * * *"}, "when_cron", "5-1"),
    ({"when_cron": "0 0 9 * * mon"}, "when_cron", "6 fields"),
    ({"when_cron": ""}, "when_cron", "blank"),
    ({"jitter": "5x"}, "jitter", "5x"),
    ({"starting_deadline": "soon"}, "starting_deadline", "soon"),
    ({"tz": "Europe/Budapst"}, "tz", "Europe/Budapest"),
    ({"window": "22:00-22:00"}, "window", "22:00"),
    ({"skip_dates": "24 December"}, "skip_dates", "24 December"),
    ({"max_concurrent": "0"}, "max_concurrent", "1"),
    ({"max_concurrent": "many"}, "max_concurrent", "number"),
    ({"active_from": "July 1st"}, "active_from", "July 1st"),
    ({"retry_max": "11", "retry_backoff": "5m"}, "retry_max", "10"),
    ({"retry_max": "2"}, "retry_backoff", "required"),
    ({"job_ident": "nobody-knows"}, "job_ident", "no job"),
    ({"ident": "two words"}, "ident", "no id"),
    ({"groups": "of<fice"}, "groups", "no id"),
    ({"pcs": "../etc"}, "pcs", "no name"),
    ({"tags": "\u00e9"}, "tags", "no tag"),
    ({"about": "a\0b"}, "about", "Null"),
    ({"about": "a\x07b"}, "about", "control character"),
    ({"other": 'description: "\\ud800"'}, "other", "line 1"),
    ({"other": "- a list"}, "other", "keys"),
    ({"other": "a: 1\n---\nb: 2"}, "other", "one document"),
    ({"rollout": "waves: []"}, "rollout", "at least one"),
    ({"params": "1 2: ["}, "params", "line"),
]


@pytest.mark.parametrize(
    ("change", "place", "words"), BAD, ids=[f"{place}-{n}" for n, (_, place, _) in enumerate(BAD)]
)
def test_what_is_wrong_is_said_at_its_field_and_nothing_is_stored(
    change: dict[str, str], place: str, words: str, root: Client
) -> None:
    make_job("patch")

    page = post(root, "schedule_add", {**CALENDAR, "when_cron": "0 9 * * *"} | change)

    assert words in errors_at(page, place), said(page)
    assert not Schedule.objects.exists()


@pytest.mark.parametrize("every", ["6x", "", "-6h"])
def test_a_bad_cooldown_is_said_at_its_field(every: str, root: Client) -> None:
    make_job("patch")

    page = post(root, "schedule_add", SCHEDULE | {"when_every": every})

    assert errors_at(page, "when_every")
    assert not Schedule.objects.exists()


def test_all_that_is_wrong_is_said_at_once(root: Client) -> None:
    make_job("patch")

    page = post(root, "schedule_add", SCHEDULE | {"jitter": "5x", "window": "x", "tz": "x/y"})

    assert all(errors_at(page, name) for name in ("jitter", "window", "tz"))


def test_an_unknown_key_is_named_in_the_field_of_other_keys(root: Client) -> None:
    make_job("patch")

    page = post(root, "schedule_add", SCHEDULE | {"other": "jiter: 5m"})

    assert "jiter" in said(page)
    assert 'did you mean "jitter"' in said(page)
    assert not Schedule.objects.exists()


def test_a_good_schedule_is_stored_as_its_manifest(root: Client) -> None:
    make_job("patch")

    address = post_well(root, "schedule_add", SCHEDULE | {"jitter": "5m", "groups": "a, b"})

    schedule = Schedule.objects.get()
    assert address == reverse("admin:fleet_schedule_changelist")
    assert schedule.manifest == {
        "id": "nightly",
        "when": {"per_pc": {"every": "6h"}},
        "job_id": "patch",
        "target": {"all": True, "groups": ["a", "b"]},
        "jitter": "5m",
    }


def test_the_form_of_a_stored_schedule_saves_it_unchanged(root: Client) -> None:
    schedule = make_schedule(
        "nightly",
        job=make_job("patch"),
        when={"calendar": {"at": "09:00", "days": ["mon-fri"]}},
        constraints={"window": "08:00-10:00", "max_concurrent": 2},
        on_failure={"backoff": "off"},
        origin={"repo": "git"},
        enabled=False,
    )
    before = dict(schedule.manifest)
    form = root.get(reverse("admin:fleet_schedule_change", args=[schedule.pk])).context
    fields = form["adminform"].form
    typed = {
        name: fields[name].value() for name in fields.fields if not fields[name].field.disabled
    }

    post_well(
        root,
        "schedule_change",
        {name: str(value) for name, value in typed.items() if value not in (None, False)},
        schedule.pk,
    )

    schedule.refresh_from_db()
    assert schedule.manifest == before


def test_the_id_of_a_stored_schedule_is_not_believed(root: Client) -> None:
    schedule = make_schedule("nightly", job=make_job("patch"))

    post_well(root, "schedule_change", SCHEDULE | {"ident": "other"}, schedule.pk)

    assert list(Schedule.objects.values_list("slug", flat=True)) == ["nightly"]


def test_a_second_schedule_of_the_same_id_is_refused_at_the_id(root: Client) -> None:
    make_schedule("nightly", job=make_job("patch"))

    page = post(root, "schedule_add", SCHEDULE)

    assert "already" in errors_at(page, "ident")
    assert Schedule.objects.count() == 1


def check(client: Client, data: dict[str, str]) -> dict[str, object]:
    answer = client.post(reverse("admin:fleet_schedule_check"), data)
    found: dict[str, object] = json.loads(answer.content)
    return found


def test_the_check_tells_words_fires_and_warnings_and_stores_nothing(root: Client) -> None:
    make_job("patch")

    told = check(root, CALENDAR | {"when_cron": "* 4 * * *", "tz": "Europe/Budapest"})

    html = str(told["html"])
    assert (told["ok"], told["errors"]) == (True, [])
    assert html.count("<tr><td>") == 5
    assert "60 times a day" in html
    assert "UTC" in html
    assert not Schedule.objects.exists()


def test_the_check_names_the_field_of_an_error(root: Client) -> None:
    make_job("patch")

    told = check(root, CALENDAR | {"when_cron": "61 * * * *"})

    assert told["ok"] is False
    assert [error["field"] for error in told["errors"]] == ["when_cron"]  # type: ignore[attr-defined]  # a list of mappings


def test_the_check_of_a_stored_schedule_knows_its_id(root: Client) -> None:
    schedule = make_schedule("nightly", job=make_job("patch"))
    typed = {name: value for name, value in SCHEDULE.items() if name != "ident"}
    address = reverse("admin:fleet_schedule_check")

    told = json.loads(root.post(f"{address}?id={schedule.pk}", typed).content)

    assert told["ok"] is True


def test_who_may_not_write_schedules_may_not_check_them(visit: Visit) -> None:
    answer = visit("viewer").post(reverse("admin:fleet_schedule_check"), SCHEDULE)

    assert answer.status_code == 403
