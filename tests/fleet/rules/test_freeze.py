"""The freeze: in force inside its bounds, and always when it cannot be read."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.rules.freeze import NOT_FROZEN, FreezeRecord, freeze_state

UTC_ZONE = ZoneInfo("UTC")


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def frozen(record: FreezeRecord, now: str) -> bool:
    return freeze_state([record], now=day(now), local=UTC_ZONE).frozen


WINTER = FreezeRecord(True, "2026-12-20", "2027-01-05", "year end", "utc")


@pytest.mark.parametrize(
    ("record", "now", "expected"),
    [
        pytest.param(FreezeRecord(False), "2026-12-25", False, id="12#1 none"),
        pytest.param(FreezeRecord(True), "2026-12-25", True, id="12#2 empty"),
        pytest.param(FreezeRecord(True, reason="why"), "2026-12-25", True, id="12#3 reason only"),
        pytest.param(WINTER, "2026-12-19", False, id="12#4 before"),
        pytest.param(WINTER, "2026-12-20", True, id="12#5 at its start"),
        pytest.param(WINTER, "2026-12-31", True, id="12#6 inside"),
        pytest.param(WINTER, "2027-01-05", False, id="12#7 at its end"),
        pytest.param(WINTER, "2027-01-06", False, id="12#8 after"),
        pytest.param(FreezeRecord(True, "2026-12-20"), "2030-01-01", True, id="12#9 from only"),
        pytest.param(
            FreezeRecord(True, None, "2027-01-05"), "2020-01-01", True, id="12#10 until only"
        ),
        pytest.param(
            FreezeRecord(True, None, "2027-01-05"), "2027-01-05", False, id="12#11 until reached"
        ),
        pytest.param(FreezeRecord(True, "garbage"), "2026-12-25", True, id="12#12 from garbage"),
        pytest.param(
            FreezeRecord(True, "2030-01-01", "garbage"),
            "2026-12-25",
            True,
            id="12#13 until garbage",
        ),
    ],
)
def test_a_freeze_holds_inside_its_bounds(record: FreezeRecord, now: str, expected: bool) -> None:
    assert frozen(record, now) is expected


def test_the_zone_of_the_record_says_when_its_days_begin() -> None:
    tokyo = FreezeRecord(True, "2026-12-20", "2027-01-05", tz="Asia/Tokyo")
    assert frozen(tokyo, "2026-12-19T15:00")
    assert not frozen(tokyo, "2026-12-19T14:59:59")


def test_local_means_the_zone_of_the_server() -> None:
    record = FreezeRecord(True, "2026-12-20", tz="local")
    early = day("2026-12-19T15:00")
    assert freeze_state([record], now=early, local=ZoneInfo("Asia/Tokyo")).frozen
    assert not freeze_state([record], now=early, local=UTC_ZONE).frozen


@pytest.mark.parametrize(
    ("records", "why"),
    [
        ([], "no freeze record"),
        ([FreezeRecord(False), FreezeRecord(False)], "several"),
        ([FreezeRecord(None)], "not clear"),
        ([FreezeRecord("no")], "not clear"),
        ([FreezeRecord(True, 5)], "no text"),
        ([FreezeRecord(True, "2027-01-01", "2026-01-01")], "ends before it starts"),
        ([FreezeRecord(True, tz="Mars/Olympus")], "no time zone"),
        ([FreezeRecord(True, tz=None)], "no text"),
        ([FreezeRecord(True, "2026-12-20T25:00:00Z")], "calendar"),
    ],
)
def test_what_cannot_be_read_is_frozen_and_says_why(records: list[FreezeRecord], why: str) -> None:
    """The original took a missing record for "not frozen"; a lost row must not thaw a fleet."""
    state = freeze_state(records, now=day("2026-06-10"), local=UTC_ZONE)
    assert state.frozen
    assert state.until is None
    assert state.unreadable is not None
    assert why in state.unreadable
    assert state.words.startswith("frozen: unreadable")


def test_a_freeze_says_why_and_until_when() -> None:
    state = freeze_state([WINTER], now=day("2026-12-25"), local=UTC_ZONE)
    assert (state.reason, state.until) == ("year end", day("2027-01-05"))
    assert state.words == "frozen: year end"


def test_96_a_freeze_to_come_does_not_hold_today_and_is_announced() -> None:
    state = freeze_state([WINTER], now=day("2026-12-01"), local=UTC_ZONE)
    assert (state.frozen, state.starts_at) == (False, day("2026-12-20"))


def test_a_freeze_that_is_over_is_like_none() -> None:
    assert freeze_state([WINTER], now=day("2027-02-01"), local=UTC_ZONE) == NOT_FROZEN


@given(
    st.lists(
        st.builds(
            FreezeRecord,
            st.none() | st.booleans() | st.text(),
            st.none() | st.integers() | st.text(),
            st.none() | st.binary() | st.text(),
            st.none() | st.text(),
            st.none() | st.sampled_from(["utc", "local", "", "x", "Europe/Budapest"]),
        ),
        max_size=2,
    )
)
def test_the_answer_is_total_and_only_a_readable_record_thaws(
    records: list[FreezeRecord],
) -> None:
    state = freeze_state(records, now=day("2026-06-10"), local=UTC_ZONE)
    if not state.frozen:
        assert len(records) == 1
        assert isinstance(records[0].is_set, bool)
        assert state.unreadable is None


@given(st.integers(-50, 50))
def test_inside_is_from_the_start_up_to_but_without_the_end(hours: int) -> None:
    starts = day("2026-06-10")
    record = FreezeRecord(True, "2026-06-10", "2026-06-11", tz="utc")
    now = starts + timedelta(hours=hours)
    assert freeze_state([record], now=now, local=UTC_ZONE).frozen is (0 <= hours < 24)
