"""Revisions whose events a destination lacks: those that ran without it, and rolled-back ones in doubt."""

from collections.abc import Mapping

import pytest

from mgmt.replays.unsent import unsent_revisions


@pytest.mark.parametrize(
    ("kinds", "runs_as", "expected"),
    [
        pytest.param({}, {}, [], id="no earlier revision"),
        pytest.param({1: "", 2: ""}, {}, [1, 2], id="the destination is new"),
        pytest.param({1: "topic", 2: ""}, {}, [2], id="it was removed and is back"),
        pytest.param({1: "lake"}, {}, [1], id="it had another type"),
        pytest.param({1: "", 2: "topic"}, {2: 1}, [1, 2], id="rolled back to a revision without it"),
        pytest.param({1: "topic", 2: ""}, {2: 1}, [2], id="rolled back to a revision with it"),
        pytest.param({1: "topic", 2: "topic"}, {2: 1}, [], id="rolled back, both have it"),
        pytest.param({1: "", 2: "topic"}, {}, [1], id="superseded without a ramp"),
    ],
)
def test_events_that_the_live_path_has_sent_are_left_out(
    kinds: Mapping[int, str], runs_as: Mapping[int, int], expected: list[int]
):
    assert unsent_revisions(kinds, runs_as, "topic") == expected
