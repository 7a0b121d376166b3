"""The parameters of a job's script: which are given, and what reaches the script."""

from collections.abc import Iterator, Mapping, Sequence

from fleet.rules.manifest.jobs import Param
from fleet.rules.problems import Problem, dotted
from fleet.rules.wording import closest


def param_problems(
    declared: Sequence[Param], given: Mapping[str, str], path: str = "params"
) -> Iterator[Problem]:
    """What is wrong with the values `given` for a job that declares `declared`."""
    names = [param.name for param in declared]
    for name in given:
        if name not in names:
            message = f"the job has no such parameter{closest(name, names)}"
            yield Problem(dotted(path, name), message)
    for param in declared:
        if param.required and param.name not in given:
            yield Problem(dotted(path, param.name), "the job requires a value; write one")


def param_values(declared: Sequence[Param], given: Mapping[str, str]) -> dict[str, str]:
    """What the script finds: the defaults, and over them what is given.

    Values pass as they are; nothing is ever put into the script's text.
    """
    values = {param.name: param.default for param in declared if param.default is not None}
    return values | {param.name: given[param.name] for param in declared if param.name in given}
