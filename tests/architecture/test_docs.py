"""The docs follow the code."""

import re

import pytest

from kanade.environment import RETENTION_DAYS
from tests.architecture.commands_page import PAGE, page
from tests.architecture.tree import ROOT

READS = re.compile(
    r'env\.\w+\(\s*"([A-Z_]+)"|secret\(env, "([A-Z_]+)"|environ\.get\("(KANADE_\w+)"'
)


def variables() -> set[str]:
    found: set[str] = set()
    for name in ("settings.py", "environment.py"):
        text = (ROOT / "kanade" / name).read_text(encoding="utf-8")
        found |= {next(filter(None, match.groups())) for match in READS.finditer(text)}
    return found | set(RETENTION_DAYS)


def test_the_settings_page_names_every_variable_that_is_read() -> None:
    page = (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")

    assert {name for name in variables() if f"`{name}`" not in page} == set()


DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(path: object) -> None:
    document = ROOT / str(path)
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+)", document.read_text(encoding="utf-8"))

    assert [target for target in targets if not (document.parent / target).exists()] == []


def test_the_page_of_the_commands_is_their_own_help() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


def test_the_index_of_decisions_names_each_by_its_title() -> None:
    folder = ROOT / "docs/decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    missing = []
    for path in sorted(folder.glob("0*.md")):
        title = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        if f"[{title}]({path.name})" not in index:
            missing.append(path.name)

    assert missing == []
