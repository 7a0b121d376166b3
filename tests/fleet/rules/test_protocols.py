"""A server speaks its own version of the protocol and the one before it."""

import pytest

from fleet.agent import enrolment, message
from fleet.rules.protocols import PROTOCOL, problem_of_protocol, spoken


@pytest.mark.parametrize(("own", "versions"), [(1, (1,)), (2, (1, 2)), (3, (2, 3)), (9, (8, 9))])
def test_the_own_version_and_the_one_before_are_spoken(own: int, versions: tuple[int, ...]) -> None:
    assert spoken(own) == versions
    assert [problem_of_protocol(version, own=own) for version in versions] == [""] * len(versions)


@pytest.mark.parametrize(
    ("own", "version", "problem"),
    [
        (1, 2, "this server speaks protocol 1; update the server, or install an older agent"),
        (1, 0, "this server speaks protocol 1; install another agent"),
        (3, 1, "this server speaks protocol 2 and 3; install another agent"),
        (3, 4, "this server speaks protocol 2 and 3; update the server, or install an older agent"),
    ],
)
def test_another_version_is_told_what_is_spoken(own: int, version: int, problem: str) -> None:
    assert problem_of_protocol(version, own=own) == problem


@pytest.mark.parametrize("version", [None, True, 1.0, "1", [], [1], {}, {"1": 1}, -1, 10**30])
def test_what_is_no_version_is_refused(version: object) -> None:
    assert problem_of_protocol(version).startswith("this server speaks protocol 1; ")


def test_the_agent_of_this_release_speaks_what_its_server_does() -> None:
    assert message.PROTOCOL == enrolment.PROTOCOL == PROTOCOL
