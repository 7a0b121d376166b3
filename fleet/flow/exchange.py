"""One exchange with an agent, from its news to what it is told.

An exchange without news writes the agent's presence and nothing else, and takes no lock.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import F, Q

from fleet.flow.bundles import NO_BUNDLE, Bundle, bundle_for
from fleet.flow.collect import collect
from fleet.flow.deliver import Delivery, deliver
from fleet.flow.local_fires import Keys, by_key, known_locally
from fleet.flow.manifests import local_zone
from fleet.flow.progress import note_progress
from fleet.models import Agent, AgentState, Command, ScheduleAgent
from fleet.models.callers import Caller, find_caller, note_presence
from fleet.rules.command_states import HELD, CommandState
from fleet.rules.facts import read_facts
from fleet.rules.freeze import FreezeState, freeze_state
from fleet.rules.reports import Report
from fleet.rules.sessions import REFUSED, Standing, judge, next_epoch
from fleet.rules.verdicts import Verdict

# A stranger's visits are written down this often at most.
RIVAL_NOTED_EVERY = timedelta(minutes=1)
MOST_SKEW = timedelta(days=36_500)
_MOST_STRANGE = 64
_S = CommandState
_ASKED = frozenset({_S.QUEUED, _S.HANDED_OUT})
# A command that the server has ended by itself is stopped where an agent still has it.
_VOID = frozenset({_S.CANCELLED, _S.SKIPPED, _S.EXPIRED})
_OPEN = [state.value for state in CommandState if state in HELD | {_S.QUEUED}]


class NotThisAgentError(Exception):
    """Another machine, or an older start of this one, presents the identity."""

    def __init__(self, standing: Standing) -> None:
        super().__init__(standing.value)
        self.standing = standing


@dataclass(frozen=True, slots=True)
class Answer:
    """What the agent is told. Envelopes are JSON-like; `more` = come again at once."""

    epoch: int
    verdicts: dict[str, Verdict]
    kill: list[str]
    freeze: FreezeState
    envelopes: list[dict[str, object]] = field(default_factory=list)
    more: bool = False
    bundle: Bundle = NO_BUNDLE


@dataclass(frozen=True, slots=True)
class _Matters:
    """What there is between the server and the agent's open commands."""

    is_asked: bool
    kill: list[str] = field(default_factory=list)
    unknown: frozenset[UUID] = frozenset()


def exchange(caller: Caller, report: Report, *, most_bytes: int, now: datetime) -> Answer:
    """Take the news, hand out what may go; NotThisAgentError changes nothing of the agent.

    `most_bytes` is how much room the reply has for commands.
    """
    caller, standing, epoch = _recognised(caller, report, now)
    agent_id = caller.pk
    has_bundle = caller.schedules_etag
    if standing is not Standing.BELATED:
        has_bundle = _note_presence(caller, report, now)
    keys = _fired(caller, report, now)
    report = by_key(report, keys)
    verdicts = collect(agent_id, report.results, now=now)
    unknown = note_progress(agent_id, report.started, report.output, now=now)
    # With nothing in hand there is nothing to stop; what is open goes to the gates as it is. What
    # an agent fires by itself it does not list.
    has_something = report.in_hand or (has_bundle and caller.has_commands)
    matters = _matters(agent_id, report) if has_something else _Matters(caller.has_commands)
    told = dict.fromkeys(unknown | matters.unknown, Verdict.UNKNOWN) | verdicts
    names = {key: str(told_as) for told_as, key in keys.items()}
    words = {names.get(command, str(command)): verdict for command, verdict in told.items()}
    strange = {name[:_MOST_STRANGE]: Verdict.UNKNOWN for name in report.strange}
    # Nobody reads the reply to an old message, so nothing goes out with it.
    may_get = matters.is_asked and standing is not Standing.BELATED
    bundle = Bundle(has_bundle)
    if standing is not Standing.BELATED and (caller.are_local_schedules or has_bundle):
        bundle = _bundle(caller, has_bundle, now)
    if may_get and caller.state == AgentState.ACTIVE:
        room = most_bytes - bundle.size
        given = deliver(agent_id, in_hand=report.in_hand, most_bytes=room, now=now)
    else:
        given = Delivery(freeze_state(caller.freeze, now=now, local=local_zone()))
    return Answer(
        epoch,
        strange | words,
        matters.kill,
        given.freeze,
        given.envelopes,
        given.more,
        bundle,
    )


