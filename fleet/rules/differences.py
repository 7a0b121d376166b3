"""What an edit changes: two documents compared by dotted path."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fleet.rules.problems import dotted


@dataclass(frozen=True, slots=True)
class Difference:
    """One changed value; None stands for a key that is not there."""

    path: str
    before: object
    after: object


def differences(before: object, after: object, path: str = "") -> Iterator[Difference]:
    """The changed values of two JSON-like documents, in the order of the newer one's keys.

    Mappings are compared key by key, lists and everything else as a whole.
    """
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in [*after, *(key for key in before if key not in after)]:
            yield from differences(before.get(key), after.get(key), dotted(path, str(key)))
    elif before != after or type(before) is not type(after):
        yield Difference(path, before, after)
