"""An alert about rejected events opens if one kind persists, and lasts until none of it was rejected for a while."""

import pytest

from mgmt.alerts.rejecting import RecentRejections, RejectingPolicy, persisting

POLICY = RejectingPolicy()


@pytest.mark.parametrize(
    ("events", "minutes", "persists"),
    [
        pytest.param(20, 3, True, id="as many as needed"),
        pytest.param(19, 10, False, id="too few events"),
        pytest.param(9_000, 2, False, id="one bad batch and its repeat"),
        pytest.param(9_000, 10, True, id="all events of a sender"),
    ],
)
def test_kind_persists_from_a_number_of_events_in_several_minutes(events: int, minutes: int, persists: bool):
    assert bool(persisting([RecentRejections(1, events, minutes)], (), POLICY)) == persists


def test_kind_of_the_open_alert_stays_while_any_event_of_it_is_rejected():
    few, none = RecentRejections(1, 1, 1), RecentRejections(2, 0, 0)
    assert persisting([few, none], {1, 2}, POLICY) == [few]
    assert persisting([few], {3}, POLICY) == []
    assert persisting([], {1}, POLICY) == []


def test_most_frequent_kind_is_first():
    kinds = [RecentRejections(number, 20 + events, 5) for number, events in ((1, 0), (2, 9), (3, 0))]
    assert [one.rejection for one in persisting(kinds, (), POLICY)] == [2, 1, 3]