def _fired(caller: Caller, report: Report, now: datetime) -> Keys:
    """What the agent fired by itself; one that was never accepted was given nothing to fire."""
    if caller.state == AgentState.PENDING:
        return {}
    return known_locally(caller.pk, report, now=now)


def _bundle(caller: Caller, has: str, now: datetime) -> Bundle:
    """What an agent should have of the schedules that agents fire; nothing new before it may."""
    if caller.state != AgentState.ACTIVE:
        return Bundle(has)
    return bundle_for(caller.pk, has=has, now=now)


def _recognised(caller: Caller, report: Report, now: datetime) -> tuple[Caller, Standing, int]:
    """Return the caller, what its exchange is, and its epoch from now on."""
    while True:
        known = caller.session
        standing = judge(known, report.greeting)
        if standing in REFUSED:
            _note_rival(caller, report, now)
            raise NotThisAgentError(standing)
        if standing is not Standing.STARTS:
            return caller, standing, known.epoch
        epoch = next_epoch(known, report.greeting)
        mine = Agent.objects.filter(pk=caller.pk, epoch=known.epoch)
        if mine.update(epoch=epoch, boot_id=report.greeting.boot_id):
            return caller, standing, epoch
        # Another start of the agent was faster: it is known now.
        found = find_caller(caller.uuid, rotated_before=now)
        if found is None:
            raise NotThisAgentError(Standing.OUTDATED)
        caller = found


def _note_rival(caller: Caller, report: Report, now: datetime) -> None:
    """Keep who else presents this identity, for an operator to see; the agent is untouched."""
    fingerprint = report.greeting.fingerprint
    known = Q(rival_fingerprint=fingerprint, rival_seen_at__gt=now - RIVAL_NOTED_EVERY)
    agent = Agent.objects.filter(pk=caller.pk)
    if not agent.filter(known).exists():
        agent.update(rival_fingerprint=fingerprint, rival_seen_at=now)


def _note_presence(caller: Caller, report: Report, now: datetime) -> str:
    """Write down that the agent was heard; return the etag of the bundle that it has."""
    etag = caller.schedules_etag
    skew_ms = _skew_ms(report.sent_at, now)
    note_presence(caller.pk, seq=report.greeting.seq, skew_ms=skew_ms, now=now)
    if report.facts is not None:
        facts = read_facts(report.facts)
        etag = facts.schedules_etag
        agent = Agent.objects.filter(pk=caller.pk)
        told = (facts.document, facts.zone, etag)
        if agent.values_list("facts", "zone", "schedules_etag").get() != told:
            agent.update(facts=facts.document, zone=facts.zone, schedules_etag=etag)
    if caller.is_parked:
        # It is back: what was put aside while it was silent is due as it was.
        parked = ScheduleAgent.objects.filter(agent=caller.pk, parked_due_at__isnull=False)
        parked.update(due_at=F("parked_due_at"), parked_due_at=None)
    return etag


def _skew_ms(sent_at: datetime | None, now: datetime) -> int:
    if sent_at is None:
        return 0
    skew = max(-MOST_SKEW, min(sent_at - now, MOST_SKEW))
    return skew // timedelta(milliseconds=1)


def _matters(agent_id: int, report: Report) -> _Matters:
    concerned = Q(state__in=_OPEN) | Q(pk__in=report.in_hand)
    rows = Command.objects.filter(concerned, agent=agent_id).values_list(
        "pk", "state", "kill_requested_at", "local_id"
    )
    kill, found, is_asked = [], set(), False
    for pk, written, kill_requested_at, local_id in rows:
        state = CommandState(written)
        found.add(pk)
        stopped = state in HELD and kill_requested_at is not None
        if stopped or (state in _VOID and pk in report.holding):
            kill.append(local_id or str(pk))
        is_asked = is_asked or (state in _ASKED and pk not in report.in_hand)
    return _Matters(is_asked, kill, report.holding - found)
