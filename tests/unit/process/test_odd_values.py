"""Values that a sender may choose end no lane: the message passes, or it is dead, and the others go on."""

from pathlib import Path
from typing import Any

import pytest

from tests.rig.process_lane import arrived, dead, egress, opened, plan

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
def test_a_value_of_one_message_ends_no_lane(body: bytes, fields: dict[str, Any], tmp_path: Path):
    lane = opened(tmp_path, plan(**fields))
    lane.take(arrived(1, b'{"n":2,"s":"1"}'), arrived(2, body))
    assert len(egress(lane)) + len(dead(lane)) == 2
    lane.store()
    assert lane.unsettled() == 0
