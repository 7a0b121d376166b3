"""The pause after a dispatch: a run needs time to come back before anybody asks again."""

from datetime import datetime, timedelta

from fleet.rules.cooldown import LEEWAY
from fleet.rules.retries import RetryPolicy

MARGIN = timedelta(seconds=90)
SHORTEST, LONGEST = timedelta(seconds=90), timedelta(minutes=30)
NOTHING = timedelta(0)


def suppression_window(
    jitter: timedelta | None, timeout: timedelta | None, retry: RetryPolicy | None
) -> timedelta:
    """How long a dispatch mutes its machine: jitter, run and margin, then what retries take.

    None = not given or unreadable, which counts as nothing. The first part is kept between 90 s
    and half an hour; the retries come on top of that, without a ceiling.
    """
    run = timeout or NOTHING
    # Each part is cut first, so that no sum can overflow.
    waited = min(jitter or NOTHING, LONGEST) + min(run, LONGEST) + MARGIN
    plain = min(max(waited, SHORTEST), LONGEST)
    return plain + (retry.budget(run) if retry else NOTHING)


def muted_until(
    dispatched_at: datetime | None, *, window: timedelta, now: datetime
) -> datetime | None:
    """Until when the last dispatch mutes; None where it does not (any more).

    The end itself is no longer muted. A mark far in the future was set by a wrong clock and
    does not count.
    """
    if dispatched_at is None or dispatched_at > now + LEEWAY:
        return None
    until = dispatched_at + window
    return until if now < until else None
