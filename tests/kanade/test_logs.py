"""T-24: one event is one line, whatever a host name, a path or a script's name holds."""

import io
import json
import logging
import logging.config
from collections.abc import Iterator

import pytest
from django.core.exceptions import ImproperlyConfigured

from kanade import logs

HOSTILE = [
    "pc-1\r\nlevel=critical event=forged",
    "pc-1\n\n",
    "\x1b[2J\x1b[31mred",
    "line\u2028separator\u2029paragraph\x85next",
    "\x00\x07\x7f\x9b",
    "\u202egnp.exe",
]


@pytest.fixture(params=["json", "text"])
def sink(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    """What the handler of the site's own configuration writes, in either form."""
    parts = logs.configuration(level="INFO", form=request.param)
    formatter = parts["formatters"]["line"]  # type: ignore[index]  # a dict of dicts
    formatter = dict(formatter)
    made = formatter.pop("()")(**formatter)
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(made)
    logger = logging.getLogger("kanade.tests.logs")
    logger.addHandler(handler)
    logger.propagate = False
    logger.setLevel(logging.INFO)
    yield written
    logger.removeHandler(handler)


@pytest.mark.parametrize("words", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_text_stays_in_its_line(words: str, sink: io.StringIO) -> None:
    log = logging.getLogger("kanade.tests.logs")

    log.info("agent %s reported", words, extra={"path": words})
    log.info("the next event")

    written = sink.getvalue()
    assert written.endswith("\n")
    assert len(written.splitlines()) == 2
    assert all(char.isprintable() for char in written.replace("\n", ""))


def test_a_traceback_with_hostile_words_stays_in_its_line(sink: io.StringIO) -> None:
    log = logging.getLogger("kanade.tests.logs")

    try:
        raise ValueError(HOSTILE[0])
    except ValueError:
        log.exception("failed")

    assert len(sink.getvalue().splitlines()) == 1
    assert "ValueError" in sink.getvalue()


def test_json_lines_parse_and_carry_what_was_given(sink: io.StringIO) -> None:
    log = logging.getLogger("kanade.tests.logs")

    log.warning("held", extra={"agent": HOSTILE[0]})

    if not sink.getvalue().startswith("{"):
        assert "level='warning'" in sink.getvalue()
        return
    event = json.loads(sink.getvalue())
    assert (event["level"], event["event"]) == ("warning", "held")
    assert event["agent"] == "pc-1\\r\\nlevel=critical event=forged"


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match="use json or text"):
        logs.configuration(level="INFO", form="xml")
