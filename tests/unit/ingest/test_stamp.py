"""Stamping at ingest: ordered ids, event times in every form, buckets, and one revision for each key."""

import uuid
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.ingest.stamp import MAX_KEY_BYTES, choose_revision, event_time_us, key_bytes, message_id, partition_of
from dataplane.ledger.units import MINUTE_US, bucket_of

NOW = 1_790_000_000_123_456
GRACE = 60_000_000
chances = st.text("0123456789abcdef", min_size=19, max_size=19)


@given(st.integers(0, 2**48 * 1_000 - 1), chances)
def test_id_is_a_uuid_version_7_with_the_ingest_milliseconds(now_us: int, chance: str):
    parsed = uuid.UUID(message_id(now_us, chance))
    assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)
    assert parsed.int >> 80 == now_us // 1_000


@given(st.integers(0, 2**47), st.integers(1, 10**6), chances, chances)
def test_ids_of_later_milliseconds_sort_later(ms: int, later_ms: int, one: str, other: str):
    assert message_id(ms * 1_000, one) < message_id((ms + later_ms) * 1_000, other)


@given(chances, chances)
def test_ids_of_the_same_microsecond_differ_by_their_random_part(one: str, other: str):
    used = [(chance[:3], int(chance[3], 16) & 3, chance[4:]) for chance in (one, other)]
    assert (message_id(NOW, one) == message_id(NOW, other)) == (used[0] == used[1])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("2026-01-02T03:04:05Z", 1_767_323_045_000_000, id="UTC"),
        pytest.param("2026-01-02T05:04:05.123456+02:00", 1_767_323_045_123_456, id="offset and microseconds"),
        pytest.param("2026-01-02 03:04:05+00:00", 1_767_323_045_000_000, id="blank instead of T"),
        pytest.param(1_767_323_045, 1_767_323_045_000_000, id="seconds"),
        pytest.param(1_767_323_045.5, 1_767_323_045_500_000, id="seconds with a part"),
        pytest.param(1_767_323_045_123, 1_767_323_045_123_000, id="milliseconds"),
        pytest.param(1_767_323_045_123_456, 1_767_323_045_123_456, id="microseconds"),
        pytest.param("0001-01-01T00:00:00+14:00", -62_135_647_200_000_000, id="year 1, ahead of UTC"),
        pytest.param("9999-12-31T23:59:59-14:00", 253_402_351_199_000_000, id="year 9999, behind UTC"),
        pytest.param("2026-01-02T03:04:05", None, id="no offset"),
        pytest.param("yesterday", None, id="words"),
        pytest.param("", None, id="empty"),
        pytest.param("2026-13-45T00:00:00Z", None, id="no such day"),
        pytest.param(-1, None, id="negative"),
        pytest.param(0, None, id="zero"),
        pytest.param(10**18, None, id="nanoseconds"),
        pytest.param(float("nan"), None, id="NaN"),
        pytest.param(float("inf"), None, id="infinite"),
        pytest.param(True, None, id="a boolean"),
        pytest.param(None, None, id="null"),
        pytest.param({"seconds": 1}, None, id="an object"),
        pytest.param([1], None, id="an array"),
    ],
)
def test_event_time_is_parsed_or_none(value: Any, expected: int | None):
    assert event_time_us(value) == expected


@given(st.datetimes(timezones=st.timezones()) | st.text(max_size=30) | st.floats() | st.integers())
def test_no_event_time_raises_an_error(value: Any):
    event_time_us(value.isoformat() if hasattr(value, "isoformat") else value)


