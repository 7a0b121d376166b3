"""Run a body: whatever it does, it ended, and how is an ordinary value."""

import logging
import traceback
from collections.abc import Callable
from datetime import datetime

from scheduler.registry import REGISTRY, Hook
from scheduler.rules.claims import Claim, Ending
from scheduler.rules.fire import Fire, Nothing, PermanentError
from scheduler.rules.outcomes import Ended, Failed, Succeeded
from scheduler.rules.payload import PayloadError, require_storable
from scheduler.rules.texts import clean_text

logger = logging.getLogger(__name__)

Prepared = tuple[Hook, Fire, int, str]
LONGEST_ERROR = 4_000
LONGEST_TRACE = 20_000


def execute(claim: Claim, clock: Callable[[], datetime]) -> Ending:
    """Run the body of a claim in this thread; `clock` is read when it ended."""
    return Ending(claim, _ended(claim), clock())


def _ended(claim: Claim) -> Ended:
    try:
        result = REGISTRY.get(claim.kind).handler(claim.fire)
    except PermanentError as error:
        return _failure(error, permanent=True)
    # SystemExit too: a body that tries to end the process has failed, no more.
    except BaseException as error:  # noqa: BLE001  # the one place where bodies are contained
        return _failure(error, permanent=False)
    if isinstance(result, Nothing):
        return Succeeded(silent=True)
    try:
        return Succeeded(require_storable(result, "the result"))
    except PayloadError as error:
        # The body has had its effect; running it again would only repeat that.
        return _failure(error, permanent=True)


def _failure(error: BaseException, *, permanent: bool) -> Failed:
    shown = "".join(traceback.format_exception_only(error)).strip()
    trace = "".join(traceback.format_exception(error))
    return Failed(
        error=clean_text(shown, most=LONGEST_ERROR),
        trace=clean_text(trace[-LONGEST_TRACE:], most=LONGEST_TRACE),
        permanent=permanent,
    )


def call_hook(prepare: Callable[[], Prepared | None]) -> None:
    """Call a hook in this thread; whatever it raises is logged, and its task goes on."""
    try:
        prepared = prepare()
        if prepared is not None:
            hook, fire, count, error = prepared
            hook(fire, count, error)
    except BaseException:
        logger.exception("hook failed", extra={"action": "hook failed"})
