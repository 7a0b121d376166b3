"""Reads pages the way a browser does: by their elements, never by their text."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Element:
    """One element of a page."""

    tag: str
    attributes: dict[str, str]
    text: str = ""


@dataclass
class Page(HTMLParser):
    """The elements of a page in their order."""

    elements: list[Element] = field(default_factory=list)

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements = []
        self._open: list[Element] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.elements.append(element)
        self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        for index in range(len(self._open) - 1, -1, -1):
            if self._open[index].tag == tag:
                del self._open[index:]
                return

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

    def all(self, tag: str, **attributes: str) -> Iterator[Element]:
        """The elements of that tag that have these attributes (`class_` is a word of the class)."""
        for element in self.elements:
            if element.tag == tag and all(
                _has(element, name, value) for name, value in attributes.items()
            ):
                yield element

    def shape(self) -> Counter[tuple[str, tuple[str, ...]]]:
        """Which tags with which attributes there are, and how many."""
        return Counter(
            (element.tag, tuple(sorted(element.attributes))) for element in self.elements
        )


def _has(element: Element, name: str, value: str) -> bool:
    if name == "class_":
        return value in element.attributes.get("class", "").split()
    return element.attributes.get(name.replace("_", "-")) == value


def errors_at(page: Page, field_name: str) -> str:
    """What the page says at a field of a form; empty where it finds nothing wrong there."""
    rows = page.all("div", class_=f"field-{field_name}")
    wrong = [row.text for row in rows if "errors" in row.attributes["class"].split()]
    return " ".join(" ".join(wrong).split())


def faults(html: str) -> list[str]:
    """What a page has that the policy forbids: inline scripts, styles and handlers."""
    found = []
    page = Page(html)
    for element in page.elements:
        if element.tag == "style":
            found.append("a style element")
        if element.tag == "script" and "src" not in element.attributes:
            found.append("an inline script")
        for name, value in element.attributes.items():
            if name == "style" or name.startswith("on"):
                found.append(f"{name} of {element.tag}")
            if name in {"href", "src", "action", "formaction"} and is_foreign(value):
                found.append(f"{name} leads to {value[:40]}")
    return found


def is_foreign(address: str) -> bool:
    """Whether an address leaves the site, or is no address at all."""
    plain = address.strip().lower()
    return plain.startswith(("http:", "https:", "//", "javascript:", "vbscript:", "data:"))
