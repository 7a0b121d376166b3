"""T-12, T-29, T-30, T-33: encodings, depth, keys, types, columns are exact, or nothing is taken."""

import json
import time
from typing import Any

import pytest
from django.apps import apps
from django.test import Client

from fleet.models import Freeze, Job, Schedule
from tests.fleet.operator_api.callers import Caller, errors, make_token, make_user, ok
from tests.kanade.routes import KEY, make_rows

pytestmark = pytest.mark.django_db

JOB = {"id": "new", "version": "1", "execute": {"shell": "sh", "script": "x", "timeout": "1s"}}
JSON = "application/json"
OTHER_ONE = "\N{ARABIC-INDIC DIGIT ONE}"


def send(
    body: bytes, *, content_type: str = JSON, path: str = "/api/v1/jobs/", **headers: str
) -> Any:
    _, text = make_token(make_user())
    return Client().generic(
        "POST" if "jobs" in path else "PUT",
        path,
        body,
        content_type,
        headers={"authorization": f"Bearer {text}"} | headers,
    )


def job(script: str) -> bytes:
    """A job whose script is this JSON text, quotes included."""
    return (
        '{"id":"new","version":"1","execute":{"shell":"sh","timeout":"1s","script":' + script + "}}"
    ).encode("utf-8", "surrogatepass")


NOT_JSON: list[tuple[str, bytes]] = [
    ("empty", b""),
    ("blank", b"  "),
    ("not JSON", b"{id: new}"),
    ("a trailing comma", b'{"id": "new",}'),
    ("two documents", b"{}{}"),
    ("a byte order mark", b"\xef\xbb\xbf" + json.dumps(JOB).encode()),
    ("utf-16", json.dumps(JOB).encode("utf-16")),
    ("latin-1", '{"id": "é"}'.encode("latin-1")),
    ("a duplicate key", b'{"id":"a","id":"b"}'),
    ("a duplicate key inside", b'{"execute":{"shell":"sh","shell":"cmd"}}'),
    ("NaN", b'{"id": NaN}'),
    ("Infinity", b'{"id": -Infinity}'),
    ("a float that overflows", b'{"id": 1e400}'),
    ("an integer beyond 2**53", b'{"id": 9007199254740993}'),
    ("a million digits", b'{"id": ' + b"9" * 1_000_000 + b"}"),
    ("a deep list", b"[" * 100_000),
    ("a deep object", b'{"a":' * 100_000),
    ("a deep and closed list", b"[" * 20_000 + b"]" * 20_000),
    ("many values", b"[" + b"1," * 20_000 + b"1]"),
    ("half a surrogate pair", job('"\\ud800"')),
    ("a raw surrogate", job('"\ud800"')),
    ("NUL", job('"a\\u0000b"')),
    ("a control character", job('"a\\u001bb"')),
    ("a list", b"[]"),
    ("a text", b'"new"'),
    ("a number", b"1"),
    ("null", b"null"),
    ("more than a mebibyte", b'{"id": "' + b"x" * 1_048_576 + b'"}'),
]


@pytest.mark.parametrize("path", ["/api/v1/jobs/", "/api/v1/freeze/"], ids=["jobs", "freeze"])
@pytest.mark.parametrize(("what", "body"), NOT_JSON, ids=[what for what, _ in NOT_JSON])
def test_a_body_that_is_not_acceptable_json_is_refused_quickly(
    path: str, what: str, body: bytes
) -> None:
    started = time.monotonic()

    answer = send(body, path=path)

    assert answer.status_code == 400, what
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert time.monotonic() - started < 5
    assert Job.objects.count() == 0
    assert Freeze.objects.get().is_set is False


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "text/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=utf-7",
        "application/json; charset=utf-16",
        "application/json; charset=latin-1",
        "application/xml",
        "application/x-yaml",
        "application/vnd.api+json",
        "x",
        "",
    ],
)
def test_another_kind_of_body_is_not_supported(content_type: str) -> None:
    answer = send(json.dumps(JOB).encode(), content_type=content_type)

    assert answer.status_code == 415
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert Job.objects.count() == 0


