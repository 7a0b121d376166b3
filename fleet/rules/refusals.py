"""Why a verb was refused, in words for the person who asked.

Nothing has changed when one of these is raised. The admin shows it at the field or as a message,
the API as a problem document.
"""

from collections.abc import Iterable

from fleet.rules.problems import Problem


class Refusal(Exception):  # noqa: N818  # an answer, not a fault
    """The act is refused; `field` names the input that is to blame, if one is."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


class NotFound(Refusal):
    """Something that the act names does not exist."""


class Conflict(Refusal):
    """The request is sound, and the state of the thing forbids it."""


class Frozen(Conflict):
    """The fleet is frozen."""


class NotAllowed(Refusal):
    """This person may not do it, whatever their rights on the model say."""


class Invalid(Refusal):
    """The input is wrong; `problems` names everything to correct, by dotted path."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        first = self.problems[0] if self.problems else Problem("", "the input is not valid")
        super().__init__("\n".join(str(problem) for problem in self.problems), field=first.path)
