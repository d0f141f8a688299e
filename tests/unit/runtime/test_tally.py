"""What happens to many messages is logged once a second with its count, and the log stays small."""

import pytest

from dataplane.runtime.tally import MOST_LINES, Tally


def test_what_happens_to_many_is_one_line_with_its_count(caplog: pytest.LogCaptureFixture):
    tally = Tally()
    for cause in ("rejected", "rejected", "expired", "rejected"):
        tally.add(f"dead: cause={cause}")
    tally.write()
    assert caplog.messages == ["dead: cause=rejected count=3", "dead: cause=expired count=1"]


def test_nothing_is_written_twice_or_of_nothing(caplog: pytest.LogCaptureFixture):
    tally = Tally()
    tally.add("dead: cause=rejected")
    tally.write()
    caplog.clear()
    tally.write()
    assert not caplog.messages


def test_more_kinds_than_a_log_can_bear_are_counted_together(caplog: pytest.LogCaptureFixture):
    tally = Tally()
    for number in range(MOST_LINES + 7):
        tally.add(f"dead: pipe={number}")
    tally.add("dead: pipe=0")
    tally.write()
    assert len(caplog.messages) == MOST_LINES + 1
    assert caplog.messages[0] == "dead: pipe=0 count=2"
    assert caplog.messages[-1] == "and others: count=7"
