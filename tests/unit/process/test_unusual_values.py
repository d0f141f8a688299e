"""Unusual values of a sender end no lane: the message passes or is dead, and the others continue."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.process_lane import arrived, dead, egress, opened, plan

HUGE = b'{"n":123456789012345678901234567890}'
DEEP = ".".join(["n"] * 100)
SUMS = {"w": {"span": {"kind": "tumbling", "size_s": 60}, "values": {"s": {"op": "sum", "of": "n"}}}}
NESTED = [{"op": "rename", "path": "n", "to": DEEP}] * 20
TO_DECIMAL = {"op": "cast", "path": "n", "to": "decimal"}


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        pytest.param(HUGE, {"windows": SUMS}, id="a window over an integer beyond 64 bits"),
        pytest.param(b'{"n":1}', {"normalize": NESTED, "windows": SUMS}, id="a window over a deep value"),
        pytest.param(
            b'{"n":1.5,"s":"nan"}',
            {"normalize": [TO_DECIMAL, {"op": "filter", "when": "body.n < double(body.s) || true"}]},
            id="a decimal beside NaN",
        ),
        pytest.param(
            b'{"n":1}',
            {
                "normalize": NESTED,
                "routes": {
                    "mode": "first", "rules": [{"when": "body == body", "to": ["crm"]}], "otherwise": ["crm"],
                },
            },
            id="a route over a deep value",
        ),
    ],
)  # fmt: skip
def test_unusual_value_in_one_message_does_not_end_the_lane(body: bytes, fields: dict[str, Any], tmp_path: Path):
    lane = opened(tmp_path, plan(**fields))
    lane.take(arrived(1, b'{"n":2,"s":"1"}'), arrived(2, body))
    assert len(egress(lane)) + len(dead(lane)) == 2
    lane.store()
    assert lane.unsettled() == 0
