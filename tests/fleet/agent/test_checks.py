"""The order of checks: each refusal by itself, each before all that come after it."""

from base64 import b64decode, b64encode
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from fleet.agent.checks import Accept, Ignore, Known, Refuse, Verdict, examine
from fleet.agent.commands import Command, Outcome, Retry
from fleet.agent.envelope import SCHEDULES_TYPE
from fleet.agent.journal_records import Ending, Entry
from tests.fleet.agent.make import (
    NOW,
    PINNED,
    command_id,
    make_command,
    make_script,
    payload_of,
    sealed,
)

STRANGER = Ed25519PrivateKey.from_private_bytes(b"x" * 32)
OTHER_ID = "0190d0a0-0000-7000-8000-00000000dead"


class Memory:
    """A journal that knows what the test says."""

    def __init__(self, entry: Entry | None = None, *, forgets: bool = False) -> None:
        self._entry, self._forgets = entry, forgets

    def entry(self, command: str, /) -> Entry | None:
        return self._entry if self._entry and self._entry.command == command else None

    def may_have_forgotten(self, command: Command, /) -> bool:
        return self._forgets


def entry(attempt: int = 0, finished: Ending | None = None) -> Entry:
    deadline = NOW + timedelta(hours=1)
    return Entry(command_id(), 1, 1, deadline, attempt=attempt, finished=finished)


def judge(value: object, memory: Memory | None = None, **delay: float) -> Verdict:
    now = NOW + timedelta(**delay)
    return examine(value, pinned=PINNED, memory=memory or Memory(), now=now)


def changed(**fields: object) -> dict[str, object]:
    """A command with fields changed before it was signed."""
    return sealed(payload_of(make_command()) | fields)


def reason(verdict: Verdict) -> str:
    assert isinstance(verdict, Refuse)
    return verdict.reason


def test_a_command_as_signed_is_accepted_in_full() -> None:
    script = make_script(
        "echo $KANADE_P_NAME\n",
        timeout_s=30,
        run_as="user",
        cwd="/srv",
        params={"NAME": "x y"},
        max_output=4096,
    )
    command = make_command(
        script=script,
        start_after=NOW + timedelta(minutes=5),
        retry=Retry(times=3, backoff_s=600),
        override_freeze=True,
    )
    assert judge(sealed(payload_of(command))) == Accept(command)


def test_a_key_that_is_not_known_is_left_alone() -> None:
    assert judge(changed(novelty=[1])) == Accept(make_command())


TAMPERED = [
    "v", "server_id", "server_epoch", "cmd_id", "agent_id", "seq", "job", "version", "shell",
    "script", "script_sha256", "timeout_s", "run_as", "cwd", "params", "max_output", "issued_at",
    "start_after", "deadline_at", "retry", "override_freeze",
]  # fmt: skip


@pytest.mark.parametrize("field", TAMPERED)
def test_a_field_changed_after_signing_is_refused(field: str) -> None:
    value = changed()
    payload = b64decode(str(value["payload"])).replace(
        f'"{field}":'.encode(), f'"{field}" :'.encode()
    )
    value["payload"] = b64encode(payload).decode()
    verdict = judge(value)
    assert isinstance(verdict, Refuse | Ignore)
    assert verdict.reason == "the signature is not by the server's pinned key"


def test_what_another_key_signed_is_refused_and_reported_under_its_id() -> None:
    value = sealed(payload_of(make_command()), by=STRANGER)
    assert judge(value) == Refuse(
        command_id(), Outcome.REFUSED, "the signature is not by the server's pinned key"
    )


def test_a_bundle_of_schedules_is_no_command() -> None:
    verdict = judge(sealed(payload_of(make_command()), kind=SCHEDULES_TYPE))
    assert "type is not" in reason(verdict)


@pytest.mark.parametrize("value", [None, "x", {}, {"payloadType": "x"}])
def test_what_is_no_envelope_is_ignored(value: object) -> None:
    assert isinstance(judge(value), Ignore)


@pytest.mark.parametrize(
    "payload", [b"", b"[]", b"{", b'{"a":1,"a":2}', b"\xff", b'{"cmd_id":"x"}', b"[" * 50]
)
def test_a_payload_without_a_readable_id_is_ignored(payload: bytes) -> None:
    assert isinstance(judge(sealed(payload)), Ignore)


