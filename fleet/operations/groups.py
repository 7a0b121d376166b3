"""What people do to groups: save, delete, and say who is in them."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from fleet.flow.asking import groups_changed, naming_groups
from fleet.flow.published import Change, Published, change_of
from fleet.models import Agent, EnrolmentToken, Group, Membership
from fleet.operations.inputs import racing, require_free, valid
from fleet.rules.differences import differences
from fleet.rules.manifest import GroupManifest, parse_group
from fleet.rules.problems import Problem
from fleet.rules.refusals import Conflict, Invalid, NotFound
from scheduler.public import Actor, record_act


def group_document(group: Group) -> dict[str, object]:
    """The group as its manifest, members by name."""
    names = group.agents.order_by("name_fold").values_list("name", flat=True)
    description = {"description": group.description} if group.description else {}
    return {"id": group.slug, **description, "members": list(names)}


def save_group(
    document: object, *, actor: Actor, now: datetime, must_be_new: bool = False, set_name: str = ""
) -> Group:
    """Create or update a group from its manifest; its members are those of the document alone."""
    return store_group(
        document, actor=actor, now=now, must_be_new=must_be_new, set_name=set_name
    ).row


def store_group(
    document: object, *, actor: Actor, now: datetime, must_be_new: bool = False, set_name: str = ""
) -> Published[Group]:
    """As `save_group`; says what it did. Invalid, Conflict."""
    manifest = valid(parse_group, document)
    with racing("group"), transaction.atomic():
        group = Group.objects.with_slug(manifest.id).select_for_update(no_key=True).first()
        require_free(group, manifest.id, must_be_new=must_be_new, set_name=set_name)
        members = _members(manifest)
        before = group_document(group) if group else None
        if group is None:
            group = Group(slug=manifest.id, created_at=now, updated_at=now)
        group.set_name = set_name or group.set_name
        group.description = manifest.description
        group.save()
        _put(group, members)
        after = group_document(group)
        changed = any(differences(before, after))
        if changed:
            _record(group, change_of(before, changed=True), before, after, actor=actor, now=now)
    return Published(group, change_of(before, changed=changed), before, after)


def _members(manifest: GroupManifest) -> list[Agent]:
    """The agents that the manifest names; Invalid names those that nobody knows."""
    names = [name.casefold() for name in manifest.members]
    found = Agent.objects.filter(Q(name_fold__in=names) | Q(uuid_text__in=names))
    by_name: dict[str, Agent] = {}
    for agent in found:
        by_name |= {agent.uuid_text: agent, agent.name_fold: agent}
    problems = [
        Problem("members", f'there is no PC "{name}"; it must be enrolled first')
        for name in manifest.members
        if name.casefold() not in by_name
    ]
    if problems:
        raise Invalid(problems)
    return [by_name[name] for name in names]


def _put(group: Group, members: Iterable[Agent]) -> None:
    wanted = {agent.pk for agent in members}
    there = set(group.memberships.values_list("agent_id", flat=True))
    group.memberships.filter(agent_id__in=there - wanted).delete()
    Membership.objects.bulk_create(
        Membership(group=group, agent_id=pk) for pk in sorted(wanted - there)
    )


def set_members(
    group: Group, agents: Sequence[Agent], *, actor: Actor, now: datetime, reason: str = ""
) -> None:
    """Make exactly these agents the members."""
    with transaction.atomic():
        found = _locked(group)
        before = group_document(found)
        _put(found, agents)
        after = group_document(found)
        if before != after:
            _record(found, Change.UPDATE, before, after, actor=actor, now=now, reason=reason)


def set_groups_of(
    agent: Agent, slugs: Sequence[str], *, actor: Actor, now: datetime, reason: str = ""
) -> None:
    """Make the agent a member of exactly these groups; Invalid where one does not exist."""
    with transaction.atomic():
        wanted = {
            group.slug.casefold(): group
            for group in Group.objects.with_slug(*slugs)
            .order_by("pk")
            .select_for_update(no_key=True)
        }
        missing = [slug for slug in slugs if slug.casefold() not in wanted]
        if missing:
            raise Invalid(Problem("groups", f'there is no group "{slug}"') for slug in missing)
        there = {group.slug.casefold(): group for group in agent.groups.all()}
        joined = [group for slug, group in wanted.items() if slug not in there]
        left = [group for slug, group in there.items() if slug not in wanted]
        if not joined and not left:
            return
        agent_rows = Membership.objects.filter(agent=agent)
        agent_rows.filter(group__in=left).delete()
        Membership.objects.bulk_create(Membership(group=group, agent=agent) for group in joined)
        record_act(
            actor,
            "set groups",
            object_kind="agent",
            object_id=agent.name,
            before={"groups": sorted(group.slug for group in there.values())},
            after={"groups": sorted(group.slug for group in wanted.values())},
            reason=reason,
            now=now,
        )
        groups_changed((group.slug for group in (*joined, *left)), now=now)


def delete_group(group: Group, *, actor: Actor, now: datetime) -> None:
    """Delete it; Conflict while a schedule or an enrolment token names it."""
    with transaction.atomic():
        found = _locked(group)
        user = next(iter(naming_groups([found.slug]).values()), None)
        if user is not None:
            raise Conflict(f'the schedule "{user.slug}" names it; change or delete that first')
        if EnrolmentToken.objects.filter(group=found).exists():
            raise Conflict("an enrolment token puts PCs into it; delete the token first")
        record_act(
            actor,
            "delete",
            object_kind="group",
            object_id=found.slug,
            before=group_document(found),
            now=now,
        )
        found.delete()


def _record(
    group: Group,
    change: Change,
    before: dict[str, object] | None,
    after: dict[str, object],
    *,
    actor: Actor,
    now: datetime,
    reason: str = "",
) -> None:
    Group.objects.filter(pk=group.pk).update(updated_at=now)
    record_act(
        actor,
        change,
        object_kind="group",
        object_id=group.slug,
        before=before,
        after=after,
        reason=reason,
        now=now,
    )
    groups_changed([group.slug], now=now)


def _locked(group: Group) -> Group:
    found = Group.objects.filter(pk=group.pk).select_for_update(no_key=True).first()
    if found is None:
        raise NotFound(f'there is no group "{group.slug}"')
    return found
