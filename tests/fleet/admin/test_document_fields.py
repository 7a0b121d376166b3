"""Between documents and fields nothing is lost, either way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.admin import when_fields
from fleet.admin.document_fields import (
    OTHER,
    Field,
    Kind,
    put,
    take,
    to_document,
    to_fields,
    words,
)
from fleet.admin.job_form import JobForm
from fleet.admin.schedule_form import ScheduleForm
from fleet.rules.documents import load_yaml

SCHEDULES: dict[str, dict[str, object]] = {
    "every key": {
        "id": "s",
        "description": "two\nlines",
        "job_id": "j",
        "params": {"NAME": "value"},
        "target": {"all": True, "groups": ["a", "b"], "pcs": ["pc-1"]},
        "rollout": {"waves": [{"group": "a", "delay": "0s"}], "max_failures": "10%"},
        "jitter": "5m",
        "starting_deadline": "30m",
        "active": {"from": "2026-01-01", "until": "2027-01-01"},
        "constraints": {"window": "22:00-05:00", "skip_dates": ["2026-12-24"], "max_concurrent": 3},
        "on_failure": {"retry": {"max": 2, "backoff": "5m"}, "backoff": "off"},
        "tz": "utc",
        "misfire": "once",
        "runs_on": "agent",
        "enabled": False,
        "tags": ["x y"],
        "origin": {"repo": "git"},
    },
    "few keys": {"id": "s", "job_id": "j"},
}


def there_and_back(document: dict[str, object], table: tuple[Field, ...]) -> dict[str, object]:
    """What the fields of a document say again, YAML fields read as the form reads them."""
    shown = to_fields(document, table)
    yaml_fields = {field.name for field in table if field.kind is Kind.YAML}
    values = {
        name: load_yaml(str(value))[0].value if name in yaml_fields and value else value
        for name, value in shown.items()
    }
    values = {name: None if name in yaml_fields and value == "" else value
              for name, value in values.items()}  # fmt: skip
    rest = load_yaml(str(shown[OTHER]))
    other = rest[0].value if rest else {}
    assert isinstance(other, dict)
    return to_document(values, table, other)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_survives_its_form(name: str) -> None:
    assert there_and_back(SCHEDULES[name], ScheduleForm.table) == SCHEDULES[name]


def test_a_job_survives_its_form() -> None:
    job: dict[str, object] = {
        "id": "j",
        "version": "1",
        "require_approval": True,
        "execute": {"shell": "sh", "script": " echo\n", "timeout": "5m", "max_output": "1MiB",
                    "params": {"A": {"required": True}}, "bypass_local_limit": True},
        "inventory": {"anything": [1, None]},
    }  # fmt: skip

    assert there_and_back(job, JobForm.table) == job


def test_keys_without_a_field_stand_as_yaml() -> None:
    shown = to_fields({"id": "j", "feed": {"a": 1}}, (Field("ident", "id"),))

    assert shown == {"ident": "j", "other": "feed:\n  a: 1\n"}


def test_taking_the_last_key_of_a_part_takes_the_part() -> None:
    document: dict[str, object] = {"a": {"b": {"c": 1}}, "d": 2}

    assert take(document, "a.b.c") == 1
    assert document == {"d": 2}
    assert take(document, "d.e") is None


def test_putting_makes_the_parts_on_the_way() -> None:
    document: dict[str, object] = {}
    put(document, "a.b", 1)
    put(document, "a.c", 2)

    assert document == {"a": {"b": 1, "c": 2}}


@pytest.mark.parametrize(
    ("text", "value"), [("20", 20), (" 20 ", 20), ("0x14", "0x14"), ("٣", "٣"), ("", None)]
)
def test_only_plain_digits_are_a_number(text: str, value: object) -> None:
    document = to_document({"n": text}, (Field("n", "n", Kind.NUMBER),), {})

    assert document.get("n") == value


@given(st.text(max_size=200))
def test_a_list_has_no_blank_entries(text: str) -> None:
    assert all(word == word.strip() != "" for word in words(text))


@pytest.mark.parametrize(
    "when",
    [
        {"per_pc": {"every": "6h"}},
        {"per_pc": "once"},
        {"per_pc": "once_per_version"},
        {"per_target": {"every": "1d"}},
        {"per_target": "once"},
        {"calendar": {"at": "09:00"}},
        {"calendar": {"at": "09:00", "days": ["mon-fri", "sun"]}},
        {"calendar": {"cron": "0 9 * * *"}},
    ],
    ids=str,
)
def test_every_when_survives_its_fields(when: dict[str, object]) -> None:
    fields = when_fields.to_fields(when)

    assert fields is not None
    assert when_fields.to_when(fields) == when


@pytest.mark.parametrize(
    "when",
    [
        None,
        {},
        {"per_pc": {"evry": "6h"}},
        {"calendar": {"cron": "x", "at": "y"}},
        {"a": 1, "b": 2},
    ],
    ids=str,
)
def test_a_when_that_the_fields_cannot_say_is_left_alone(when: object) -> None:
    assert when_fields.to_fields(when) is None
