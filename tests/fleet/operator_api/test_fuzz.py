"""T-08, T-29: the answer is the sender's to understand, and no row poisons a list."""

import copy
from typing import Any

import pytest
from django.contrib.auth.models import User
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fleet.make import make_agent, make_group, make_job
from tests.fleet.operator_api.callers import Caller, make_user

pytestmark = pytest.mark.django_db

DOCUMENTS: dict[str, dict[str, Any]] = {
    "jobs/": {
        "id": "fuzz",
        "version": "1.0",
        "description": "what is installed",
        "execute": {
            "shell": "sh",
            "script": "uname -a",
            "timeout": "30s",
            "params": {"DAYS": {"default": "30"}},
            "max_output": "64KiB",
        },
        "tags": ["a"],
        "inventory": {"app": 1},
    },
    "schedules/": {
        "id": "fuzz",
        "when": {"calendar": {"at": "09:00", "days": ["mon-fri"]}},
        "job_id": "known",
        "target": {"groups": ["known"], "pcs": ["known"]},
        "rollout": {"waves": [{"group": "known", "delay": "1h"}], "max_failures": "10%"},
        "jitter": "5m",
        "starting_deadline": "1h",
        "active": {"from": "2026-01-01", "until": "2027-01-01T09:00:00+02:00"},
        "constraints": {
            "window": "22:00-05:00",
            "skip_dates": ["2026-12-24"],
            "max_concurrent": 20,
        },
        "on_failure": {"retry": {"max": 2, "backoff": "5m"}},
        "tz": "Europe/Budapest",
    },
    "groups/": {"id": "fuzz", "description": "all", "members": ["known"]},
    "freeze/": {"reason": "year end", "from": "2026-12-24", "until": "2027-01-02", "tz": "utc"},
}
# Where a row of each kind is listed, by the API and by the admin.
LISTS = {
    "jobs/": ("jobs/?include=status", "/admin/fleet/job/"),
    "schedules/": ("schedules/?include=status", "/admin/fleet/schedule/"),
    "groups/": ("groups/", "/admin/fleet/group/"),
    "freeze/": ("freeze/", "/admin/"),
}

nasty = st.sampled_from(
    [
        "", " ", "\0", "\ud800", "\x1b[31m", "\u202e", "\ufeff", "é" * 200, "x" * 5000, "../..",
        "<script>alert(1)</script>", "' OR 1=1 --", "{{ 7*7 }}", "%s%n", "=cmd|' /C calc'!A0",
        "0 0 31 2 *", "* * * * *", "61 * * * *", "99999999999999999999d", "1e400", "-1s", "24:00",
        "0001-01-01", "9999-12-31", "2026-02-30", "posixrules", "A" * 300, "once", "mon-fri#5",
        "\N{ARABIC-INDIC DIGIT FIVE}m", "on", "off", "null", "NaN",
    ]
)  # fmt: skip
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(st.characters(), max_size=30)
    | nasty
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=12) | nasty, inner, max_size=4)
    ),
    max_leaves=8,
)


def places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value in a document."""
    found = [path] if path else []
    items: Any = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    for key, item in items:
        found += places(item, (*path, key))
    return found


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, Any]:
    """A document with a few values replaced, removed or added, or anything at all."""
    address = draw(st.sampled_from(sorted(DOCUMENTS)))
    if draw(st.integers(0, 9)) == 0:
        return address, draw(values)
    document = copy.deepcopy(DOCUMENTS[address])
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(document) or [("id",)]))
        holder: Any = document
        for key in path[:-1]:
            holder = holder[key]
        act = draw(st.sampled_from(["replace", "replace", "remove", "add"]))
        if act == "remove" and isinstance(holder, dict):
            holder.pop(path[-1], None)
        elif act == "add" and isinstance(holder, dict):
            holder[draw(st.text(max_size=12) | nasty)] = draw(values)
        else:
            holder[path[-1]] = draw(values)
    return address, document


@pytest.fixture
def caller() -> Caller:
    """Somebody who may do everything, and what the documents name."""
    make_job("known")
    make_group("known", make_agent("known"))
    found = Caller(make_user())
    found.client.force_login(User.objects.get(username="root"))
    return found


# One database for all examples: a row that poisons a list stays in it.
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(request=requests())
def test_nothing_that_is_sent_is_a_fault_or_poisons_a_list(
    caller: Caller, request: tuple[str, Any]
) -> None:
    address, body = request
    sent = {"PUT": address} if address == "freeze/" else {"POST": address, "PUT": f"{address}fuzz/"}
    for method, path in sent.items():
        answer = caller.call(method, path, body)
        assert 200 <= answer.status_code < 500, answer.content[:500]
        if answer.status_code >= 400:
            assert answer.headers["Content-Type"] == "application/problem+json"
    listed, page = LISTS[address]
    assert caller.get(listed).status_code == 200
    assert caller.client.get(page).status_code == 200
