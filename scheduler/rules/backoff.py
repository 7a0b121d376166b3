"""How long a failed run waits before it is tried again."""

from datetime import timedelta

from scheduler.rules.fire import Retry

# min * 2^n passes every allowed max before this, unless min is 0.
LARGEST_SHIFT = 31


def backoff(policy: Retry, failures: int) -> timedelta:
    """Return the delay after `failures` earlier retries: min doubled that often, at most max.

    A min above max gives max; a min of 0 gives 0 for ever.
    """
    grown = policy.min << min(failures, LARGEST_SHIFT)
    return timedelta(seconds=min(policy.max, grown))


def may_retry(policy: Retry | None, failures: int) -> bool:
    """Whether another try is allowed after `failures` earlier retries."""
    return policy is not None and failures < policy.times
