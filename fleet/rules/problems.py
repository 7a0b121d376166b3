"""What is wrong with a manifest: every problem at once, each with its dotted path."""

from collections.abc import Iterable
from dataclasses import dataclass

MAX_PROBLEMS = 100
_SHOWN_LENGTH = 60


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to correct (or, as a warning, to know); an empty path means the whole document."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ManifestError(ValueError):
    """The document is no valid manifest; `problems` says what to correct, in reading order."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class Notes:
    """Collects the problems and warnings of one document while it is read."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []
        self._left_out = 0

    def problem(self, path: str, message: str) -> None:
        """Note something to correct; after MAX_PROBLEMS they are only counted."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(path, message))
        else:
            self._left_out += 1

    def warning(self, path: str, message: str) -> None:
        """Note something that is accepted and should be known."""
        if len(self.warnings) < MAX_PROBLEMS:
            self.warnings.append(Problem(path, message))

    def raise_problems(self) -> None:
        """Raise ManifestError with all that was noted; nothing happens where all is well."""
        if self._left_out:
            self.problems.append(Problem("", f"and {self._left_out} more problems"))
        if self.problems:
            raise ManifestError(self.problems)


def shown(value: object) -> str:
    """The value for an error text: in double quotes, printable, and never long."""
    text = value if isinstance(value, str) else str(value)
    cut = text[:_SHOWN_LENGTH] + ("…" if len(text) > _SHOWN_LENGTH else "")
    if not cut.isprintable():
        cut = "".join(char if char.isprintable() else repr(char)[1:-1] for char in cut)
    return f'"{cut}"'


def dotted(path: str, key: str) -> str:
    """The path of `key` inside the mapping at `path`."""
    name = shown(key)[1:-1]
    return f"{path}.{name}" if path else name
