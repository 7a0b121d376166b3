"""One event, one line: text for a person at a terminal, JSON for a collector.

Control characters never reach the line, so that a host name or a path cannot forge an entry.
"""

import structlog
from django.core.exceptions import ImproperlyConfigured

# What the standard library puts on every record; all else was given by `extra=`.
_TIMES = structlog.processors.TimeStamper(fmt="iso", utc=True)


def escape_controls(
    _logger: object, _name: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Replace control characters and line separators in every text of the event."""
    return {key: _escaped(value) for key, value in event.items()}


def _escaped(value: object) -> object:
    if not isinstance(value, str):
        return value
    return "".join(
        char if char.isprintable() or char == " " else char.encode("unicode_escape").decode()
        for char in value
    )


def configuration(*, level: str, form: str) -> dict[str, object]:
    """Return Django's LOGGING for a level and a form (`json` or `text`)."""
    if form not in {"json", "text"}:
        raise ImproperlyConfigured(f"LOG_FORMAT is {form!r}; use json or text")
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "event"])
    )
    before: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        _TIMES,
    ]
    after: list[structlog.typing.Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.format_exc_info,
        escape_controls,
        renderer,
    ]
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": before,
                "processors": after,
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": level.upper()},
        "loggers": {
            # The server's own access lines carry raw paths; the proxy keeps that log.
            "uvicorn.access": {"level": "WARNING"},
        },
    }