@pytest.mark.parametrize(
    ("event_us", "expected_us", "off_time"),
    [
        pytest.param(NOW, NOW, False, id="now"),
        pytest.param(NOW - GRACE, NOW - GRACE, False, id="just within grace"),
        pytest.param(NOW - GRACE - 1, NOW, True, id="past grace"),
        pytest.param(NOW + MINUTE_US, NOW + MINUTE_US, False, id="a minute ahead"),
        pytest.param(NOW + MINUTE_US + 1, NOW, True, id="further ahead"),
        pytest.param(253_402_350_799_000_000, NOW, True, id="year 9999"),
        pytest.param(-62_135_647_200_000_000, NOW, True, id="year 1"),
    ],
)
def test_bucket_is_the_minute_of_the_event_within_grace_and_else_of_ingest(
    event_us: int, expected_us: int, off_time: bool
):
    assert bucket_of(event_us, NOW, GRACE) == (expected_us // MINUTE_US, off_time)


@given(st.integers(-(2**60), 2**60))
def test_bucket_is_never_far_from_ingest_time(event_us: int):
    bucket, off_time = bucket_of(event_us, NOW, GRACE)
    assert -2 <= bucket - NOW // MINUTE_US <= 1
    assert off_time == (bucket == NOW // MINUTE_US and not -GRACE <= event_us - NOW <= MINUTE_US)


@pytest.mark.parametrize(
    ("value", "expected"), [("a", b"p\0a"), (7, b"p\x007"), (["a", 1], b'p\0["a",1]'), (None, None)]
)
def test_key_consists_of_the_pipe_and_the_value(value: Any, expected: bytes | None):
    assert key_bytes("p", value) == expected


def test_long_keys_are_cut_and_remain_different():
    one, other = (key_bytes("p", "x" * 1_000 + end) for end in "ab")
    assert one is not None
    assert one != other
    assert len(one) == MAX_KEY_BYTES + 2


keys = st.binary(max_size=20)
weights = st.lists(st.integers(0, 100), min_size=1, max_size=4).map(lambda shares: list(enumerate(shares, 1)))


@given(keys)
def test_single_revision_gets_every_key(key: bytes):
    assert choose_revision([(3, 100)], key) == 3


@given(weights, keys)
def test_choice_of_revision_depends_only_on_weights_and_key(shares: list[tuple[int, int]], key: bytes):
    assert choose_revision(shares, key) == choose_revision(list(shares), key)


@given(keys, st.integers(0, 99), st.integers(0, 99))
def test_higher_ramp_share_never_returns_a_key_to_the_old_revision(key: bytes, low: int, high: int):
    low, high = sorted((low, high))
    if choose_revision([(2, low), (1, 100 - low)], key) == 2:
        assert choose_revision([(2, high), (1, 100 - high)], key) == 2


@pytest.mark.parametrize("share", [1, 5, 25, 50])
def test_ramp_shares_are_met_within_tolerance(share: int):
    ids = (message_id(NOW + n * 1_000, f"{n * 0x9E3779B97F4A7C15F39 % 2**76:019x}") for n in range(20_000))
    counts = Counter(choose_revision([(8, share), (7, 100 - share)], id_.encode()) for id_ in ids)
    expected = 200 * share
    assert abs(counts[8] - expected) < 4 * (expected * (1 - share / 100)) ** 0.5 + 1


def test_one_percent_of_the_keys_is_spread_over_all_partitions():
    chosen = [key for n in range(20_000) if choose_revision([(8, 1), (7, 99)], key := f"p\0{n}".encode()) == 8]
    assert {partition_of(key, 4) for key in chosen} == {0, 1, 2, 3}


def test_next_ramp_starts_with_other_keys():
    keys = [f"p\0{n}".encode() for n in range(2_000)]
    first, second = ({key for key in keys if choose_revision([(n, 5), (7, 95)], key) == n} for n in (8, 9))
    assert len(first & second) < len(first) / 2


@pytest.mark.parametrize(("shares", "expected"), [([(1, 0)], None), ([], None), ([(1, 0), (2, 0)], None)])
def test_weights_of_zero_choose_no_revision(shares: list[tuple[int, int]], expected: int | None):
    assert choose_revision(shares, b"k") is expected


@given(keys)
def test_weights_that_do_not_sum_to_100_still_choose_a_revision(key: bytes):
    assert choose_revision([(1, 30), (2, 30)], key) in (1, 2)
