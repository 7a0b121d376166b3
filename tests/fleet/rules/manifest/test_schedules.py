"""A schedule's manifest: fields, bounds, and what is refused alone or together."""

from datetime import date, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from fleet.rules.bounds import Bounds
from fleet.rules.manifest import (
    Constraints,
    ManifestError,
    Misfire,
    Problem,
    RunsOn,
    ScheduleManifest,
    parse_schedule,
)
from fleet.rules.retries import RetryPolicy
from fleet.rules.targets import FailureLimit, Rollout, Target, Wave
from fleet.rules.when import PerPc, PerTarget
from fleet.rules.windows import Window
from tests.fleet.rules.manifest.documents import schedule


def problems_of(document: object, local: ZoneInfo | None = None) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        parse_schedule(document, local=local)
    return [str(problem) for problem in caught.value.problems]


def test_a_small_schedule_is_read_with_its_defaults() -> None:
    assert parse_schedule(schedule()) == ScheduleManifest(
        id="inventory-6h",
        job_id="inventory",
        when=PerPc(every=timedelta(hours=6)),
        target=Target(all=True),
        document={},
    )


def test_every_field_of_a_schedule_is_read() -> None:
    found = parse_schedule(
        schedule(
            description="nightly",
            params={"DAYS": "7"},
            when={"per_target": {"every": "24h"}},
            target={"groups": ["office"], "pcs": ["PC-1"]},
            jitter="5m",
            starting_deadline="30m",
            active={"from": "2026-07-01", "until": "2026-08-01T12:00:00+09:00"},
            constraints={
                "window": "22:00-05:00",
                "skip_dates": ["2026-12-25"],
                "max_concurrent": 20,
            },
            on_failure={"retry": {"max": 2, "backoff": "5m"}, "backoff": "off"},
            tz="Europe/Budapest",
            enabled=False,
            tags=["night"],
            origin={"path": "a.yaml"},
        )
    )
    assert found == ScheduleManifest(
        id="inventory-6h",
        job_id="inventory",
        when=PerTarget(every=timedelta(hours=24)),
        description="nightly",
        params=(("DAYS", "7"),),
        target=Target(groups=("office",), pcs=("PC-1",)),
        jitter=timedelta(minutes=5),
        starting_deadline=timedelta(minutes=30),
        active=Bounds("2026-07-01", "2026-08-01T12:00:00+09:00"),
        constraints=Constraints(Window(time(22), time(5)), (date(2026, 12, 25),), 20),
        retry=RetryPolicy(2, timedelta(minutes=5)),
        on_failure_backoff=False,
        tz="Europe/Budapest",
        enabled=False,
        tags=("night",),
        origin=(("path", "a.yaml"),),
        document={},
    )


def calendar(**changes: object) -> dict[str, object]:
    return schedule(when={"calendar": {"at": "09:00"}}, **changes)


def test_waves_and_misfire_are_read() -> None:
    waves = [{"group": "canary", "delay": "0s"}, {"group": "wave1", "delay": "1h"}]
    document = calendar(rollout={"strategy": "wave", "waves": waves, "max_failures": "10%"})
    document["misfire"] = "once"
    del document["target"]
    found = parse_schedule(document)
    assert found.rollout == Rollout(
        (Wave("canary", timedelta()), Wave("wave1", timedelta(hours=1))),
        FailureLimit(10, percent=True),
    )
    assert (found.misfire, found.runs_on, found.warnings) == (Misfire.ONCE, RunsOn.BACKEND, ())


