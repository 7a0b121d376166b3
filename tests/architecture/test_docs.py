"""The docs follow the code."""

import re

import pytest

from tests.architecture.tree import ROOT

READS = re.compile(
    r'env\.\w+\(\s*"([A-Z_]+)"|secret\(env, "([A-Z_]+)"|environ\.get\("(KANADE_\w+)"'
)


def variables() -> set[str]:
    found: set[str] = set()
    for name in ("settings.py", "environment.py"):
        text = (ROOT / "kanade" / name).read_text(encoding="utf-8")
        found |= {next(filter(None, match.groups())) for match in READS.finditer(text)}
    return found


def test_the_settings_page_names_every_variable_that_is_read() -> None:
    page = (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")

    assert {name for name in variables() if f"`{name}`" not in page} == set()


DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(path: object) -> None:
    document = ROOT / str(path)
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+)", document.read_text(encoding="utf-8"))

    assert [target for target in targets if not (document.parent / target).exists()] == []
