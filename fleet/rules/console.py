"""A script's bytes as text for a page: decoded by its code page, terminal control made harmless."""

import re
from dataclasses import dataclass

from scheduler.rules.texts import clean_text

# How much of either end a page shows; all of it is in the download.
SHOWN_BYTES = 64 * 1024
_FALLBACK = "utf-8"
# Colours, cursor moves and window titles: they say nothing on a page.
_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")


@dataclass(frozen=True, slots=True)
class Shown:
    """What a page shows of one stream: its beginning, how many bytes are left out, its end."""

    head: str
    tail: str
    total: int
    # Bytes between head and tail that the PC did not send, and that only the download has.
    cut: int
    hidden: int

    @property
    def is_empty(self) -> bool:
        """Whether the script wrote nothing here."""
        return self.total == 0


def decoded(data: bytes, code_page: str) -> str:
    """The bytes as text; what the code page cannot say becomes a replacement character."""
    try:
        return data.decode(code_page or _FALLBACK, "replace")
    except (LookupError, ValueError):
        return data.decode(_FALLBACK, "replace")


def readable(data: bytes, code_page: str = "") -> str:
    """Text for a page: no terminal sequences, LF line ends, other controls as visible escapes."""
    text = _TERMINAL.sub("", decoded(data, code_page))
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return clean_text(text, most=len(text) * 6 + 1)


def shown(head: bytes, tail: bytes, *, total: int, code_page: str = "") -> Shown:
    """What a page shows of a stored stream; `total` is what the script wrote in all."""
    cut = max(total - len(head) - len(tail), 0)
    if not cut:
        whole = head + tail
        if len(whole) <= 2 * SHOWN_BYTES:
            return Shown(readable(whole, code_page), "", total, 0, 0)
        head, tail = whole[:-SHOWN_BYTES], whole[-SHOWN_BYTES:]
    first, last = head[:SHOWN_BYTES], tail[-SHOWN_BYTES:]
    hidden = len(head) + len(tail) - len(first) - len(last)
    return Shown(readable(first, code_page), readable(last, code_page), total, cut, hidden)
