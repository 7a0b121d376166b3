"""Parameters: what is given against what the job declares."""

import pytest

from fleet.rules.manifest import Param
from fleet.rules.params import param_problems, param_values

DECLARED = (Param("DAYS", "7"), Param("SITE"))


@pytest.mark.parametrize(
    ("given", "problems"),
    [
        ({"SITE": "x"}, []),
        ({"SITE": "x", "DAYS": ""}, []),
        ({}, ["params.SITE: the job requires a value; write one"]),
        (
            {"SITE": "x", "DAY": "1"},
            ['params.DAY: the job has no such parameter; did you mean "DAYS"?'],
        ),
    ],
)
def test_what_is_given_must_be_what_the_job_declares(
    given: dict[str, str], problems: list[str]
) -> None:
    assert [str(problem) for problem in param_problems(DECLARED, given)] == problems


def test_a_value_that_is_given_replaces_the_default_and_passes_as_it_is() -> None:
    assert param_values(DECLARED, {"SITE": "$(id); %PATH%"}) == {
        "DAYS": "7",
        "SITE": "$(id); %PATH%",
    }
    assert param_values(DECLARED, {"DAYS": "", "OTHER": "x"}) == {"DAYS": ""}
