"""Tokens: shown once, kept as a fingerprint, withdrawn by an act."""

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from fleet.models import ApiToken, EnrolmentToken
from fleet.operations.tokens import Purpose, parse_token
from tests.fleet.admin.conftest import Visit
from tests.fleet.admin.posting import post, post_well, said
from tests.fleet.admin.reading import Page, errors_at
from tests.fleet.make import make_group

pytestmark = pytest.mark.django_db

ENROL = {"into": "", "uses": "1", "ttl": "24h"}


def shown(client: Client, page: str, data: dict[str, str]) -> list[str]:
    """Make a token, and return the lines in which it is shown."""
    answer = client.post(reverse(f"admin:fleet_{page}_add"), data)
    assert answer.status_code == 200
    assert "no-store" in answer.headers["Cache-Control"]
    return [item.text for item in Page(answer.content.decode()).all("code", class_="secret")]


def test_an_enrolment_token_is_shown_once_in_the_line_that_enrols(root: Client) -> None:
    group = make_group("office")

    linux, windows, secret = shown(
        root, "enrolmenttoken", ENROL | {"into": str(group.pk), "uses": "3"}
    )

    row = EnrolmentToken.objects.get()
    token = parse_token(secret, Purpose.ENROLMENT)
    assert token is not None
    assert token.public_id == row.public_id
    assert (row.max_uses, row.group_id, row.created_by) == (3, group.pk, "root")
    assert f"--enrol {secret} --once --state-dir /var/lib/kanade-agent" in linux
    assert linux.startswith("sudo python3 kanade-agent.pyz --server ")
    assert f"--enrol {secret} --once --state-dir C:\\ProgramData\\kanade-agent" in windows
    assert windows.startswith("py -3 kanade-agent.pyz --server ")


@pytest.mark.parametrize("page", ["enrolmenttoken", "apitoken"])
def test_no_page_shows_a_secret_or_its_hash_again(page: str, root: Client) -> None:
    secret = shown(root, page, ENROL | {"purpose": "backup"})[-1].removeprefix(
        "Authorization: Bearer "
    )
    row = (EnrolmentToken if page == "enrolmenttoken" else ApiToken).objects.get()
    addresses = [
        reverse(f"admin:fleet_{page}_changelist"),
        reverse(f"admin:fleet_{page}_change", args=[row.pk]),
        reverse(f"admin:fleet_{page}_revoke", args=[row.pk]),
    ]

    pages = " ".join(root.get(address).content.decode() for address in addresses)

    assert row.public_id in pages
    assert secret not in pages
    assert row.secret_hash not in pages


@pytest.mark.parametrize(
    ("typed", "place", "words"),
    [
        ({"uses": "0"}, "uses", "1"),
        ({"uses": "5001"}, "uses", "5000"),
        ({"ttl": "8d"}, "ttl", "7d"),
        ({"ttl": "soon"}, "ttl", "soon"),
    ],
    ids=range(4),
)
def test_a_token_outside_the_bounds_is_refused_at_its_field(
    typed: dict[str, str], place: str, words: str, root: Client
) -> None:
    assert words in errors_at(post(root, "enrolmenttoken_add", ENROL | typed), place)
    assert not EnrolmentToken.objects.exists()


def test_a_withdrawn_token_stays_as_history(root: Client) -> None:
    shown(root, "enrolmenttoken", ENROL)
    row = EnrolmentToken.objects.get()

    post_well(root, "enrolmenttoken_revoke", {}, row.pk)

    row.refresh_from_db()
    assert row.revoked_at is not None
    listed = root.get(reverse("admin:fleet_enrolmenttoken_changelist")).content.decode()
    assert "revoked" in listed


def test_an_api_token_belongs_to_whoever_makes_it(visit: Visit) -> None:
    client = visit("fleet-admin")

    secret, header = shown(client, "apitoken", {"purpose": "backup", "ttl": "30d"})

    row = ApiToken.objects.get()
    assert (row.user.username, row.name) == ("fleet-admin", "backup")
    assert header == f"Authorization: Bearer {secret}"
    answer = Client().get("/api/v1/jobs/", headers={"Authorization": f"Bearer {secret}"})
    assert answer.status_code == 200


def test_nobody_makes_a_token_for_somebody_else(visit: Visit) -> None:
    visit("root")
    boss = User.objects.get(username="root")

    shown(visit("fleet-admin"), "apitoken", {"purpose": "", "ttl": "1d", "user": str(boss.pk)})

    assert ApiToken.objects.get().user.username == "fleet-admin"


@pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
@pytest.mark.parametrize("page", ["enrolmenttoken", "apitoken"])
def test_who_may_not_make_tokens_makes_none(role: str, page: str, visit: Visit) -> None:
    answer = visit(role).post(reverse(f"admin:fleet_{page}_add"), ENROL)

    assert answer.status_code == 403
    assert not EnrolmentToken.objects.exists()
    assert not ApiToken.objects.exists()


def test_the_right_on_the_model_alone_enrols_nobody(visit: Visit) -> None:
    client = visit("nobody")
    user = User.objects.get(username="nobody")
    rights = user.user_permissions.model.objects.filter(
        codename__in=["add_enrolmenttoken", "view_enrolmenttoken"]
    )
    user.user_permissions.set(rights)

    answer = client.post(reverse("admin:fleet_enrolmenttoken_add"), ENROL)

    assert answer.status_code == 403
    assert not EnrolmentToken.objects.exists()


def test_the_line_names_this_server(root: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "KANADE_BASE_URL", "https://kanade.example")

    line, *_ = shown(root, "enrolmenttoken", ENROL)

    assert "--server https://kanade.example --enrol" in line
    assert said(Page(line)) == ""
