"""Policy, Autoscaler, the cell's record, its driver, its lanes: the whole chain in a box, under traffic."""

import pytest

from localbox.testing import Box
from tests.support.box_lanes import scale_to
from tests.support.box_shell import query_rows
from tests.support.demo_traffic import DemoTraffic

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
ACTIONS = "SELECT DISTINCT action, outcome FROM mgmt_controlaction WHERE controller = 'scale' ORDER BY 1"


def test_policy_scales_one_lane_to_two_and_back_and_nothing_is_lost(box: Box):
    with DemoTraffic(box) as traffic:
        for lanes in (2, 1):
            scale_to(box, 120, process=lanes, transmit=lanes)
            traffic.until_delivered(300, 120)
    traffic.assert_accounted()
    assert query_rows(box, ACTIONS) == [("scale-in", "done"), ("scale-out", "done")]