@pytest.mark.parametrize("content_type", [JSON, f"{JSON}; charset=utf-8", f"{JSON};charset=UTF-8"])
def test_json_in_utf_8_is_taken(content_type: str) -> None:
    assert send(json.dumps(JOB).encode(), content_type=content_type).status_code == 201


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "gzip, identity"])
def test_a_compressed_body_is_not_unpacked(encoding: str) -> None:
    answer = send(json.dumps(JOB).encode(), **{"content-encoding": encoding})

    assert answer.status_code == 415
    assert Job.objects.count() == 0


@pytest.mark.parametrize("encoding", ["chunked", "gzip, chunked", "identity"])
def test_a_body_without_a_length_is_not_taken_for_no_body(encoding: str) -> None:
    make_rows()
    _, text = make_token(make_user())

    # What a server hands on for a body in chunks: no length, and a stream that nobody reads.
    answer = Client().post(
        "/api/v1/schedules/x/disable/",
        HTTP_TRANSFER_ENCODING=encoding,
        CONTENT_LENGTH="",
        CONTENT_TYPE=JSON,
        headers={"authorization": f"Bearer {text}"},
    )

    assert answer.status_code == 411
    assert Schedule.objects.get().enabled is True


def test_a_file_is_refused_everywhere() -> None:
    make_rows()
    _, text = make_token(make_user())
    file = b'--x\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\nx\r\n--x--\r\n'
    for path in ("jobs/", "schedules/", "groups/", "jobs/x/exec/", "agents/x/revoke/"):
        answer = Client().generic(
            "POST",
            f"/api/v1/{path}",
            file,
            "multipart/form-data; boundary=x",
            headers={"authorization": f"Bearer {text}"},
        )
        assert answer.status_code == 415, path


@pytest.mark.parametrize(
    ("timeout", "status"),
    [
        ("1s", 201),
        ("24h", 201),
        ("999ms", 400),
        ("24h 1s", 400),
        ("0s", 400),
        ("-1s", 400),
        (f"{OTHER_ONE}s", 400),
        ("1e3s", 400),
        (30, 400),
        (True, 400),
        (None, 400),
        ("9" * 400 + "s", 400),
    ],
)
def test_bounds_hold_to_the_last_step(timeout: object, status: int) -> None:
    body = {**JOB, "execute": {"shell": "sh", "script": "x", "timeout": timeout}}

    assert Caller(make_user()).post("jobs/", body).status_code == status


@pytest.mark.parametrize(
    ("cap", "status"),
    [
        (1, 201),
        (100_000, 201),
        (0, 400),
        (-1, 400),
        (100_001, 400),
        (2**31, 400),
        (2**53, 400),
        (1.0, 400),
        (1.5, 400),
        (True, 400),
        ("1", 400),
        (OTHER_ONE, 400),
        (None, 400),
    ],
)
def test_numbers_are_whole_numbers_within_their_bounds(cap: object, status: int) -> None:
    make_rows()
    body = {
        "id": "new",
        "when": {"per_pc": "once"},
        "job_id": "x",
        "constraints": {"max_concurrent": cap},
    }

    assert Caller(make_user()).post("schedules/", body).status_code == status