RETRY = {"max": 2, "backoff": "5m"}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        pytest.param(
            {"when": {"per_target": "once"}, "runs_on": "agent"}, "when.per_target", id="6.1#1"
        ),
        pytest.param(
            {"when": {"per_target": {"every": "24h"}}, "runs_on": "agent"},
            "when.per_target",
            id="6.1#2",
        ),
        pytest.param({"when": {"per_pc": "once"}, "runs_on": "agent"}, None, id="6.1#3"),
        pytest.param({"when": {"per_pc": {"every": "6x"}}}, "when.per_pc.every", id="6.1#4"),
        pytest.param({"jitter": "5x"}, "jitter", id="6.1#5"),
        pytest.param({"starting_deadline": "soon"}, "starting_deadline", id="6.1#6"),
        pytest.param({"jitter": "5m", "starting_deadline": "30m"}, None, id="6.1#7"),
        pytest.param({"active": {"from": "July 1st"}}, "active.from", id="6.1#8"),
        pytest.param(
            {"active": {"from": "2026-07-01", "until": "2026-08-01T12:00:00+09:00"}},
            None,
            id="6.1#9",
        ),
        pytest.param(
            {"active": {"from": "2026-08-01", "until": "2026-07-01"}},
            "active.from: must be strictly before until",
            id="6.1#10",
        ),
        pytest.param(
            {"active": {"from": "2026-07-01", "until": "2026-07-01"}},
            "active.from: must be strictly before until",
            id="6.1#11",
        ),
        pytest.param({"active": {"from": "2026-07-01"}}, None, id="6.1#12 from"),
        pytest.param({"active": {"until": "2026-07-01"}}, None, id="6.1#12 until"),
        pytest.param({"tags": ["ok", "  "]}, "tags[1]", id="6.1#13"),
        pytest.param(
            {"constraints": {"max_concurrent": 0}},
            "constraints.max_concurrent: 0 is out of bounds: write 1 to",
            id="6.1#14",
        ),
        pytest.param({"constraints": {"max_concurrent": 1}}, None, id="6.1#15 one"),
        pytest.param({"constraints": {"max_concurrent": 5}}, None, id="6.1#15 five"),
        pytest.param(
            {"constraints": {"max_concurrent": 5}, "runs_on": "agent"},
            "constraints.max_concurrent: works with runs_on: backend only",
            id="6.1#16",
        ),
        pytest.param(
            {"constraints": {"max_concurrent": 0}, "runs_on": "agent"},
            "constraints.max_concurrent: works with runs_on: backend only",
            id="6.1#17",
        ),
        pytest.param({"target": {}}, None, id="6.1#18 target empty"),
        pytest.param(
            {"when": {"per_pc": "once_per_version"}, "runs_on": "agent"},
            "when.per_pc: once_per_version needs runs_on: backend",
            id="24 once_per_version",
        ),
        pytest.param(
            {"when": {"on": ["startup"]}, "runs_on": "agent"},
            "when.on: events are not supported",
            id="7#15 ours: refused",
        ),
        pytest.param(
            {"constraints": {"require": {"ac_power": True}}},
            "constraints.require: is not supported",
            id="require",
        ),
        pytest.param({"constraints": {"window": "22:00"}}, "constraints.window", id="10.1 window"),
        pytest.param(
            {"constraints": {"window": "22:00-22:00"}}, "constraints.window", id="10.1 zero width"
        ),
        pytest.param(
            {"constraints": {"skip_dates": ["2026-01-01", "2026-13-01"]}},
            "constraints.skip_dates[1]",
            id="10.2 skip date",
        ),
        pytest.param({"constraints": {"skip_dates": [" 2026-01-01 "]}}, None, id="10.2 trimmed"),
        pytest.param({"on_failure": {"backoff": "sometimes"}}, "on_failure.backoff", id="backoff"),
        pytest.param({"on_failure": {"retry": {"max": 1}}}, "on_failure.retry.backoff", id="half"),
        pytest.param({"tz": "Mars/Base"}, "tz", id="tz"),
        pytest.param({"tz": "posixrules"}, "tz", id="T-31 posixrules"),
        pytest.param({"tz": "A" * 5000}, "tz", id="T-31 long"),
        pytest.param({"misfire": "later"}, "misfire", id="misfire"),
        pytest.param({"runs_on": "server"}, "runs_on", id="runs_on"),
        pytest.param({"enabled": "yes"}, "enabled: must be true or false, not text", id="Norway"),
        pytest.param({"jitter": "24h 1s"}, "jitter", id="T-30 jitter"),
        pytest.param({"jitter": "soon"}, "jitter", id="18#10"),
        pytest.param({"jitter": "0s"}, None, id="jitter 0s"),
        pytest.param({"starting_deadline": "0s"}, "starting_deadline", id="deadline 0s"),
        pytest.param({"starting_deadline": "7d"}, None, id="deadline 7 days"),
        pytest.param({"starting_deadline": "7d 1s"}, "starting_deadline", id="deadline more"),
        pytest.param({"cron": "0 9 * * *"}, "cron: write when", id="old cron"),
        pytest.param({"mode": "once_per_pc"}, "mode: write when", id="old mode"),
        pytest.param({"cooldown": "6h"}, "cooldown: write when", id="old cooldown"),
        pytest.param({"params": {"lower": "x"}}, "params.lower", id="params"),
        pytest.param(
            {"target": {"al": True}}, 'target.al: unknown key; did you mean "all"?', id="al"
        ),
        pytest.param({"target": {"pcs": ["../x"]}}, "target.pcs[0]", id="T-26 pcs"),
        pytest.param(
            {"target": {"groups": ["\u0440\u0430ypal"]}}, "target.groups[0]", id="T-27 groups"
        ),
        pytest.param({"target": {"all": 1}}, "target.all: must be true or false", id="all: 1"),
        pytest.param({"job_id": "a/b"}, "job_id", id="job_id"),
        pytest.param(
            {"constraints": None}, "constraints: must be a mapping", id="constraints null"
        ),
        pytest.param(
            {"constraints": {"window": None}},
            "constraints.window: remove the key",
            id="window null",
        ),
        pytest.param({"jittr": "5m"}, 'jittr: unknown key; did you mean "jitter"?', id="jittr"),
        pytest.param({"tragets": {}}, 'tragets: unknown key; did you mean "target"?', id="tragets"),
    ],
)
def test_one_change_of_a_valid_schedule(changes: dict[str, object], problem: str | None) -> None:
    if problem is None:
        parse_schedule(schedule(**changes))
    else:
        [found] = problems_of(schedule(**changes))
        assert found.startswith(problem)


