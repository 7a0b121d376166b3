"""Canonical documents: lossless, in one order, and the same for what means the same."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.rules.manifest import (
    execute_fingerprint,
    fingerprint,
    parse_group,
    parse_job,
    parse_schedule,
    to_document,
)
from tests.fleet.rules.manifest.documents import executing, job, schedule

FULL = {
    "tags": ["a"],
    "enabled": False,
    "runs_on": "backend",
    "misfire": "all",
    "tz": "utc",
    "on_failure": {"backoff": "off", "retry": {"backoff": "5m", "max": 2}},
    "constraints": {"max_concurrent": 5, "skip_dates": [" 2026-12-25 "], "window": "9:00-17:00"},
    "active": {"until": "2026-08-01", "from": "2026-07-01"},
    "starting_deadline": "30m",
    "jitter": "60s",
    "rollout": {"max_failures": 3, "waves": [{"delay": "0s", "group": "canary"}]},
    "target": {},
    "job_id": "inventory",
    "when": {"calendar": {"days": [1], "at": " 09:00 "}},
    "description": "x",
    "id": "full",
}


def test_a_document_has_one_order_and_no_defaults() -> None:
    document = FULL | {"constraints": {"window": "09:00 - 17:00", "max_concurrent": 5}}
    assert json.dumps(to_document(parse_schedule(document))) == json.dumps(
        {
            "id": "full",
            "description": "x",
            "when": {"calendar": {"at": " 09:00 ", "days": ["1"]}},
            "job_id": "inventory",
            "rollout": {"waves": [{"group": "canary", "delay": "0s"}], "max_failures": 3},
            "jitter": "60s",
            "starting_deadline": "30m",
            "active": {"from": "2026-07-01", "until": "2026-08-01"},
            "constraints": {"window": "09:00 - 17:00", "max_concurrent": 5},
            "on_failure": {"retry": {"max": 2, "backoff": "5m"}, "backoff": "off"},
            "tz": "utc",
            "misfire": "all",
            "enabled": False,
            "tags": ["a"],
        }
    )


def test_empty_parts_are_left_out() -> None:
    empty = schedule(active={}, constraints={}, on_failure={}, tags=[], origin={}, params={})
    assert to_document(parse_schedule(empty)) == to_document(parse_schedule(schedule()))


def test_the_caller_owns_the_document() -> None:
    found = parse_job(job(check={"name": "x"}))
    to_document(found)["check"]["name"] = "changed"  # type: ignore[index]  # a nested mapping
    assert to_document(found) == job(check={"name": "x"})


def test_a_document_with_keys_in_another_order_has_the_same_fingerprint() -> None:
    turned = dict(reversed(list(schedule(jitter="5m").items())))
    assert fingerprint(to_document(parse_schedule(turned))) == fingerprint(
        to_document(parse_schedule(schedule(jitter="5m")))
    )


def test_a_fingerprint_is_a_sha_256_that_stays() -> None:
    assert fingerprint({"b": 1, "a": "é"}) == fingerprint({"a": "é", "b": 1})
    assert fingerprint({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        pytest.param(job(description="other", tags=["x"], version="2"), True, id="not run"),
        pytest.param(executing(timeout="0m 30s"), True, id="the same duration"),
        pytest.param(executing(run_as="system"), True, id="a default written out"),
        pytest.param(executing(max_output="256KiB"), True, id="the default size"),
        pytest.param(executing(script="uname -r"), False, id="script"),
        pytest.param(executing(shell="bash"), False, id="shell"),
        pytest.param(executing(timeout="31s"), False, id="timeout"),
        pytest.param(executing(run_as="user"), False, id="run_as"),
        pytest.param(executing(cwd="/tmp"), False, id="cwd"),
        pytest.param(executing(params={"A": "1"}), False, id="params"),
        pytest.param(executing(max_output="1MiB"), False, id="max_output"),
    ],
)
def test_the_fingerprint_of_what_is_run_changes_with_what_is_run(
    changed: dict[str, object], same: bool
) -> None:
    ours = execute_fingerprint(parse_job(job()))
    assert (execute_fingerprint(parse_job(changed)) == ours) is same


DURATIONS = st.sampled_from(["0s", "90s", "1h 30m", "2h", "1day"])
NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,8}", fullmatch=True)
WHENS = st.one_of(
    st.sampled_from(["once", "once_per_version"]).map(lambda word: {"per_pc": word}),
    DURATIONS.map(lambda every: {"per_target": {"every": every}}),
    st.lists(st.sampled_from(["mon", "tue#2", "friL", 3, "*"]), max_size=3).map(
        lambda days: {"calendar": {"at": "09:30", "days": days}}
    ),
)
OPTIONAL = {
    "description": st.sampled_from(["x", "two\nlines\n"]),
    "target": st.fixed_dictionaries(
        {}, optional={"all": st.booleans(), "groups": st.lists(NAMES, max_size=2)}
    ),
    "jitter": DURATIONS,
    "active": st.just({"from": "2026-07-01"}),
    "constraints": st.fixed_dictionaries(
        {},
        optional={
            "window": st.sampled_from(["22:00-05:00", "09:00 - 17:00"]),
            "skip_dates": st.just(["2026-12-25"]),
            "max_concurrent": st.integers(1, 99),
        },
    ),
    "on_failure": st.fixed_dictionaries({}, optional={"backoff": st.sampled_from(["on", "off"])}),
    "tz": st.sampled_from(["local", "utc", "Europe/Budapest"]),
    "enabled": st.booleans(),
    "misfire": st.sampled_from(["skip", "once", "all"]),
    "tags": st.lists(NAMES, max_size=2),
}
SCHEDULES = st.fixed_dictionaries({"id": NAMES, "when": WHENS, "job_id": NAMES}, optional=OPTIONAL)


@given(SCHEDULES)
def test_a_canonical_schedule_parses_to_the_same_schedule(document: dict[str, object]) -> None:
    found = parse_schedule(document)
    again = parse_schedule(to_document(found))
    assert again == found
    assert json.dumps(to_document(again)) == json.dumps(to_document(found))


def test_a_canonical_group_and_job_parse_to_the_same() -> None:
    group = parse_group({"id": "office", "members": ["pc-2", "PC-1", "Pc-2"]})
    assert parse_group(to_document(group)) == group
    full = parse_job(executing(params={"A": "x", "B": {"required": True}}, max_output="1MiB"))
    assert parse_job(to_document(full)) == full
