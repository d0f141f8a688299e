"""A lane passes a body on byte by byte unless a step changes it."""

from pathlib import Path
from typing import Any

import pytest

from dataplane.spec import parse_pipe_spec
from dataplane.tables.records import PlanRecord
from tests.support import process_lane

BODY = b'{ "ref" : "main",  "n": 1.0e0 }'
FILTER = {"op": "filter", "when": "body.n == 1.0"}
PEEK = {"op": "peek", "name": "raw", "share": 1.0}
SET = {"op": "set", "path": "a", "value": 1}
RULE = {"rules": [{"when": 'body.ref == "main"', "to": ["crm"]}], "otherwise": []}
CRM = {"type": "http", "url": "https://crm.example/"}


@pytest.mark.parametrize(
    ("more", "is_same"),
    [
        ({}, True),
        ({"normalize": [FILTER, PEEK]}, True),
        ({"transform": {"crm": [FILTER]}}, True),
        ({"normalize": [FILTER], "transform": {"crm": [FILTER]}, "routes": RULE}, True),
        ({"destinations": {"crm": CRM, "erp": CRM}, "transform": {"crm": [FILTER]}}, True),
        ({"normalize": [FILTER, SET]}, False),
        ({"normalize": [SET], "transform": {"crm": [FILTER]}}, False),
        ({"transform": {"crm": [SET]}}, False),
    ],
)
def test_bytes_stay_as_they_came_unless_a_step_changes_the_body(tmp_path: Path, more: dict[str, Any], is_same: bool):
    spec = parse_pipe_spec({"sources": {"shop": {}}, "destinations": {"crm": CRM}} | more)
    lane = process_lane.opened(tmp_path, PlanRecord("p", 1, spec))
    lane.take(process_lane.arrived(1, BODY))
    lane.store()
    made = [record["value"] for record in process_lane.egress(lane)]
    assert len(made) == len(spec.destinations)
    assert [body == BODY for body in made] == [is_same] * len(made)


def test_event_that_a_filter_of_one_destination_drops_is_filtered(tmp_path: Path):
    never = {"op": "filter", "when": "body.n == 2.0"}
    spec = parse_pipe_spec({"sources": {"shop": {}}, "destinations": {"crm": CRM}, "transform": {"crm": [never]}})
    lane = process_lane.opened(tmp_path, PlanRecord("p", 1, spec))
    lane.take(process_lane.arrived(1, BODY))
    lane.store()
    assert process_lane.egress(lane) == []
    assert lane.unsettled() == 0
