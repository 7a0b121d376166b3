"""The examples of the page for other applications run as they stand there."""

import re

import pytest

from scheduler import public
from tests.architecture.tree import ROOT

PAGE = ROOT / "docs/howto/use-the-scheduler.md"


@pytest.mark.django_db
def test_the_examples_of_the_page_hold() -> None:
    text = PAGE.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "example"}
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))

    for block in blocks:
        # Blank lines before it, so that a traceback names the line of the page.
        before = "\n" * (text[: block.start(1)].count("\n"))
        exec(compile(before + block[1], str(PAGE), "exec"), names)

    assert len(blocks) == 10


def test_the_page_names_everything_that_the_door_exports() -> None:
    text = PAGE.read_text(encoding="utf-8")
    machinery = {"ContentionError", "NoSuchTaskError", "Nothing", "QueueHealth", "TaskBuilder"}
    machinery |= {"pruner", "queue_health", "record_act", "wake"}

    assert {name for name in public.__all__ if name not in text} <= machinery
