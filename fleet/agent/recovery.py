"""What is said of commands whose end the agent did not see, or whose result it has lost."""

from fleet.agent.commands import Outcome
from fleet.agent.journal_records import Ending, Entry
from fleet.agent.results import Result


def interrupted(entry: Entry) -> Result:
    """The result of a command during which the agent died.

    Between two attempts the last one's end is known; during one nobody knows whether the script
    ran, and it is not started again to find out.
    """
    ended = entry.attempt_ended
    if ended is not None:
        return _result(
            entry, ended, "the agent ended before the next attempt; what the last wrote is lost"
        )
    unknown = Ending(Outcome.OUTCOME_UNKNOWN)
    return _result(entry, unknown, "the agent ended while the script ran or was about to")


def told_again(entry: Entry, finished: Ending) -> Result:
    """The result of a command that ended, from the journal alone."""
    return _result(entry, finished, "told from the agent's journal; what it wrote is lost")


def ending_of(document: dict[str, object]) -> Ending:
    """The end that a result in the outbox tells."""
    code = document.get("exit_code")
    return Ending(Outcome(str(document["outcome"])), code if isinstance(code, int) else None)


def _result(entry: Entry, ending: Ending, reason: str) -> Result:
    attempt = max(1, entry.attempt)
    return Result(
        entry.command,
        ending.outcome,
        finished_at=None,
        attempt=attempt,
        exit_code=ending.exit_code,
        reason=reason,
        retries=attempt - 1,
        local=entry.local,
    )