@pytest.mark.parametrize(
    ("rollout", "problem"),
    [
        pytest.param({"waves": []}, "rollout.waves: must have at least one", id="waves []"),
        pytest.param({}, "rollout.waves: must have at least one", id="no waves"),
        pytest.param(
            {"waves": [{"group": "a", "delay": "0s"}, {"group": "b", "delay": "x"}]},
            "rollout.waves[1].delay",
            id="18#7 delay x",
        ),
        pytest.param(
            {"waves": [{"group": "a"}]}, "rollout.waves[0].delay: is required", id="no delay"
        ),
        pytest.param({"waves": [{"delay": "1h"}]}, "rollout.waves[0].group: is req", id="no group"),
        pytest.param({"waves": ["a"]}, "rollout.waves[0]: must be a mapping", id="no mapping"),
        pytest.param(
            {"waves": [{"group": "a", "delay": "0s"}], "max_failures": "101%"},
            "rollout.max_failures",
            id="101%",
        ),
        pytest.param(
            {"waves": [{"group": "a", "delay": "0s"}], "max_failures": -1},
            "rollout.max_failures",
            id="-1",
        ),
        pytest.param(
            {"waves": [{"group": "a", "delay": "0s"}], "strategy": "canary"},
            "rollout.strategy",
            id="strategy",
        ),
        pytest.param(
            {"waves": [{"group": "a", "delay": "31d"}]}, "rollout.waves[0].delay", id="31 days"
        ),
    ],
)
def test_a_bad_rollout_is_refused(rollout: dict[str, object], problem: str) -> None:
    [found] = problems_of(calendar(rollout=rollout))
    assert found.startswith(problem)


