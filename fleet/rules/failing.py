"""A machine that keeps failing is asked less and less often."""

from datetime import datetime, timedelta

LONGEST_PAUSE = timedelta(hours=1)


def pause_after(failures: int, window: timedelta) -> timedelta:
    """How long to wait after the last of `failures` failed runs in a row (1 or more).

    It doubles from the suppression window up to an hour, and is never shorter than the window.
    """
    pause = window
    for _ in range(failures - 1):
        if pause >= LONGEST_PAUSE:
            break
        pause *= 2
    return max(window, min(pause, LONGEST_PAUSE))


def backs_off_until(
    failures: int, last_failed_at: datetime | None, *, window: timedelta
) -> datetime | None:
    """Until when a failing machine is left alone; None where none failed last."""
    if failures < 1 or last_failed_at is None:
        return None
    return last_failed_at + pause_after(failures, window)
