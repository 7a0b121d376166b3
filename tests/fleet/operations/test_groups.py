"""Saving groups, and who is in them."""

from datetime import timedelta
from typing import Any

import pytest

from fleet.flow.published import Change
from fleet.models import EnrolmentToken, Group, Schedule
from fleet.operations.groups import (
    delete_group,
    save_group,
    set_groups_of,
    set_members,
    store_group,
)
from fleet.rules.refusals import Conflict, Invalid, NotFound
from scheduler.models import AuditEntry
from scheduler.public import Actor
from tests.fleet.make import NOW, make_agent, make_group, make_schedule
from tests.fleet.operations.audited import acts

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("asked")]
Asked = list[tuple[str, str | None]]
LATER = NOW + timedelta(hours=1)


def office(*members: str, **changes: object) -> dict[str, object]:
    return {"id": "office", "members": list(members)} | changes


def names(group: Group) -> list[str]:
    return sorted(group.agents.values_list("name", flat=True))


def test_members_are_found_by_name_in_any_case_and_by_uuid(alice: Actor) -> None:
    make_agent("PC-1")
    other = make_agent("pc-2")
    found = save_group(office("pc-1", other.uuid_text, description="x"), actor=alice, now=NOW)
    assert (found.slug, found.description, names(found)) == ("office", "x", ["PC-1", "pc-2"])
    assert AuditEntry.objects.get().after == office("PC-1", "pc-2", description="x")


def test_unknown_members_are_all_named_and_nothing_changes(alice: Actor) -> None:
    make_agent("pc-1")
    with pytest.raises(Invalid) as caught:
        save_group(office("pc-1", "ghost", "zed"), actor=alice, now=NOW)
    assert [str(problem) for problem in caught.value.problems] == [
        'members: there is no PC "ghost"; it must be enrolled first',
        'members: there is no PC "zed"; it must be enrolled first',
    ]
    assert not Group.objects.exists()


def test_saving_replaces_the_members(alice: Actor) -> None:
    make_group("office", make_agent("pc-1"), make_agent("pc-2"))
    make_agent("pc-3")
    found = save_group(office("pc-2", "pc-3"), actor=alice, now=LATER)
    assert names(found) == ["pc-2", "pc-3"]
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.before, entry.after) == (
        "update",
        office("pc-1", "pc-2"),
        office("pc-2", "pc-3"),
    )


def test_saving_what_is_stored_changes_nothing(alice: Actor) -> None:
    make_group("office", make_agent("pc-1"))
    assert store_group(office("PC-1"), actor=alice, now=LATER).change is Change.UNCHANGED
    assert (acts(), Group.objects.get().updated_at) == ([], NOW)


def test_a_new_group_must_not_be_there_yet(alice: Actor) -> None:
    make_group("office")
    with pytest.raises(Conflict, match='there is a group "office" already'):
        save_group(office(), actor=alice, now=NOW, must_be_new=True)


def test_schedules_that_name_the_group_follow_and_others_do_not(alice: Actor, asked: Asked) -> None:
    named = make_schedule(target={"groups": ["Office"]})
    make_schedule(target={"groups": ["lab"]})
    calendar = make_schedule(when={"calendar": {"at": "09:00"}}, target={"groups": ["office"]})
    save_group(office(), actor=alice, now=NOW)
    assert asked == [
        ("fleet.targets", str(named.pk)),
        ("fleet.evaluate", str(named.pk)),
        ("fleet.evaluate", str(calendar.pk)),
    ]
    dirty = Schedule.objects.exclude(targets_dirty_at=None)
    assert [schedule.pk for schedule in dirty] == [named.pk]


def test_the_members_of_a_group_are_set(alice: Actor) -> None:
    pc1, pc2 = make_agent("pc-1"), make_agent("pc-2")
    group = make_group("office", pc1)
    set_members(group, [pc2], actor=alice, now=NOW, reason="moved")
    set_members(group, [pc2], actor=alice, now=NOW)
    assert names(group) == ["pc-2"]
    assert acts() == [("update", "group", "office")]


def test_the_groups_of_a_pc_are_set(alice: Actor, asked: Asked) -> None:
    agent = make_agent("pc-1")
    make_group("office", agent)
    make_group("lab")
    schedule = make_schedule(target={"groups": ["office"]})
    set_groups_of(agent, ["LAB", "lab"], actor=alice, now=NOW)
    assert [group.slug for group in agent.groups.all()] == ["lab"]
    entry = AuditEntry.objects.get()
    assert (entry.object_kind, entry.before, entry.after) == (
        "agent",
        {"groups": ["office"]},
        {"groups": ["lab"]},
    )
    assert ("fleet.targets", str(schedule.pk)) in asked


def test_setting_the_same_groups_is_no_act(alice: Actor) -> None:
    agent = make_agent()
    make_group("office", agent)
    set_groups_of(agent, ["office"], actor=alice, now=NOW)
    assert acts() == []


def test_an_unknown_group_of_a_pc_is_refused_and_nothing_changes(alice: Actor) -> None:
    agent = make_agent()
    make_group("office", agent)
    with pytest.raises(Invalid) as caught:
        set_groups_of(agent, ["lab", "x"], actor=alice, now=NOW)
    assert [str(problem) for problem in caught.value.problems] == [
        'groups: there is no group "lab"',
        'groups: there is no group "x"',
    ]
    assert [group.slug for group in agent.groups.all()] == ["office"]


@pytest.mark.parametrize(
    "manifest",
    [
        {"target": {"groups": ["OFFICE"]}},
        {
            "when": {"calendar": {"at": "09:00"}},
            "rollout": {"waves": [{"group": "office", "delay": "0s"}]},
        },
    ],
)
def test_a_group_that_a_schedule_names_is_not_deleted(
    alice: Actor, manifest: dict[str, Any]
) -> None:
    group = make_group("office")
    make_schedule("nightly", **manifest)
    with pytest.raises(Conflict, match='the schedule "nightly" names it'):
        delete_group(group, actor=alice, now=NOW)
    assert Group.objects.exists()


def test_a_group_that_a_token_enrols_into_is_not_deleted(alice: Actor) -> None:
    group = make_group("office")
    EnrolmentToken.objects.create(group=group, expires_at=LATER, created_at=NOW)
    with pytest.raises(Conflict, match="enrolment token"):
        delete_group(group, actor=alice, now=NOW)


def test_a_group_is_deleted_and_its_pcs_stay(alice: Actor) -> None:
    agent = make_agent("pc-1")
    group = make_group("office", agent)
    gone = Group.objects.get()
    delete_group(group, actor=alice, now=NOW)
    agent.refresh_from_db()
    assert AuditEntry.objects.get().before == office("pc-1")
    with pytest.raises(NotFound):
        delete_group(gone, actor=alice, now=NOW)