# Each address that takes a body, with one that is fine.
BODIES: list[tuple[str, str, dict[str, Any]]] = [
    ("post", "jobs/", JOB),
    ("put", "jobs/x/", JOB | {"id": "x", "version": "9"}),
    ("patch", "jobs/x/", {"description": "y"}),
    ("post", "jobs/x/exec/", {"target": {"all": True}}),
    ("post", "jobs/x/kill/", {}),
    ("post", "jobs/x/revoke/", {}),
    ("post", "jobs/x/unrevoke/", {}),
    ("post", "jobs/x/approve/", {}),
    ("post", "schedules/", {"id": "new", "when": {"per_pc": "once"}, "job_id": "x"}),
    ("put", "schedules/x/", {"id": "x", "when": {"per_pc": "once"}, "job_id": "x"}),
    ("patch", "schedules/x/", {"jitter": "1m"}),
    ("post", "schedules/x/enable/", {}),
    ("post", "schedules/x/disable/", {}),
    ("post", "schedules/x/fire/", {}),
    ("post", "groups/", {"id": "new"}),
    ("put", "groups/x/", {"id": "x"}),
    ("patch", "groups/x/", {"description": "y"}),
    ("put", "agents/x/groups/", {"groups": []}),
    ("post", "agents/x/groups/", {"group": "x"}),
    ("post", "agents/x/revoke/", {}),
    ("post", "agents/x/accept/", {}),
    ("post", "agents/-/accept/", {"pcs": ["x"]}),
    ("post", "agents/x/take-over/", {}),
    ("post", "agents/x/take-over-record/", {"old": "x"}),
    ("post", "agents/x/dismiss/", {}),
    ("post", "agents/x/rotate/", {}),
    ("post", f"executions/{KEY}/kill/", {}),
    ("post", f"executions/{KEY}/approve/", {}),
    ("post", f"executions/{KEY}/retry/", {}),
    ("put", "freeze/", {"reason": "x"}),
]
ODD = {
    "__class__", "__proto__", "constructor", "pk", "_state", "is_superuser", "is_staff", "user_id",
    "created_by", "approved_by", "approved_at", "slug", "set_name", "owner", "csrfmiddlewaretoken",
    "ID", "id ", "execute.script", "target[all]", "", " ", "$where", "override_freeze ",
}  # fmt: skip
# Columns whose name is also a key of some manifest or body.
KEYS = {
    "id", "name", "description", "enabled", "version", "target", "tz", "reason", "when", "job_id",
    "from", "until", "tags", "origin", "override_freeze", "group", "groups", "members", "deadline",
    "revision", "params", "runs_on",
}  # fmt: skip


def columns() -> set[str]:
    """The columns of every table of the fleet that no document has as a key."""
    models = apps.get_app_config("fleet").get_models()
    return {field.attname for model in models for field in model._meta.concrete_fields} - KEYS


@pytest.mark.parametrize(
    ("method", "path", "body"), BODIES, ids=[f"{method} {path}" for method, path, _ in BODIES]
)
def test_no_column_is_written_that_is_no_key(method: str, path: str, body: dict[str, Any]) -> None:
    make_rows()
    caller = Caller(make_user())
    before = contents()
    names = sorted(columns() | ODD)
    for start in range(0, len(names), 80):
        some = names[start : start + 80]

        answer = caller.call(method, path, body | dict.fromkeys(some, 1))

        assert answer.status_code == 400, answer.content[:500]
        told = json.dumps(answer.json(), ensure_ascii=False)
        assert all(name in told for name in some)
    assert contents() == before


def contents() -> object:
    """Everything that these addresses could change."""
    tables = ("job", "jobrevision", "schedule", "group", "membership", "agent", "execution",
              "command", "freeze")  # fmt: skip
    return [
        list(apps.get_model("fleet", table).objects.order_by("pk").values()) for table in tables
    ]


def test_a_schedule_is_not_armed_by_a_column_of_that_name() -> None:
    make_rows()
    before = Schedule.objects.values().get()

    answer = Caller(make_user()).patch("schedules/x/", {"next_fire_at": "2026-01-01T00:00:00Z"})

    assert list(errors(answer)) == ["next_fire_at"]
    assert Schedule.objects.values().get() == before


def test_parameters_reach_the_script_as_they_are() -> None:
    make_rows()
    caller = Caller(make_user())
    value = "; rm -rf / $(id) `id` %PATH% ${HOME}\n\"'\\ {{ 7*7 }} {% now %}"
    params = {"MESSAGE": {"default": value}}
    body = {**JOB, "execute": {"shell": "sh", "script": "x", "timeout": "1s", "params": params}}

    assert ok(caller.post("jobs/", body), 201)["execute"]["params"] == params


@pytest.mark.parametrize("name", ["path", "LD PRELOAD", "A;B", "1A", "", "A" * 65, "É", "a-b"])
def test_a_parameter_has_a_plain_name(name: str) -> None:
    execute = {"shell": "sh", "script": "x", "timeout": "1s", "params": {name: "v"}}

    assert Caller(make_user()).post("jobs/", {**JOB, "execute": execute}).status_code == 400
    assert Job.objects.count() == 0
