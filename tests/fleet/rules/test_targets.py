"""Who is meant, and when the failures of a wave stop the next."""

import pytest

from fleet.rules.targets import FailureLimit, Target

CANARIES = Target(groups=("canary", "wave1"))
UUID = "0197f8a2-0000-7000-8000-000000000001"


@pytest.mark.parametrize(
    ("target", "pc", "groups", "match"),
    [
        pytest.param(Target(all=True), "anything", [], True, id="5#1"),
        pytest.param(Target(pcs=("pc-01",)), "pc-01", [], True, id="5#2"),
        pytest.param(Target(pcs=("pc-01",)), "other", [], False, id="5#3"),
        pytest.param(CANARIES, "any", ["wave1"], True, id="5#4"),
        pytest.param(CANARIES, "any", ["dept-eng", "canary"], True, id="5#5"),
        pytest.param(CANARIES, "any", ["dept-eng"], False, id="5#6"),
        pytest.param(Target(), "pc-01", ["canary"], False, id="5#7"),
        pytest.param(Target(groups=("canary",), pcs=("pc-9",)), "pc-9", [], True, id="5#8"),
        pytest.param(Target(pcs=("PC-01",)), "pc-01", [], True, id="case of a name"),
        pytest.param(Target(groups=("Canary",)), "x", ["canary"], True, id="case of a group"),
        pytest.param(Target(pcs=("",)), "x", [], False, id="an empty name is nobody"),
    ],
)
def test_who_is_meant(target: Target, pc: str, groups: list[str], match: bool) -> None:
    assert target.matches(pc, groups) is match


def test_a_pc_may_be_named_by_its_uuid() -> None:
    assert Target(pcs=(UUID.upper(),)).matches("pc-1", [], uuid=UUID)


@pytest.mark.parametrize(
    ("target", "specified"),
    [
        (Target(), False),
        (Target(all=True), True),
        (Target(groups=("a",)), True),
        (Target(pcs=("a",)), True),
    ],
)
def test_a_target_is_specified_when_it_names_anybody(target: Target, specified: bool) -> None:
    assert target.is_specified is specified


@pytest.mark.parametrize(
    ("limit", "failed", "total", "exceeded"),
    [
        (FailureLimit(0), 0, 10, False),
        (FailureLimit(0), 1, 10, True),
        (FailureLimit(3), 3, 10, False),
        (FailureLimit(3), 4, 10, True),
        (FailureLimit(10, percent=True), 1, 10, False),
        (FailureLimit(10, percent=True), 2, 10, True),
        (FailureLimit(10, percent=True), 1, 9, True),
        (FailureLimit(100, percent=True), 9, 9, False),
        (FailureLimit(0, percent=True), 0, 0, False),
    ],
)
def test_a_wave_stops_the_next_when_more_fail_than_allowed(
    limit: FailureLimit, failed: int, total: int, exceeded: bool
) -> None:
    assert limit.is_exceeded(failed, total) is exceeded
