"""What people do to tasks from their pages."""

from collections.abc import Callable
from typing import Any

from django import forms

from scheduler import public
from scheduler.admin.verbs import Call, Done, ReasonForm, Verb
from scheduler.models import Task
from scheduler.rules.fire import LONGEST_DELAY, MOST_RETRIES, Retry
from scheduler.rules.forecasts import forecast
from scheduler.rules.orders import LONGEST_CRON
from scheduler.rules.states import LIVE, TERMINAL, TaskState
from scheduler.rules.timing import LATEST, Recurrence

RIGHTS = ("scheduler.view_task", "scheduler.change_task")


class CronForm(ReasonForm):
    """Another cron for a recurring task."""

    cron = forms.CharField(
        max_length=LONGEST_CRON,
        strip=False,
        help_text="Minute hour day month weekday, such as 30 2 * * 1-5. It stays in force when "
        "the task is registered again.",
    )
    field_order = ("cron", "reason")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.target is not None:
            self.initial["cron"] = self.target.cron_override or self.target.cron


class RetryForm(ReasonForm):
    """How often a failed run is tried again."""

    times = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST_RETRIES,
        help_text="After the first run; empty = a failure is final.",
    )
    least = forms.IntegerField(
        initial=60, min_value=0, max_value=LONGEST_DELAY, label="First delay, seconds"
    )
    most = forms.IntegerField(
        initial=3600,
        min_value=0,
        max_value=LONGEST_DELAY,
        label="Longest delay, seconds",
        help_text="The delay doubles each time until it is this long.",
    )
    field_order = ("times", "least", "most", "reason")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        policy: Retry | None = self.target.retry if self.target is not None else None
        if policy is not None:
            self.initial.update(times=policy.times, least=policy.min, most=policy.max)


class DueForm(ReasonForm):
    """Another time for the next run."""

    due = forms.DateTimeField(
        widget=forms.DateTimeInput(
            attrs={"type": "datetime-local", "step": "1"}, format="%Y-%m-%dT%H:%M:%S"
        ),
        help_text="On your clock, the one that pages show you.",
    )
    field_order = ("due", "reason")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.target is not None:
            self.initial["due"] = self.target.due_at or self.target.not_before

    def clean_due(self) -> Any:
        """Refuse a time that not every database and zone can hold."""
        moment = self.cleaned_data["due"]
        if moment > LATEST:
            raise forms.ValidationError("choose a time before the year 9990")
        return moment


def _by(call: Call[Task]) -> Any:
    return {"actor": call.actor, "reason": call.data["reason"], "now": call.now}


def _plain(verb: Callable[..., None], said: str) -> Callable[[Call[Task]], Done]:
    def act(call: Call[Task]) -> Done:
        verb(call.obj.pk, **_by(call))
        return Done(f"{call.obj} {said}")

    return act


def _set_cron(call: Call[Task]) -> Done:
    text = call.data["cron"]
    public.set_cron(call.obj.pk, text, **_by(call))
    told = forecast(Recurrence(text, call.obj.tz, call.obj.day_rule), now=call.now, count=1)
    return Done(f"{call.obj} runs {told.words} ({call.obj.tz}).")


def _reset_cron(call: Call[Task]) -> Done:
    public.set_cron(call.obj.pk, None, **_by(call))
    return Done(f"{call.obj} has the cron of the code again: {call.obj.cron}.")


def _set_retry(call: Call[Task]) -> Done:
    data = call.data
    policy = None
    if data["times"] is not None:
        policy = Retry(times=data["times"], min=data["least"], max=data["most"])
    public.set_retry(call.obj.pk, policy, **_by(call))
    return Done(f"{call.obj} has another retry policy.")


def _set_due(call: Call[Task]) -> Done:
    public.set_due(call.obj.pk, call.data["due"], **_by(call))
    return Done(f"{call.obj} is due at another time.")


def _is_live(task: Task) -> bool:
    return task.state in LIVE


def _may_run(task: Task) -> bool:
    pending = task.state == TaskState.PENDING.value and not task.waits_for
    return pending or task.state == TaskState.RUNNING.value


VERBS: tuple[Verb[Task], ...] = (
    Verb(
        name="run-now",
        title="Run now",
        text="The task runs as soon as a runner is free, once more if it runs now. Its "
        "recurrence stays as it is.",
        permissions=RIGHTS,
        act=_plain(public.run_now, "runs as soon as a runner is free."),
        look="primary",
        fits=_may_run,
    ),
    Verb(
        name="retry",
        title="Start again",
        text="The task is over. It starts once more, with all its retries.",
        permissions=RIGHTS,
        act=_plain(public.retry_task, "starts once more."),
        look="primary",
        fits=lambda task: task.state in TERMINAL,
    ),
    Verb(
        name="release",
        title="Release",
        text="The task is quarantined. It runs again at its time; should its process die again, "
        "it is quarantined again.",
        permissions=RIGHTS,
        act=_plain(public.release, "runs again."),
        look="primary",
        fits=lambda task: task.state == TaskState.QUARANTINED.value,
    ),
    Verb(
        name="cron",
        title="Change cron",
        text="The cron that is typed here is in force until it is reset, whatever the code "
        "registers.",
        permissions=RIGHTS,
        act=_set_cron,
        form=CronForm,
        fits=lambda task: task.cron is not None and _is_live(task),
        for_many=False,
    ),
    Verb(
        name="reset-cron",
        title="Reset cron",
        text="The cron that the code registered comes back into force.",
        permissions=RIGHTS,
        act=_reset_cron,
        fits=lambda task: task.cron_override is not None,
    ),
    Verb(
        name="due",
        title="Change due time",
        text="The next run moves to another time.",
        permissions=RIGHTS,
        act=_set_due,
        form=DueForm,
        fits=lambda task: task.state == TaskState.PENDING.value,
        for_many=False,
    ),
    Verb(
        name="retries",
        title="Change retries",
        text="A run that has begun keeps the policy that it began with.",
        permissions=RIGHTS,
        act=_set_retry,
        form=RetryForm,
        fits=_is_live,
        for_many=False,
    ),
    Verb(
        name="cancel",
        title="Cancel",
        text="The task never runs again. A body that runs now ends first; tasks that wait for "
        "this one go on without it.",
        permissions=RIGHTS,
        act=_plain(public.cancel, "never runs again."),
        look="danger",
        fits=_is_live,
    ),
)
