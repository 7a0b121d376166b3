"""Charts: the numbers must be what the eye sees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.rules import charts
from fleet.rules.charts import Count, Part

COUNTS = st.lists(
    st.builds(Count, label=st.just("x"), ok=st.integers(0, 10**6), bad=st.integers(0, 10**6)),
    max_size=48,
)


@pytest.mark.parametrize(
    ("most", "top"),
    [(0, 1), (1, 1), (2, 2), (3, 5), (7, 10), (11, 20), (21, 50), (51, 100), (4999, 5000)],
)
def test_the_top_line_is_a_round_number_that_holds_the_highest_bar(most: int, top: int) -> None:
    assert charts.nice_top(most) == top


def test_bars_stand_on_the_ground_line_and_failures_on_top_of_them() -> None:
    chart = charts.bars([Count("a", ok=5, bad=5)], width=100, height=50, gap=0)
    (bar,) = chart.bars
    assert (chart.top, bar.ok_y, bar.ok_height) == (10, 25, 25)
    assert (bar.bad_y, bar.bad_height) == (0, 25)
    assert bar.middle == 50


def test_one_failure_among_many_runs_is_still_seen() -> None:
    (bar,) = charts.bars([Count("a", ok=10_000, bad=1)], width=10, height=50).bars
    assert bar.bad_height == 2


def test_no_counts_give_an_empty_chart() -> None:
    assert charts.bars([], width=10, height=10).bars == ()


@given(COUNTS)
def test_no_bar_leaves_its_picture(counts: list[Count]) -> None:
    chart = charts.bars(counts, width=720, height=120)
    for bar in chart.bars:
        assert 0 <= bar.x <= bar.x + bar.width <= 720.01
        assert bar.bad_y >= 0
        assert bar.ok_y + bar.ok_height <= 120.01


def test_shares_fill_the_line_in_the_order_given() -> None:
    segments = charts.shares([Part("on", 3, "ok"), Part("off", 1, "idle"), Part("none", 0, "bad")])
    assert [(segment.part.word, segment.x, segment.width) for segment in segments] == [
        ("on", 0.0, 75.0),
        ("off", 75.0, 25.0),
    ]


def test_nothing_has_no_shares() -> None:
    assert charts.shares([Part("on", 0, "ok")]) == ()


@given(st.lists(st.builds(Part, st.just("w"), st.integers(0, 10**7), st.just("ok")), max_size=8))
def test_shares_end_where_the_line_ends(parts: list[Part]) -> None:
    segments = charts.shares(parts)
    if segments:
        assert abs(segments[-1].x + segments[-1].width - 100) < 0.1
        assert all(segment.width >= 0.9 for segment in segments)


def test_a_line_goes_from_the_lowest_to_the_highest_value() -> None:
    assert charts.line([0, 5, 10], width=20, height=10) == "0.0,10.0 10.0,5.0 20.0,0.0"
    assert charts.line([4], width=20, height=10) == ""


@pytest.mark.parametrize(("value", "level"), [(0, 0), (1, 1), (25, 1), (26, 2), (75, 3), (100, 4)])
def test_heat_is_nought_for_nothing_alone(value: int, level: int) -> None:
    assert charts.heat(value, most=100) == level