@pytest.mark.parametrize(
    "target", [pytest.param({}, id="18#2"), pytest.param({"all": True}, id="18#3 ours: refused")]
)
def test_a_rollout_without_waves_is_refused_whoever_is_meant(target: dict[str, object]) -> None:
    [found] = problems_of(calendar(rollout={"waves": []}, target=target))
    assert found.startswith("rollout.waves: must have at least one")


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (0, FailureLimit(0)),
        (3, FailureLimit(3)),
        ("0%", FailureLimit(0, percent=True)),
        ("100%", FailureLimit(100, percent=True)),
    ],
)
def test_a_failure_limit_is_a_count_or_a_percentage(text: object, limit: FailureLimit) -> None:
    waves = [{"group": "a", "delay": "0s"}]
    rollout = parse_schedule(calendar(rollout={"waves": waves, "max_failures": text})).rollout
    assert rollout is not None
    assert rollout.max_failures == limit


def test_a_rollout_of_an_agents_schedule_is_refused() -> None:
    rollout = {"waves": [{"group": "a", "delay": "0s"}]}
    [found] = problems_of(calendar(rollout=rollout, runs_on="agent"))
    assert found.startswith("rollout: needs runs_on: backend")


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"rollout": {"waves": [{"group": "a", "delay": "0s"}]}, "target": None}, "rollout"),
        ({"misfire": "once"}, "misfire"),
    ],
)
def test_what_has_no_effect_together_is_warned_of(changes: dict[str, object], path: str) -> None:
    document = {key: value for key, value in schedule(**changes).items() if value is not None}
    assert [warning.path for warning in parse_schedule(document).warnings] == [path]


def test_a_target_beside_waves_is_warned_of() -> None:
    rollout = {"waves": [{"group": "a", "delay": "0s"}]}
    found = parse_schedule(calendar(rollout=rollout))
    assert found.warnings == (
        Problem("target", "has no effect beside rollout: the groups of the waves are meant"),
    )


MIXED = {"from": "2026-07-01", "until": "2026-06-30T20:00:00+00:00"}


def test_a_period_is_compared_in_the_zone_that_local_means() -> None:
    parse_schedule(schedule(active=MIXED), local=ZoneInfo("Asia/Tokyo"))
    assert problems_of(schedule(active=MIXED), ZoneInfo("UTC")) == [
        "active.from: must be strictly before until"
    ]


def test_a_period_in_the_pcs_own_zone_is_refused_only_if_wrong_in_every_zone() -> None:
    document = schedule(active=MIXED, runs_on="agent")
    parse_schedule(document, local=ZoneInfo("UTC"))
    document["active"] = MIXED | {"until": "2026-06-30T08:00:00+00:00"}
    assert problems_of(document) == ["active.from: must be strictly before until"]


def test_local_is_the_servers_zone_and_utc_is_utc() -> None:
    tokyo = ZoneInfo("Asia/Tokyo")
    assert parse_schedule(schedule()).zone(tokyo) is tokyo
    assert parse_schedule(schedule(tz="utc")).zone(tokyo).key == "UTC"
    assert parse_schedule(schedule(tz="Europe/Budapest")).zone(tokyo).key == "Europe/Budapest"


@pytest.mark.parametrize("word", ["off", False])
def test_backing_off_is_switched_off_by_the_word_or_by_what_loaders_make_of_it(
    word: object,
) -> None:
    found = parse_schedule(schedule(on_failure={"backoff": word}))
    assert found.on_failure_backoff is False
    assert found.document["on_failure"] == {"backoff": "off"}


@pytest.mark.parametrize("word", ["on", True])
def test_backing_off_is_the_default(word: object) -> None:
    found = parse_schedule(schedule(on_failure={"backoff": word}))
    assert found.on_failure_backoff is True
    assert "on_failure" not in found.document


def test_a_schedule_that_is_no_mapping_has_one_problem() -> None:
    assert problems_of([1]) == ["must be a mapping (id, when, job_id), not a list"]


def test_an_empty_schedule_lacks_three_keys() -> None:
    assert [line.split(":")[0] for line in problems_of({})] == ["id", "when", "job_id"]
