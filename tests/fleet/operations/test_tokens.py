"""Bearer tokens."""

import zlib

import pytest

from fleet.operations.tokens import (
    Purpose,
    kept_hash,
    matches,
    new_token,
    parse_token,
    peppered,
)

UUID = "0197f1c2-0000-7000-8000-000000000001"


@pytest.mark.parametrize("purpose", list(Purpose))
def test_a_token_is_read_back_as_it_was_made(purpose: Purpose) -> None:
    token = new_token(purpose)

    assert parse_token(token.text, purpose) == token


def test_a_credential_carries_the_uuid_of_its_agent_and_a_checksum() -> None:
    token = new_token(Purpose.AGENT, UUID)

    body, _, checksum = token.text.rpartition("_")
    assert body == f"kag1_{UUID}_{token.secret}"
    assert len(token.secret) == 43
    assert checksum == f"{zlib.crc32(body.encode()):08x}"


def test_two_tokens_never_share_a_secret() -> None:
    made = {new_token(Purpose.API).secret for _ in range(100)}

    assert len(made) == 100


def test_a_token_of_another_purpose_is_not_read() -> None:
    text = new_token(Purpose.API).text

    assert parse_token(text, Purpose.AGENT) is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text[:-1],
        lambda text: text[:-1] + ("0" if text[-1] != "0" else "1"),
        lambda text: text.upper(),
        lambda text: text + "\n",
        lambda text: " " + text,
        lambda text: text.replace("_", "", 1),
        lambda text: text * 1000,
        lambda text: "",
        lambda text: "kap1_" + "é" * 60,
    ],
)
def test_a_damaged_token_is_not_read(spoil: object) -> None:
    text = new_token(Purpose.API).text

    assert callable(spoil)
    assert parse_token(spoil(text), Purpose.API) is None


def test_the_kept_hash_matches_its_token_and_no_other() -> None:
    token, other = new_token(Purpose.API), new_token(Purpose.API)

    kept = kept_hash(token)

    assert matches(token, kept) is True
    assert matches(other, kept) is False
    assert matches(token, "") is False
    assert token.secret not in kept


def test_the_kept_hash_depends_on_the_pepper(settings: object) -> None:
    token = new_token(Purpose.API)
    kept = kept_hash(token)

    settings.KANADE_TOKEN_PEPPER = "another"  # type: ignore[attr-defined]  # pytest-django's

    assert matches(token, kept) is False


def test_the_same_secret_under_another_label_is_another_hash() -> None:
    assert peppered("a", "secret") != peppered("b", "secret")


def test_a_token_does_not_show_its_secret_in_logs() -> None:
    token = new_token(Purpose.ENROLMENT)

    assert token.secret not in repr(token)