MISSING_OR_WRONG: list[tuple[str, object]] = [
    ("v", 2), ("v", "1"), ("v", None),
    ("agent_id", "pc-1"),
    ("server_epoch", -1), ("server_epoch", 1.5), ("server_epoch", True),
    ("seq", "7"),
    ("job", None), ("version", 1), ("shell", None), ("script", None), ("script_sha256", 7),
    ("timeout_s", 86_401), ("timeout_s", "30s"),
    ("run_as", None), ("cwd", 7),
    ("params", []), ("params", {"a b": "x"}), ("params", {"NAME": None}),
    ("max_output", 1024 * 1024 + 1),
    ("issued_at", "yesterday"), ("issued_at", "2026-03-02T09:00:00"),
    ("start_after", 5),
    ("deadline_at", None), ("deadline_at", "0001-01-01T00:00:00+23:59"),
    ("retry", {"max": 11, "backoff_s": 1}), ("retry", {"max": 1}), ("retry", []),
    ("override_freeze", None), ("override_freeze", 1),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value"), MISSING_OR_WRONG)
def test_a_signed_field_that_is_wrong_is_refused_by_its_name(field: str, value: object) -> None:
    verdict = judge(changed(**{field: value}))
    assert isinstance(verdict, Refuse)
    assert verdict.outcome is Outcome.REFUSED
    assert verdict.reason.startswith(field)


@pytest.mark.parametrize("field", [name for name in TAMPERED if name != "cmd_id"])
def test_a_missing_field_is_refused(field: str) -> None:
    payload = payload_of(make_command())
    del payload[field]
    if field in {"cwd", "start_after", "retry"}:
        assert isinstance(judge(sealed(payload)), Accept)
    else:
        assert reason(judge(sealed(payload))).startswith(field)


def test_a_timeout_of_nothing_is_a_second() -> None:
    verdict = judge(changed(timeout_s=0))
    assert isinstance(verdict, Accept)
    assert verdict.command.script.timeout_s == 1


@pytest.mark.parametrize(
    ("value", "text"), [(7, "7"), (1.5, "1.5"), (True, "true"), (False, "false"), ("", "")]
)
def test_parameters_reach_the_script_as_text(value: object, text: str) -> None:
    verdict = judge(changed(params={"name": value}))
    assert isinstance(verdict, Accept)
    assert verdict.command.script.params == {"NAME": text}


STRANGE: list[tuple[str, object, str]] = [
    ("server_id", OTHER_ID, "another server"),
    ("agent_id", OTHER_ID, "another agent"),
    ("server_epoch", 0, "last restore"),
]


@pytest.mark.parametrize(("field", "value", "words"), STRANGE)
def test_a_command_for_elsewhere_or_of_yesterday_is_refused(
    field: str, value: object, words: str
) -> None:
    assert words in reason(judge(changed(**{field: value})))


def test_a_command_of_a_later_epoch_is_accepted() -> None:
    verdict = judge(changed(server_epoch=2))
    assert isinstance(verdict, Accept)
    assert verdict.command.server_epoch == 2


@pytest.mark.parametrize("known", [entry(attempt=1), entry(finished=Ending(Outcome.FAILED, 1))])
def test_a_command_that_started_or_ended_is_known(known: Entry) -> None:
    assert judge(changed(), Memory(known)) == Known(known)


def test_a_command_that_was_only_received_is_accepted_again() -> None:
    assert isinstance(judge(changed(), Memory(entry())), Accept)


def test_a_command_that_the_journal_may_have_forgotten_is_not_started() -> None:
    verdict = judge(changed(), Memory(forgets=True))
    assert isinstance(verdict, Refuse)
    assert verdict.outcome is Outcome.OUTCOME_UNKNOWN


DEADLINES = [
    pytest.param(-1, True, id="23#2"),
    pytest.param(0, True, id="23#3"),
    pytest.param(1, False, id="23#4"),
    pytest.param(86_300, False, id="23#5"),
]


@pytest.mark.parametrize(("late", "runs"), DEADLINES)
def test_the_deadline_itself_is_the_last_allowed_instant(late: int, runs: bool) -> None:
    verdict = judge(changed(), hours=1, seconds=late)
    assert isinstance(verdict, Accept) is runs
    if not runs:
        assert isinstance(verdict, Refuse)
        assert verdict.outcome is Outcome.EXPIRED


def test_an_expired_command_names_the_deadline_the_receipt_and_the_lateness() -> None:
    assert reason(judge(changed(), hours=1, seconds=90)) == (
        "the deadline 2026-03-02T10:00:00+00:00 had passed at "
        "2026-03-02T10:01:30+00:00, 1m 30s late"
    )


def test_a_script_of_another_digest_is_refused() -> None:
    assert "approved" in reason(judge(changed(script="rm -rf /\n")))


def test_a_forged_envelope_does_not_touch_a_command_that_is_held() -> None:
    forged = sealed(payload_of(make_command()), by=STRANGER)
    assert isinstance(judge(forged, Memory(entry())), Ignore)


# Each fault by itself, in the order of the checks; with a later fault beside it, the earlier one
# is still the one that is named.
FAULTS: list[tuple[str, dict[str, object]]] = [
    ("v:", {"v": 2}),
    ("another server", {"server_id": OTHER_ID}),
    ("another agent", {"agent_id": OTHER_ID}),
    ("last restore", {"server_epoch": 0}),
    ("had passed", {"deadline_at": (NOW - timedelta(seconds=1)).isoformat()}),
    ("approved", {"script_sha256": "0" * 64}),
]


@pytest.mark.parametrize("first", range(len(FAULTS)))
def test_of_several_faults_the_first_in_order_is_named(first: int) -> None:
    fields: dict[str, object] = {}
    for _, fault in FAULTS[first:]:
        fields |= fault
    assert FAULTS[first][0] in reason(judge(changed(**fields)))


def test_a_bad_signature_is_named_before_everything_else() -> None:
    fields: dict[str, object] = {}
    for _, fault in FAULTS:
        fields |= fault
    value = sealed(payload_of(make_command()) | fields, by=STRANGER)
    assert "pinned key" in reason(judge(value))


def test_what_the_journal_knows_is_asked_before_the_time_and_the_script() -> None:
    value = changed(script_sha256="0" * 64)
    known = entry(attempt=1)
    assert judge(value, Memory(known), days=1) == Known(known)


def test_a_stranger_is_named_before_the_journal_is_asked(tmp_path: Path) -> None:
    assert "another agent" in reason(judge(changed(agent_id=OTHER_ID), Memory(entry(attempt=1))))
