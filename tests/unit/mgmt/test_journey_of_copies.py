"""The journey of a message reads the egress record of the original, not of a copy that a replay made."""

from typing import Any

import pytest

from dataplane.ledger.bins import BucketFacts
from mgmt.messages.queries.journey import _is_of, _Unit
from mgmt.models import Pipe
from tests.support.memory_lane import message

POSITION = 1 << 54 | 7  # of generation 1, as each stored position is above 32 bits


@pytest.mark.parametrize(
    ("changes", "is_its"),
    [
        pytest.param({}, True, id="original"),
        pytest.param({"replay": "replay_1"}, False, id="copy"),
        pytest.param({"child": 1}, False, id="child"),
        pytest.param({"pipe": "q"}, False, id="another pipe"),
    ],
)
def test_only_the_original_leaves_for_its_destination(changes: dict[str, Any], is_its: bool):
    unit = _Unit(Pipe(id="p"), POSITION, 0, None, BucketFacts({}, {}, {}, {}))
    assert _is_of(unit, message(1, position=POSITION, **changes)) is is_its
