"""PCs over HTTP: read by name or uuid, grouped, accepted, shut out."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.models import Agent, AgentState
from tests.fleet.make import make_agent, make_group
from tests.fleet.operator_api.callers import Caller, errors, make_user, ok

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin() -> Caller:
    return Caller(make_user("fleet-admin"))


def names(answer: object) -> list[str]:
    return [agent["name"] for agent in ok(answer)["results"]]  # type: ignore[arg-type]


@pytest.mark.parametrize("spelling", ["PC-7", "pc-7", "uuid", "UUID"])
def test_a_pc_is_read_by_name_or_uuid_whatever_the_case(admin: Caller, spelling: str) -> None:
    agent = make_agent("PC-7")
    address = {"uuid": agent.uuid_text, "UUID": agent.uuid_text.upper()}.get(spelling, spelling)

    assert ok(admin.get(f"agents/{address}/"))["id"] == agent.uuid_text


def test_a_pc_says_who_and_how_it_is(admin: Caller) -> None:
    now = timezone.now()
    agent = make_agent("pc-7", last_seen_at=now, facts={"os": "Debian"}, zone="Europe/Budapest")
    make_group("office", agent)

    body = ok(admin.get("agents/pc-7/"))

    assert body["online"] is True
    assert body["groups"] == ["office"]
    assert body["facts"] == {"os": "Debian"}
    assert body["zone"] == "Europe/Budapest"
    assert body["last_seen_at"] == now.isoformat().replace("+00:00", "Z")
    assert "credential" not in str(body)
    assert agent.fingerprint not in str(body)


@pytest.mark.parametrize("pc", ["nobody", "a" * 300, "%00", "%F0%9F%98%80", "..", "' OR 1=1 --"])
def test_an_unknown_pc_is_not_found(admin: Caller, pc: str) -> None:
    assert admin.get(f"agents/{pc}/").status_code == 404


def test_pcs_are_listed_by_name(admin: Caller) -> None:
    for name in ("b", "C", "a"):
        make_agent(name)

    assert names(admin.get("agents/")) == ["a", "b", "C"]


def test_pages_follow_each_other(admin: Caller) -> None:
    for name in ("a", "b", "c"):
        make_agent(name)
    first = ok(admin.get("agents/?page_size=2"))

    second = ok(admin.get(first["next"].removeprefix("http://testserver")))

    assert [agent["name"] for agent in first["results"]] == ["a", "b"]
    assert [agent["name"] for agent in second["results"]] == ["c"]
    assert second["next"] is None


def test_pcs_are_narrowed_by_what_is_asked_for(admin: Caller) -> None:
    now = timezone.now()
    here = make_agent("office-1", last_seen_at=now, facts={"agent_version": "1.2"})
    make_agent("office-2", last_seen_at=now - timedelta(hours=1))
    make_agent("lab-1", last_seen_at=now, state=AgentState.REVOKED)
    make_group("kiosks", here)

    assert names(admin.get("agents/?q=OFFICE")) == ["office-1", "office-2"]
    assert names(admin.get("agents/?status=online")) == ["office-1"]
    assert names(admin.get("agents/?status=offline")) == ["office-2"]
    assert names(admin.get("agents/?state=revoked")) == ["lab-1"]
    assert names(admin.get("agents/?group=Kiosks")) == ["office-1"]
    assert names(admin.get("agents/?version=1.2")) == ["office-1"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("status=asleep", "status"),
        ("state=x", "state"),
        ("group=none-such", "group"),
        ("statsu=online", "statsu"),
        ("q=%00", "q"),
        ("credential_hash__startswith=a", "credential_hash__startswith"),
        ("ordering=credential_hash", "ordering"),
    ],
)
def test_a_query_that_means_nothing_is_refused_by_name(
    admin: Caller, query: str, field: str
) -> None:
    answer = admin.get(f"agents/?{query}")

    assert answer.status_code == 400
    assert list(errors(answer)) == [field]


def test_a_list_takes_the_same_number_of_queries_whatever_its_length(
    admin: Caller, django_assert_num_queries: object
) -> None:
    make_group("office", *(make_agent() for _ in range(5)))
    admin.get("agents/")  # notes the use of the token

    for size in (1, 5):
        # The token, its owner's rights (two), the page, the groups.
        with django_assert_num_queries(5):  # type: ignore[operator]
            ok(admin.get(f"agents/?page_size={size}"))


def test_a_pc_is_put_into_exactly_these_groups(admin: Caller) -> None:
    agent = make_agent("pc-7")
    make_group("old", agent)
    make_group("b")
    make_group("a")

    answer = admin.put("agents/pc-7/groups/", {"groups": ["b", "A", "b"]})

    assert ok(answer) == {"groups": ["a", "b"]}
    assert ok(admin.get("agents/pc-7/groups/")) == {"groups": ["a", "b"]}


def test_a_pc_joins_and_leaves_one_group(admin: Caller) -> None:
    agent = make_agent("pc-7")
    make_group("old", agent)
    make_group("new")

    assert ok(admin.post("agents/pc-7/groups/", {"group": "new"})) == {"groups": ["new", "old"]}
    assert admin.delete("agents/pc-7/groups/OLD/").status_code == 204
    assert admin.delete("agents/pc-7/groups/old/").status_code == 404
    assert ok(admin.get("agents/pc-7/groups/")) == {"groups": ["new"]}


@pytest.mark.parametrize(
    "body",
    [{"groups": ["none-such"]}, {"groups": "old"}, {"groups": [1]}, {"group": "old"}, {}, [], None],
)
def test_groups_that_are_none_change_nothing(admin: Caller, body: object) -> None:
    make_group("old", make_agent("pc-7"))

    assert admin.put("agents/pc-7/groups/", body).status_code == 400
    assert ok(admin.get("agents/pc-7/groups/")) == {"groups": ["old"]}


def test_a_waiting_pc_is_accepted_once(admin: Caller) -> None:
    make_agent("pc-7", state=AgentState.PENDING)

    assert ok(admin.post("agents/pc-7/accept/"))["state"] == "active"
    assert admin.post("agents/pc-7/accept/").status_code == 409


def test_several_waiting_pcs_are_accepted_and_the_others_are_named(admin: Caller) -> None:
    for name in ("pc-7", "pc-8"):
        make_agent(name, state=AgentState.PENDING)
    make_agent("pc-9")

    told = ok(admin.post("agents/-/accept/", {"pcs": ["pc-7", "PC-8", "pc-9", "none", "pc-7"]}))

    assert told == {
        "accepted": ["pc-7", "pc-8"],
        "left": {
            "pc-9": "pc-9 does not wait to be accepted",
            "none": "there is no such PC",
        },
    }
    assert set(Agent.objects.values_list("state", flat=True)) == {"active"}


@pytest.mark.parametrize("pcs", [[], "pc-7", [7], ["x"] * 501])
def test_what_is_no_list_of_pcs_accepts_nobody(admin: Caller, pcs: object) -> None:
    make_agent("pc-7", state=AgentState.PENDING)

    assert admin.post("agents/-/accept/", {"pcs": pcs}).status_code == 400
    assert Agent.objects.get().state == AgentState.PENDING


def test_a_pc_that_was_set_up_anew_is_the_old_one_again(admin: Caller) -> None:
    old, new = make_agent("pc-7"), make_agent("pc-7-2")

    told = ok(admin.post("agents/pc-7-2/take-over-record/", {"old": "pc-7", "reason": "disk"}))

    assert (told["name"], told["id"]) == ("pc-7", new.uuid_text)
    assert admin.get(f"agents/{old.uuid_text}/").status_code == 404
    assert ok(admin.get("agents/pc-7-2/"))["state"] == "revoked"
    assert admin.post("agents/pc-7/take-over-record/", {"old": "none"}).status_code == 404


def test_a_pc_is_shut_out_and_twice_is_once(admin: Caller) -> None:
    make_agent("pc-7")

    first = ok(admin.post("agents/pc-7/revoke/", {"reason": "stolen"}))
    second = ok(admin.post("agents/pc-7/revoke/"))

    assert (first["state"], first["state_reason"]) == ("revoked", "stolen")
    assert second["revoked_at"] == first["revoked_at"]


def test_a_cloned_identity_is_settled(admin: Caller) -> None:
    agent = make_agent("pc-7", rival_fingerprint="e" * 64)

    ok(admin.post("agents/pc-7/take-over/"))

    agent.refresh_from_db()
    assert agent.fingerprint == "e" * 64
    assert admin.post("agents/pc-7/take-over/").status_code == 409


def test_a_misspelt_key_shuts_nobody_out(admin: Caller) -> None:
    make_agent("pc-7")

    answer = admin.post("agents/pc-7/revoke/", {"raeson": "x"})

    assert answer.status_code == 400
    assert errors(answer) == {"raeson": 'unknown key; did you mean "reason"?'}
    assert Agent.objects.get().state == AgentState.ACTIVE
