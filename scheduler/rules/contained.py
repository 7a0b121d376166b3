"""The one place that catches everything: where one bad row must not stop the others."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger(__name__)


@contextmanager
def contained(what: str, **facts: object) -> Iterator[None]:
    """Log any error of the block with its traceback under `what`, and go on after it.

    `facts` name the row that failed. KeyboardInterrupt and SystemExit pass.
    """
    try:
        yield
    except Exception:  # the purpose of this function
        logger.exception(what, extra={"action": what, **facts})
