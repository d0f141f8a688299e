"""A selection of minutes in the URL is checked before it reaches a query."""

from datetime import UTC, datetime

import pytest

from mgmt.ledger.queries.bucket_range import BucketRange, SelectionError, bucket_at, selected_range

NOW = datetime(2026, 5, 3, 12, 0, 30, tzinfo=UTC)
NOON = bucket_at(NOW)


@pytest.mark.parametrize(
    ("since", "until", "first", "last"),
    [
        pytest.param("2026-05-03T11:14", "2026-05-03T11:16", NOON - 46, NOON - 45, id="the end is excluded"),
        pytest.param("2026-05-03T11:14:59", "2026-05-03T11:15:00Z", NOON - 46, NOON - 46, id="seconds are dropped"),
        pytest.param("2026-05-03T11:59", "2026-05-03T13:00", NOON - 1, NOON, id="it ends now at the latest"),
        pytest.param("2026-05-02T11:00", "2026-05-03T11:00", NOON - 1_500, NOON - 61, id="a day"),
    ],
)
def test_selection_has_whole_minutes(since: str, until: str, first: int, last: int):
    assert selected_range(since, until, NOW) == BucketRange("", first, last)


@pytest.mark.parametrize(
    ("since", "until", "reason"),
    [
        pytest.param("2026-05-03T11:16", "2026-05-03T11:16", "after the start", id="empty"),
        pytest.param("2026-05-03T11:16", "2026-05-03T11:14", "after the start", id="reversed"),
        pytest.param("2026-05-02T11:00", "2026-05-03T11:01", "more than 24 hours", id="too long"),
        pytest.param("2026-05-04T05:00", "2026-05-04T05:01", "in the future", id="in the future"),
        pytest.param("9999-12-31T23:58", "9999-12-31T23:59", "in the future", id="end of time"),
        pytest.param("0001-01-01T00:00", "0001-01-01T00:01", "kept for so long", id="beginning of time"),
        pytest.param("2026-02-30T00:00", "2026-05-03T11:00", "does not exist", id="no such day"),
        pytest.param("2026-05-03T24:61", "2026-05-03T11:00", "does not exist", id="no such minute"),
        pytest.param("0000-01-01T00:00", "2026-05-03T11:00", "does not exist", id="no such year"),
        pytest.param("", "2026-05-03T11:00", "a start and an end", id="no start"),
        pytest.param("2026-05-03T11:00", "", "a start and an end", id="no end"),
        pytest.param("2026-05-03T11:00\n", "2026-05-03T11:01", "a start and an end", id="line break"),
        pytest.param("٢٠٢٦-05-03T11:00", "2026-05-03T11:01", "a start and an end", id="other digits"),
        pytest.param("2026-05-03T11:00+23:00", "2026-05-03T11:01", "a start and an end", id="zone"),
        pytest.param("1e9", "' OR 1=1 --", "a start and an end", id="no times"),
        pytest.param("9" * 10_000, "2026-05-03T11:01", "a start and an end", id="long"),
    ],
)
def test_impossible_selection_is_refused_with_the_reason(since: str, until: str, reason: str):
    with pytest.raises(SelectionError, match=reason):
        selected_range(since, until, NOW)
