"""State of an endpoint in the words of the customer portal."""

from datetime import UTC, datetime

import pytest

from mgmt.deliveries.queries.undelivered import UndeliveredCause
from mgmt.models import Destination
from mgmt.portal.presenters import state_line, undelivered_line

NOW = datetime(2026, 5, 3, tzinfo=UTC)


def problem(bin_: str, status: int = 503) -> UndeliveredCause:
    cause = "rejected" if bin_ == "dead" else ""
    reason = "server-error: overloaded" if bin_ == "retrying" else ""
    return UndeliveredCause("p1", "till-7", "crm", bin_, cause, 3, NOW, reason=reason, status=status)


@pytest.mark.parametrize(
    ("state", "is_stopped", "is_failing", "bins", "title", "words"),
    [
        ("active", False, False, [], "Healthy", "All events are delivered."),
        ("active", False, True, [], "Recovering", "some may still wait"),
        ("active", False, False, ["retrying"], "Not everything is delivered", "Returned 503. They are retried"),
        ("active", False, True, ["retrying"], "Failing", "Returned 503. Failed events are retried."),
        ("active", False, False, ["dead", "retrying"], "Events failed", "then redrive the failed events"),
        ("active", True, False, [], "Paused by your provider", "delivered later"),
        ("paused", True, True, ["held"], "Paused", "after you resume"),
        ("suspended", False, True, ["dead", "held"], "Suspended", "then resume it"),
        ("removed", False, False, [], "Removed", "Your provider removed this endpoint"),
    ],
)
def test_state_has_a_cause_and_a_next_step(
    state: str, is_stopped: bool, is_failing: bool, bins: list[str], title: str, words: str
):
    row = Destination(name="crm", state=state, state_cause="rejected" if state == "suspended" else "")
    lines = [undelivered_line(problem(bin_)) for bin_ in bins]
    found = state_line(row, is_stopped=is_stopped, is_failing=is_failing, problems=lines)
    assert found.title == title
    assert words in found.words
    assert not {"till-7", "crm"} & set(found.words.split())
