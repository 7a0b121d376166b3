"""How often an agent tries again, and how long that may take."""

from datetime import timedelta

import pytest

from fleet.rules.manifest import ManifestError, parse_schedule
from fleet.rules.retries import RetryPolicy
from tests.fleet.rules.manifest.documents import schedule


def retry_of(most: object, backoff: object) -> RetryPolicy | None:
    retry = {"max": most, "backoff": backoff}
    return parse_schedule(schedule(on_failure={"retry": retry})).retry


@pytest.mark.parametrize(
    ("most", "backoff", "seconds"),
    [
        pytest.param(1, "30s", 30, id="11#1a"),
        pytest.param(3, "10m", 600, id="11#1b, lowered to 600"),
        pytest.param(10, "1h", 3600, id="11#1c"),
        pytest.param(3, "1s", 1, id="11#5"),
        pytest.param(3, "1500ms", 1, id="11#6 cut to whole seconds"),
        pytest.param(3, "24h", 86400, id="T-30 longest"),
    ],
)
def test_a_retry_policy_is_read(most: int, backoff: str, seconds: int) -> None:
    found = retry_of(most, backoff)
    assert found is not None
    assert (found.max, found.backoff_seconds, found.attempts) == (most, seconds, most + 1)


@pytest.mark.parametrize(
    ("most", "backoff", "path"),
    [
        pytest.param(0, "10m", "max", id="11#2a"),
        pytest.param(11, "10m", "max", id="11#2b"),
        pytest.param(1000, "10m", "max", id="11#2c"),
        pytest.param(3, "soon", "backoff", id="11#3"),
        pytest.param(3, "0s", "backoff", id="11#4a"),
        pytest.param(3, "500ms", "backoff", id="11#4b"),
        pytest.param(3, "999ms", "backoff", id="11#4c"),
        pytest.param(3, "24h 1s", "backoff", id="T-30 too long"),
        pytest.param("3", "10m", "max", id="text"),
        pytest.param(3.0, "10m", "max", id="T-30 1.0"),
        pytest.param(True, "10m", "max", id="true"),
        pytest.param(2**63, "10m", "max", id="T-30 2^63"),
    ],
)
def test_a_bad_retry_policy_is_refused(most: object, backoff: object, path: str) -> None:
    with pytest.raises(ManifestError) as caught:
        retry_of(most, backoff)
    assert {problem.path for problem in caught.value.problems} == {f"on_failure.retry.{path}"}


def test_no_policy_is_none() -> None:
    assert parse_schedule(schedule()).retry is None


@pytest.mark.parametrize(
    ("policy", "timeout", "budget"),
    [
        (RetryPolicy(3, timedelta(minutes=1)), 30, 270),
        (RetryPolicy(10, timedelta(minutes=10)), 300, 9000),
        (RetryPolicy(1, timedelta(seconds=30)), 3600, 3630),
        (RetryPolicy(2, timedelta(milliseconds=1500)), 60, 122),
    ],
)
def test_the_budget_covers_every_further_attempt(
    policy: RetryPolicy, timeout: int, budget: int
) -> None:
    assert policy.budget(timedelta(seconds=timeout)) == timedelta(seconds=budget)
