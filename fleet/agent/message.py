"""What one exchange says: everything that the server should hear, in at most four mebibytes."""

import json
from base64 import b64encode
from dataclasses import dataclass
from datetime import UTC, datetime

from fleet.agent.attempts import CommandRun
from fleet.agent.outbox import Outbox
from fleet.agent.output import Chunk
from fleet.agent.work import Started, Work

PROTOCOL = 1
# Results first; live output is a convenience and takes what a few hundred kilobytes hold.
_RESULT_BYTES = 3_300_000
_LIVE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class News:
    """What an exchange carries, to be ticked off once the server has answered."""

    results: list[dict[str, object]]
    started: list[Started]
    live: list[tuple[CommandRun, Chunk]]

    @property
    def result_ids(self) -> list[str]:
        """The commands whose results are carried."""
        return [str(result["command"]) for result in self.results]


def gather(work: Work, outbox: Outbox, *, one_by_one: bool) -> News:
    """Collect what there is to say; `one_by_one` after the server has refused a whole message."""
    results = outbox.due(most_bytes=0 if one_by_one else _RESULT_BYTES)
    live, left = [], _LIVE_BYTES
    for run, chunk in work.live():
        left -= len(chunk.data)
        if left < 0:
            break
        live.append((run, chunk))
    return News(results, work.started(), [] if one_by_one else live)


def encode(
    news: News,
    *,
    epoch: int | None,
    seq: int,
    boot_id: str,
    fingerprint: str,
    facts: dict[str, object] | None,
    holding: list[str],
    steady_s: float,
) -> bytes:
    """The body of the exchange; `facts` None where they have not changed."""
    body: dict[str, object] = {
        "protocol": PROTOCOL,
        "epoch": epoch,
        "seq": seq,
        "boot_id": boot_id,
        "fingerprint": fingerprint,
        "sent_at": datetime.now(UTC).isoformat(),
        "mono": round(steady_s, 3),
        "holding": holding,
        "started": [_started(event) for event in news.started],
        "results": news.results,
        "output": [
            {
                "command": run.command.id,
                "stream": str(chunk.stream),
                "offset": chunk.offset,
                "bytes": b64encode(chunk.data).decode(),
            }
            for run, chunk in news.live
        ],
    }
    if facts is not None:
        body["facts"] = facts
    return json.dumps(body).encode()


def _started(event: Started) -> dict[str, object]:
    item: dict[str, object] = {
        "command": event.command,
        "attempt": event.attempt,
        "started_at": event.started_at.isoformat(),
    }
    return item if event.local is None else item | {"local": event.local}
