"""A sealed minute that lost more than the pipe's threshold opens an alert, with the loss by node."""

import pytest

from dataplane.ledger.losses import BucketLoss, NodeShare
from mgmt.alerts.loss import bounded, exceeds, summary_of


def loss(lost: int, due: int = 1_000, at_node: int | None = None) -> BucketLoss:
    """Return the loss of a minute; `at_node`: units due at the node that lost them."""
    node = NodeShare("transmit:crm", at_node if at_node is not None else due, lost)
    return BucketLoss((NodeShare("ingest", due, 0), node), due, lost)


@pytest.mark.parametrize(
    ("minute", "threshold_percent", "alerts"),
    [
        pytest.param(loss(0), 0.0, False, id="nothing lost"),
        pytest.param(loss(1), 0.0, True, id="one lost message, threshold 0"),
        pytest.param(loss(10), 1.0, False, id="1 % is not above 1 %"),
        pytest.param(loss(11), 1.0, True, id="above 1 %"),
        pytest.param(loss(5, at_node=10), 1.0, True, id="half of one destination's messages"),
        pytest.param(loss(0), 99.0, False, id="nothing lost, high threshold"),
    ],
)
def test_minute_alerts_above_the_threshold(minute: BucketLoss, threshold_percent: float, alerts: bool):
    assert exceeds(minute, threshold_percent) is alerts


def test_summary_adds_up_the_nodes_of_several_minutes():
    found = summary_of([loss(10), loss(30)], 1.0)
    assert found["end_to_end"] == {"due": 2_000, "lost": 40, "percent": 2.0}
    assert found["nodes"] == [
        {"node": "ingest", "due": 2_000, "lost": 0, "percent": 0.0},
        {"node": "transmit:crm", "due": 2_000, "lost": 40, "percent": 2.0},
    ]
    assert (found["threshold_percent"], found["worst_minute_percent"]) == (1.0, 3.0)


def test_only_the_newest_minutes_are_kept_once_each():
    assert bounded([5, 3, 5, 4], 2) == [4, 5]
