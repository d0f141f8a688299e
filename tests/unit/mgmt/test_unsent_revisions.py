"""Revisions whose events a destination lacks: those that ran without it, and rolled-back ones in doubt."""

from collections.abc import Mapping

import pytest

from mgmt.replays.unsent import unsent_revisions


@pytest.mark.parametrize(
    ("earlier", "runs_as", "expected"),
    [
        pytest.param({}, {}, [], id="no earlier revision"),
        pytest.param({2: False, 1: False}, {}, [1, 2], id="the destination is new"),
        pytest.param({1: True, 2: False}, {}, [2], id="it was removed and is back"),
        pytest.param({1: False, 2: True}, {2: 1}, [1, 2], id="rolled back to a revision without it"),
        pytest.param({1: True, 2: False}, {2: 1}, [2], id="rolled back to a revision with it"),
        pytest.param({1: True, 2: True}, {2: 1}, [], id="rolled back, both have it"),
        pytest.param({1: False, 2: True}, {}, [1], id="superseded without a ramp"),
    ],
)
def test_events_that_the_live_path_has_sent_are_left_out(
    earlier: Mapping[int, bool], runs_as: Mapping[int, int], expected: list[int]
):
    assert unsent_revisions(earlier, runs_as) == expected
