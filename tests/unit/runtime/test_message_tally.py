"""Repeated events are logged once a second with their count, and the log stays small."""

import pytest

from dataplane.runtime.telemetry.message_tally import MOST_LINES, MessageTally


def test_repeated_events_become_one_line_with_their_count(caplog: pytest.LogCaptureFixture):
    tally = MessageTally()
    for cause in ("rejected", "rejected", "expired", "rejected"):
        tally.add(f"dead: cause={cause}")
    tally.write()
    assert caplog.messages == ["dead: cause=rejected count=3", "dead: cause=expired count=1"]


def test_events_are_written_once_and_an_empty_tally_writes_nothing(caplog: pytest.LogCaptureFixture):
    tally = MessageTally()
    tally.add("dead: cause=rejected")
    tally.write()
    caplog.clear()
    tally.write()
    assert not caplog.messages


def test_kinds_beyond_the_limit_are_counted_together(caplog: pytest.LogCaptureFixture):
    tally = MessageTally()
    for number in range(MOST_LINES + 7):
        tally.add(f"dead: pipe={number}")
    tally.add("dead: pipe=0")
    tally.write()
    assert len(caplog.messages) == MOST_LINES + 1
    assert caplog.messages[0] == "dead: pipe=0 count=2"
    assert caplog.messages[-1] == "other messages: count=7"
