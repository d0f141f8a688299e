"""Retry-After: seconds or a date; an invalid value counts as none."""

import pytest

from dataplane.transmit.policy.retry_after import retry_after_s

NOW_S = 1_795_262_400.0  # Sat, 21 Nov 2026 12:00:00 GMT


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0), ("120", 120), ("315360000", 315_360_000),
        ("Sat, 21 Nov 2026 12:02:00 GMT", 120),
        ("Sat, 21 Nov 2026 11:58:00 GMT", 0),
        ("Saturday, 21-Nov-26 12:02:00 GMT", 120),
        ("-5", 0), ("1.5", 0), ("", 0), ("soon", 0), ("1e9", 0), ("9" * 5_000, 0), ("٣", 0),
        ("Sat, 99 Nov 2026 12:02:00 GMT", 0), ("Sat, 21 Nov 99999999 12:02:00 GMT", 0), ("x" * 10_000, 0),
    ],
)  # fmt: skip
def test_retry_after_is_parsed_as_the_rfc_says(value: str, seconds: float):
    assert retry_after_s(value, NOW_S) == seconds
