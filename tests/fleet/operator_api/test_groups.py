"""Groups over HTTP: the same document in and out."""

import pytest

from fleet.models import Group, Membership
from tests.fleet.make import make_agent, make_group, make_schedule
from tests.fleet.operator_api.callers import Caller, errors, make_user, ok

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator() -> Caller:
    return Caller(make_user("operator"))


def test_a_group_is_made_and_read_as_its_manifest(operator: Caller) -> None:
    make_agent("pc-1")
    make_agent("pc-2")
    document = {"id": "office", "description": "ground floor", "members": ["pc-1", "pc-2"]}

    answer = operator.post("groups/", document)

    assert ok(answer, 201) == document
    assert answer.headers["Location"] == "http://testserver/api/v1/groups/office/"
    assert ok(operator.get("groups/OFFICE/")) == document
    assert ok(operator.put("groups/office/", document)) == document


def test_an_id_that_is_taken_is_a_conflict(operator: Caller) -> None:
    make_group("office", make_agent())

    answer = operator.post("groups/", {"id": "Office", "members": []})

    assert answer.status_code == 409
    assert list(errors(answer)) == ["id"]
    assert Membership.objects.count() == 1


def test_put_makes_what_is_not_there(operator: Caller) -> None:
    assert operator.put("groups/new/", {"id": "new", "members": []}).status_code == 201
    assert operator.put("groups/new/", {"id": "new", "members": []}).status_code == 200


def test_put_refuses_a_document_with_another_id(operator: Caller) -> None:
    make_group("office")

    answer = operator.put("groups/office/", {"id": "lab", "members": []})

    assert answer.status_code == 400
    assert list(errors(answer)) == ["id"]
    assert [group.slug for group in Group.objects.all()] == ["office"]


def test_patch_changes_what_is_sent_and_keeps_the_rest(operator: Caller) -> None:
    make_group("office", make_agent("pc-1"))

    body = ok(operator.patch("groups/office/", {"description": "moved"}))

    assert body == {"id": "office", "description": "moved", "members": ["pc-1"]}
    assert ok(operator.patch("groups/office/", {"description": None}))["members"] == ["pc-1"]
    assert "description" not in ok(operator.get("groups/office/"))


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"id": "x", "members": ["nobody"]}, "members"),
        ({"id": "x", "members": [5]}, "members[0]"),
        ({"id": "x", "members": "pc-1"}, "members"),
        ({"id": "../x", "members": []}, "id"),
        ({"id": "x", "memebrs": []}, "memebrs"),
        ({"members": []}, "id"),
        ({"id": "x", "members": [], "set_name": "y"}, "set_name"),
    ],
)
def test_a_bad_group_is_refused_by_path_and_stores_nothing(
    operator: Caller, body: object, field: str
) -> None:
    answer = operator.post("groups/", body)

    assert answer.status_code == 400
    assert list(errors(answer)) == [field]
    assert Group.objects.count() == 0


def test_a_group_that_a_schedule_names_is_not_deleted(operator: Caller) -> None:
    make_group("office")
    make_group("spare")
    make_schedule(target={"groups": ["office"]})

    assert operator.delete("groups/office/").status_code == 409
    assert operator.delete("groups/spare/").status_code == 204
    assert [group.slug for group in Group.objects.all()] == ["office"]


def test_a_list_gives_sizes_and_takes_a_fixed_number_of_queries(
    operator: Caller, django_assert_num_queries: object
) -> None:
    for slug in ("a", "b", "c"):
        make_group(slug, make_agent(), make_agent())
    operator.get("groups/")

    for size in (1, 3):
        # The token, its owner's rights (two), the page, the sizes.
        with django_assert_num_queries(5):  # type: ignore[operator]
            rows = ok(operator.get(f"groups/?page_size={size}"))["results"]
        assert rows[0] == {"id": "a", "description": "", "size": 2}


def test_an_address_that_no_id_can_be_is_not_found(operator: Caller) -> None:
    for slug in ("-x", "a b", "%00", "x" * 101, "é"):
        assert operator.get(f"groups/{slug}/").status_code == 404
