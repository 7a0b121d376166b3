"""Groups, the freeze, and which kind of manifest a document is."""

from zoneinfo import ZoneInfo

import pytest

from fleet.rules.bounds import Bounds
from fleet.rules.manifest import (
    FreezeManifest,
    GroupManifest,
    Kind,
    ManifestError,
    identity,
    kind_of,
    parse_freeze,
    parse_group,
)
from tests.fleet.rules.manifest.documents import job, schedule


def problems_of(error: pytest.ExceptionInfo[ManifestError]) -> list[str]:
    return [str(problem) for problem in error.value.problems]


def test_the_members_of_a_group_are_sorted_and_each_there_once() -> None:
    found = parse_group(
        {"id": "office", "description": "x", "members": ["pc-2", "PC-1", "Pc-2", "pc-1"]}
    )
    assert found == GroupManifest("office", ("pc-1", "Pc-2"), "x", document={})
    assert found.document == {"id": "office", "description": "x", "members": ["pc-1", "Pc-2"]}


def test_a_group_may_be_empty() -> None:
    assert parse_group({"id": "office", "members": []}).document == {"id": "office", "members": []}


def test_the_problems_of_a_group_are_named() -> None:
    with pytest.raises(ManifestError) as caught:
        parse_group({"id": "a b", "members": ["ok", "../x", 7], "member": []})
    assert [line.split(": ")[0] for line in problems_of(caught)] == [
        "id",
        "members[1]",
        "members[2]",
        "member",
    ]


@pytest.mark.parametrize("wrapped", [True, False])
@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        pytest.param({}, FreezeManifest(document={}), id="12#2 empty is fine"),
        pytest.param(
            {"reason": "holidays"}, FreezeManifest(reason="holidays", document={}), id="12#3"
        ),
        pytest.param(
            {"from": "2026-12-20", "until": "2027-01-05", "tz": "utc"},
            FreezeManifest(Bounds("2026-12-20", "2027-01-05"), tz="utc", document={}),
            id="12#4",
        ),
        pytest.param(
            {"from": "2026-12-20"}, FreezeManifest(Bounds("2026-12-20"), document={}), id="12#9"
        ),
        pytest.param(
            {"until": "2027-01-05"},
            FreezeManifest(Bounds(None, "2027-01-05"), document={}),
            id="12#10",
        ),
    ],
)
def test_a_freeze_is_read_with_or_without_its_key(
    inner: dict[str, object], expected: FreezeManifest, wrapped: bool
) -> None:
    found = parse_freeze({"freeze": inner} if wrapped else inner)
    assert found == expected
    assert found.document == {"freeze": inner}


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        pytest.param(
            {"freeze": {"from": "soon"}}, 'freeze.from: "soon" is no date', id="bad bound"
        ),
        pytest.param({"freeze": {"until": "x"}}, 'freeze.until: "x" is no date', id="bad until"),
        pytest.param(
            {"freeze": {"from": "2027-01-05", "until": "2026-12-20"}},
            "freeze.from: must be strictly before until",
            id="reversed",
        ),
        pytest.param(
            {"freeze": {"from": "2026-12-20", "until": "2026-12-20"}},
            "freeze.from: must be strictly before until",
            id="empty period",
        ),
        pytest.param({"freeze": {"till": "x"}}, "freeze.till: unknown key", id="unknown key"),
        pytest.param({"freeze": None}, "freeze: must be a mapping", id="no value"),
        pytest.param({"freeze": "on"}, "freeze: must be a mapping", id="on"),
        pytest.param({"freeze": {}, "reason": "x"}, "reason: stands beside freeze", id="beside"),
        pytest.param({"freeze": {"reason": "a\0"}}, "freeze.reason: has a NUL", id="NUL"),
        pytest.param([], "must be a mapping", id="list"),
    ],
)
def test_a_bad_freeze_is_refused(document: object, problem: str) -> None:
    with pytest.raises(ManifestError) as caught:
        parse_freeze(document)
    [found] = problems_of(caught)
    assert found.startswith(problem)


def test_a_freeze_is_compared_in_the_zone_that_local_means() -> None:
    document = {"from": "2026-07-01", "until": "2026-06-30T20:00:00Z"}
    parse_freeze(document, local=ZoneInfo("Asia/Tokyo"))
    with pytest.raises(ManifestError):
        parse_freeze(document, local=ZoneInfo("UTC"))


@pytest.mark.parametrize("word", ["off", False])
def test_off_means_that_there_is_no_freeze(word: object) -> None:
    found = parse_freeze({"freeze": word})
    assert found.off is True
    assert found.document == {"freeze": "off"}


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        (job(), Kind.JOB),
        (schedule(), Kind.SCHEDULE),
        ({"id": "x", "members": []}, Kind.GROUP),
        ({"freeze": {}}, Kind.FREEZE),
    ],
)
def test_a_document_is_what_its_own_key_says(document: object, kind: Kind) -> None:
    assert kind_of(document) is kind


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"id": "x"}, "is no manifest: it needs exactly one of execute (a job)"),
        ([], "is no manifest: it needs exactly one of"),
        ({"execute": {}, "when": {}}, "has execute and when; write exactly one of"),
    ],
)
def test_a_document_of_no_kind_or_two_is_refused(document: object, problem: str) -> None:
    with pytest.raises(ManifestError) as caught:
        kind_of(document)
    [found] = problems_of(caught)
    assert found.startswith(problem)


@pytest.mark.parametrize(("document", "found"), [(job(), "inventory"), ({"id": 7}, ""), ([], "")])
def test_a_report_can_name_a_document(document: object, found: str) -> None:
    assert identity(document) == found
