"""What a script wrote, as bytes to download: never interpreted, never shown as markup."""

from dataclasses import dataclass
from uuid import UUID

from django.http import HttpResponse

from fleet.models import Output, OutputChunk, Result, Stream

# An unfinished output is answered up to here; the final one is bounded when it is stored.
MOST_UNFINISHED = 1024 * 1024
UTF_8 = {"", "utf-8", "utf8", "65001", "cp65001"}


@dataclass(frozen=True, slots=True)
class Text:
    """The bytes of one stream; `omitted` of them, between head and tail, were not kept."""

    head: bytes = b""
    tail: bytes = b""
    omitted: int = 0
    finished: bool = True
    code_page: str = ""

    @property
    def data(self) -> bytes:
        """All that is there, with a line that says what is missing."""
        gap = f"\n[{self.omitted} bytes omitted]\n".encode() if self.omitted else b""
        return self.head + gap + self.tail


def text_of(command_id: UUID, stream: Stream) -> Text | None:
    """Return the final output, or what came so far; None where nothing is stored."""
    final = Output.objects.filter(command_id=command_id, stream=stream).first()
    if final is None:
        return _unfinished(command_id, stream)
    head, tail = bytes(final.head), bytes(final.tail)
    result = Result.objects.filter(pk=command_id).only("code_page").first()
    return Text(
        head,
        tail,
        omitted=max(0, final.total - len(head) - len(tail)),
        code_page=result.code_page if result else "",
    )


def _unfinished(command_id: UUID, stream: Stream) -> Text | None:
    chunks = OutputChunk.objects.filter(command_id=command_id, stream=stream).order_by("offset")
    data, found = bytearray(), False
    for chunk in chunks.iterator(chunk_size=16):
        found = True
        data += chunk.data
        if len(data) >= MOST_UNFINISHED:
            break
    return Text(bytes(data[:MOST_UNFINISHED]), finished=False) if found else None


def download(text: Text, name: str) -> HttpResponse:
    """Return the bytes as a file: plain text, not sniffed, not run, not framed."""
    plain = text.code_page.lower() in UTF_8
    response = HttpResponse(
        text.data, content_type="text/plain; charset=utf-8" if plain else "text/plain"
    )
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response.headers["Kanade-Output"] = "final" if text.finished else "unfinished"
    response.headers["Kanade-Omitted-Bytes"] = str(text.omitted)
    if not plain and text.code_page.isascii() and text.code_page.isprintable():
        response.headers["Kanade-Code-Page"] = text.code_page
    return response
