"""Summary of a dry run in the editor: dead letters are counted on their own, and not as requests."""

import itertools
from typing import Any

import pytest

from dataplane.plan import compile_plan
from dataplane.plan.dryrun import SampleEvent, dry_run
from dataplane.spec import parse_pipe_spec
from mgmt.pipes.editor.draft import Draft
from mgmt.pipes.editor.dry_run import DryRunPanels, dry_run_panels

ROWS = {
    "type": "postgres", "host": "db.example.com", "database": "d", "user": "u", "table": "t",
    "columns": {"id": "meta.id", "note": "body.note"}, "key": ["id"],
}  # fmt: skip
CRM = {"type": "http", "url": "https://crm.example.com/in"}
PATH = {**CRM, "template": {"path": "/${body.note}"}}
CAST = [{"op": "cast", "path": "total", "to": "int"}]


def panels(sample: str, destinations: dict[str, Any], **fields: Any) -> DryRunPanels:
    spec = parse_pipe_spec({"sources": {"shop": {}}, "destinations": destinations, **fields})
    event = SampleEvent(sample.encode(), "shop", "msg_1", 1, 1, "pipe_1", 7)
    run = dry_run(spec, compile_plan(spec, b"salt"), event, itertools.count().__next__)
    return dry_run_panels(run, Draft(sample=sample), list(destinations))


@pytest.mark.parametrize(
    ("sample", "destinations", "fields", "words", "state"),
    [
        pytest.param('{"note":"a"}', {"crm": CRM, "rows": ROWS}, {}, "2 requests would be sent", "fine", id="all sent"),
        pytest.param("{}", {"crm": CRM, "rows": ROWS}, {}, "1 request would be sent, 1 dead letter", "bad", id="a row"),
        pytest.param("{}", {"crm": PATH}, {}, "0 requests would be sent, 1 dead letter", "bad", id="a template"),
        pytest.param(
            '{"total":"x"}', {"crm": CRM, "rows": ROWS}, {"transform": {"crm": CAST}},
            "0 requests would be sent, 2 dead letters", "bad", id="a step and a row",
        ),
        pytest.param(
            "{}", {"crm": CRM}, {"normalize": [{"op": "filter", "when": "false"}]},
            "0 requests would be sent, 1 filtered", "off", id="filtered",
        ),
    ],
)  # fmt: skip
def test_dead_letters_are_not_counted_as_requests(
    sample: str, destinations: dict[str, Any], fields: dict[str, Any], words: str, state: str
):
    shown = panels(sample, destinations, **fields)
    assert shown.summary.partition(" · ")[0] == words
    assert shown.state == state
