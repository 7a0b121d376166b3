"""What the scheduler's verbs refuse with, and where a form says so."""

from django import forms

from scheduler.public import ContentionError, NoSuchTaskError, OrderError, TaskStateError
from scheduler.rules.cron import CronError
from scheduler.rules.texts import TextError
from scheduler.rules.timing import UnusableCronError
from scheduler.rules.zones import ZoneError

ABOUT_CRON = (CronError, ZoneError, UnusableCronError)
REFUSALS: tuple[type[Exception], ...] = (
    *ABOUT_CRON,
    ContentionError,
    NoSuchTaskError,
    OrderError,
    TaskStateError,
    TextError,
)


def show_refusal(form: forms.BaseForm, refusal: Exception) -> None:
    """Add a refusal at the field that it is about, else above the form."""
    field = None
    if isinstance(refusal, ABOUT_CRON):
        field = "cron"
    elif isinstance(refusal, OrderError):
        field = refusal.field
    form.add_error(field if field in form.fields else None, str(refusal))
