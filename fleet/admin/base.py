"""What the lists and pages of the fleet share: the scheduler's ground, and states in words."""

from typing import Any

from django.contrib import admin

from fleet.rules.looks import words_of
from scheduler.admin.lists import BoundedAdmin, ReadOnlyAdmin, now_of

__all__ = ["BoundedAdmin", "ReadOnlyAdmin", "WordsFilter", "now_of"]


class WordsFilter(admin.ChoicesFieldListFilter):
    """The choices of a state, as people read them."""

    def choices(self, changelist: Any) -> Any:
        """Return the choices with words for what is stored."""
        for choice in super().choices(changelist):
            yield {**choice, "display": words_of(str(choice["display"]))}
