"""Schedules over HTTP: the manifest in and out, refused by path, switched on and off."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission

from fleet.models import Schedule
from fleet.rules.documents import load_yaml
from tests.fleet.make import make_execution, make_group, make_job, make_schedule
from tests.fleet.operator_api.callers import Caller, errors, make_user, ok

pytestmark = pytest.mark.django_db

TYPICAL = Path(__file__).parents[2] / "data" / "typical"
DOCUMENT: dict[str, Any] = {
    "id": "inventory-6h",
    "when": {"per_pc": {"every": "6h"}},
    "job_id": "inventory",
    "target": {"all": True},
    "jitter": "5m",
    "constraints": {"window": "22:00-05:00", "max_concurrent": 20},
    "on_failure": {"retry": {"max": 2, "backoff": "5m"}},
}


@pytest.fixture
def operator() -> Caller:
    make_job("inventory")
    return Caller(make_user("operator"))


def test_a_schedule_is_its_manifest_in_and_out(operator: Caller) -> None:
    answer = operator.post("schedules/", DOCUMENT)

    assert ok(answer, 201) == DOCUMENT
    assert ok(operator.get("schedules/Inventory-6H/")) == DOCUMENT
    assert ok(operator.get("schedules/"))["results"] == [DOCUMENT]
    assert ok(operator.put("schedules/inventory-6h/", DOCUMENT)) == DOCUMENT
    assert operator.delete("schedules/inventory-6h/").status_code == 204
    assert operator.get("schedules/inventory-6h/").status_code == 404


def test_an_id_that_is_taken_is_a_conflict(operator: Caller) -> None:
    ok(operator.post("schedules/", DOCUMENT), 201)

    answer = operator.post("schedules/", DOCUMENT | {"jitter": "1m"})

    assert answer.status_code == 409
    assert ok(operator.get("schedules/inventory-6h/"))["jitter"] == "5m"


def calendar(**keys: object) -> dict[str, object]:
    return {"when": {"calendar": keys}}


BAD: list[tuple[dict[str, object], str]] = [
    (calendar(cron="0 0 31 2 *"), "when.calendar.cron"),
    (calendar(cron="61 * * * *"), "when.calendar.cron"),
    (calendar(cron="R * * * *"), "when.calendar.cron"),
    (calendar(cron="5-1 * * * *"), "when.calendar.cron"),
    (calendar(cron="0 0 9 * * mon"), "when.calendar.cron"),
    (calendar(cron="* * * * " + "1," * 400 + "1"), "when.calendar.cron"),
    (calendar(cron=5), "when.calendar.cron"),
    (calendar(at="25:00"), "when.calendar.at"),
    (calendar(at="09:00", days=["someday"]), "when.calendar.days[0]"),
    (calendar(at="2026-06-10 09:00", days=["mon"]), "when.calendar.days"),
    (calendar(at="09:00", cron="0 9 * * *"), "when.calendar.at"),
    ({"when": {"per_pc": {"evry": "6h"}}}, "when.per_pc.evry"),
    ({"when": {"per_pc": {"every": "6x"}}}, "when.per_pc.every"),
    ({"when": {"per_pc": "onec"}}, "when.per_pc"),
    ({"when": {"per_pc": "once", "per_target": "once"}}, "when"),
    ({"when": {"on": ["startup"]}}, "when.on"),
    ({"when": {}}, "when"),
    ({"when": None}, "when"),
    ({"jitter": "5x"}, "jitter"),
    ({"jitter": "25h"}, "jitter"),
    ({"jitter": 5}, "jitter"),
    ({"tz": "Mars/Olympus"}, "tz"),
    ({"tz": "A" * 5000}, "tz"),
    ({"tz": "posixrules"}, "tz"),
    ({"constraints": {"window": "22:00-22:00"}}, "constraints.window"),
    ({"constraints": {"window": "22:00"}}, "constraints.window"),
    ({"constraints": {"skip_dates": ["2026-02-30"]}}, "constraints.skip_dates[0]"),
    ({"constraints": {"max_concurrent": 0}}, "constraints.max_concurrent"),
    ({"constraints": {"max_concurrent": True}}, "constraints.max_concurrent"),
    ({"constraints": {"require": {"ac": True}}}, "constraints.require"),
    ({"active": {"from": "July 1st"}}, "active.from"),
    ({"active": {"from": "2026-08-01", "until": "2026-07-01"}}, "active.from"),
    ({"on_failure": {"retry": {"max": 11, "backoff": "5m"}}}, "on_failure.retry.max"),
    ({"on_failure": {"retry": {"max": 2, "backoff": "0s"}}}, "on_failure.retry.backoff"),
    ({"starting_deadline": "soon"}, "starting_deadline"),
    ({"misfire": "never"}, "misfire"),
    ({"runs_on": "moon"}, "runs_on"),
    ({"tags": ["ok", "  "]}, "tags[1]"),
    ({"target": {"all": 1}}, "target.all"),
    ({"target": {"pcs": "pc-1"}}, "target.pcs"),
    ({"target": {"pcs": ["../pc"]}}, "target.pcs[0]"),
    ({"job_id": "no-such-job"}, "job_id"),
    ({"cron": "* * * * *"}, "cron"),
    ({"next_fire_at": "2026-01-01T00:00:00Z"}, "next_fire_at"),
    ({"evry": "6h"}, "evry"),
]


@pytest.mark.parametrize(("change", "field"), BAD, ids=[f"{f}-{n}" for n, (_, f) in enumerate(BAD)])
def test_a_bad_schedule_is_refused_by_its_dotted_path_and_nothing_is_stored(
    operator: Caller, change: dict[str, object], field: str
) -> None:
    answer = operator.post("schedules/", DOCUMENT | change)

    assert answer.status_code == 400
    assert field in errors(answer)
    assert Schedule.objects.count() == 0


@pytest.mark.parametrize(("change", "field"), BAD, ids=[f"{f}-{n}" for n, (_, f) in enumerate(BAD)])
def test_a_bad_change_leaves_the_schedule_as_it_is(
    operator: Caller, change: dict[str, object], field: str
) -> None:
    ok(operator.post("schedules/", DOCUMENT), 201)

    answer = operator.put("schedules/inventory-6h/", DOCUMENT | change)

    assert answer.status_code == 400
    assert field in errors(answer)
    assert ok(operator.get("schedules/inventory-6h/")) == DOCUMENT


@pytest.mark.parametrize("path", sorted(TYPICAL.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_typical_manifest_is_answered_so_that_it_can_be_sent_back(path: Path) -> None:
    make_user("approver")
    caller = Caller(make_user("operator"))
    for document in load_yaml(path.read_bytes()):
        assert isinstance(document.value, dict)
        kind = "jobs" if "execute" in document.value else "schedules"
        address = f"{kind}/{document.value['id']}/"
        stored = ok(caller.post(f"{kind}/", document.value), 201)
        assert ok(caller.get(address)) == stored
        assert ok(caller.put(address, stored)) == stored


def test_a_schedule_is_switched_off_and_on_and_twice_is_once(operator: Caller) -> None:
    make_schedule("nightly")

    for _ in range(2):
        assert ok(operator.post("schedules/nightly/disable/"))["enabled"] is False
    for _ in range(2):
        assert "enabled" not in ok(operator.post("schedules/nightly/enable/"))


def test_a_cascade_revokes_the_job_and_stops_what_runs(operator: Caller) -> None:
    schedule = make_schedule("nightly", job=make_job("patch"))
    execution = make_execution(schedule.job)

    ok(operator.post("schedules/nightly/disable/", {"cascade": True, "reason": "bad patch"}))
    assert ok(operator.get("jobs/patch/status/"))["revoked"] is True
    execution.refresh_from_db()
    assert execution.state == "live"

    ok(operator.post("schedules/nightly/disable/", {"cascade_kill": True}))
    execution.refresh_from_db()
    assert execution.state == "cancelled"


def test_a_cascade_needs_its_own_rights() -> None:
    user = make_user("viewer")
    user.user_permissions.add(
        *Permission.objects.filter(codename__in=["change_schedule", "fire_schedule"])
    )
    schedule = make_schedule("nightly")
    caller = Caller(user)

    for cascade in ("cascade", "cascade_kill"):
        assert caller.post("schedules/nightly/disable/", {cascade: True}).status_code == 403
    schedule.refresh_from_db()
    assert schedule.enabled is True
    assert caller.post("schedules/nightly/disable/").status_code == 200


def test_the_next_fires_are_told_in_the_schedules_zone_and_in_utc(operator: Caller) -> None:
    make_schedule("nightly", when={"calendar": {"at": "09:00"}}, tz="Asia/Tokyo")

    body = ok(operator.get("schedules/nightly/preview/?count=3"))

    assert (body["when"], body["tz"], body["enabled"]) == ("at 09:00", "Asia/Tokyo", True)
    assert len(body["fires"]) == 3
    assert all(fire["utc"].endswith("T00:00:00Z") for fire in body["fires"])
    assert all(fire["local"].endswith("T09:00:00+09:00") for fire in body["fires"])


def test_a_schedule_that_is_off_is_previewed_too(operator: Caller) -> None:
    make_schedule("nightly", when={"calendar": {"at": "09:00"}}, enabled=False)

    body = ok(operator.get("schedules/nightly/preview/"))

    assert (body["enabled"], len(body["fires"])) == (False, 5)


def test_a_reconcile_schedule_says_why_it_has_no_fires(operator: Caller) -> None:
    make_schedule("inventory-6h")

    body = ok(operator.get("schedules/inventory-6h/preview/"))

    assert (body["when"], body["fires"]) == ("per_pc every 6h", [])
    assert body["note"].startswith("Looks every minute")


@pytest.mark.parametrize("count", ["0", "51", "-1", "x", "1.5", "٣", "9" * 5000, "1e1"])
def test_a_count_that_is_none_is_refused(operator: Caller, count: str) -> None:
    make_schedule("nightly")

    answer = operator.get(f"schedules/nightly/preview/?count={count}")

    assert answer.status_code == 400
    assert list(errors(answer)) == ["count"]


def test_schedules_are_narrowed(operator: Caller) -> None:
    job = make_job("patch")
    make_schedule("patch-nightly", job=job, when={"calendar": {"at": "09:00"}})
    make_schedule("other", enabled=False)
    make_group("office")

    def ids(query: str) -> list[str]:
        return [row["id"] for row in ok(operator.get(f"schedules/?{query}"))["results"]]

    assert ids("job=Patch") == ["patch-nightly"]
    assert ids("shape=calendar") == ["patch-nightly"]
    assert ids("enabled=false") == ["other"]
    assert ids("q=NIGHT") == ["patch-nightly"]
    assert operator.get("schedules/?manifest__contains=x").status_code == 400


def test_a_list_takes_the_same_number_of_queries_whatever_its_length(
    operator: Caller, django_assert_num_queries: object
) -> None:
    for _ in range(4):
        make_schedule()
    operator.get("schedules/")

    for size in (1, 4):
        # The token, its owner's rights (two), the page.
        with django_assert_num_queries(4):  # type: ignore[operator]
            ok(operator.get(f"schedules/?page_size={size}"))
