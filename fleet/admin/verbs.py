"""Acts on the fleet's objects: the scheduler's machinery, with the fleet's refusals."""

from typing import ClassVar, TypeVar

from django import forms
from django.db.models import Model

from fleet.admin.errors import show_refusal
from fleet.rules.refusals import Refusal
from scheduler.admin.verbs import Call, Done, ReasonForm, Verb, VerbForm
from scheduler.admin.verbs import VerbAdmin as AnyVerbAdmin

__all__ = ["Call", "Done", "ReasonForm", "Verb", "VerbAdmin", "VerbForm"]

M = TypeVar("M", bound=Model)


class VerbAdmin(AnyVerbAdmin[M]):
    """A model of the fleet with acts."""

    refusals: ClassVar[tuple[type[Exception], ...]] = (Refusal,)

    def show_refusal(self, form: forms.BaseForm, refusal: Exception) -> None:
        """Say at the field why it was not done."""
        if isinstance(refusal, Refusal):
            show_refusal(form, refusal)
