"""A draft and the live revision are compared event by event: same, changed, re-routed, rejected, recovered."""

from typing import Any

import pytest

from dataplane.plan import compile_plan
from dataplane.plan.compare import MOST_CHARS, EventOutcome, described, kind_of, not_accepted, outcome_of
from dataplane.plan.dryrun import MAX_SHOWN, SampleEvent, dry_run
from dataplane.spec import parse_pipe_spec

NOW_US = 1_790_000_000_000_000
BIG = {"rules": [{"when": "body.total > 100", "to": ["crm", "books"]}], "otherwise": ["books"]}
NUMBER = [{"op": "cast", "path": "total", "to": "int"}]
SPLIT = [{"op": "explode", "path": "lines"}]


def outcome(body: bytes = b'{"total":150}', **fields: Any) -> EventOutcome:
    destinations = {name: {"type": "http", "url": f"https://{name}.example/"} for name in ("crm", "books")}
    destinations |= fields.pop("more", {})
    spec = parse_pipe_spec({"sources": {"shop": {}}, "destinations": destinations, **fields})
    run = dry_run(spec, compile_plan(spec), SampleEvent(body, "shop", "m", NOW_US, NOW_US), lambda: 0)
    return outcome_of(run, "m")


@pytest.mark.parametrize(
    ("live", "draft", "body", "kind"),
    [
        pytest.param({}, {}, b'{"total":1}', "same", id="no change"),
        pytest.param({}, {"normalize": NUMBER}, b'{"total":1}', "same", id="a step that changes nothing here"),
        pytest.param({}, {"normalize": NUMBER}, b'{"total":"1"}', "changed", id="another body"),
        pytest.param(
            {}, {"more": {"crm": {"url": "https://crm.example/v2"}}}, b"{}", "changed", id="another URL, same body"
        ),
        pytest.param(
            {}, {"more": {"crm": {"url": "https://crm.example/", "headers": {"X-Env": "b"}}}}, b"{}", "changed",
            id="another header, same body",
        ),
        pytest.param({}, {"routes": BIG}, b'{"total":150}', "same", id="the rule selects the same"),
        pytest.param({}, {"routes": BIG}, b'{"total":50}', "rerouted", id="the rule selects fewer"),
        pytest.param(
            {}, {"normalize": [{"op": "filter", "when": "false"}]}, b"{}", "rerouted", id="filtered out in the draft"
        ),
        pytest.param({}, {"routes": BIG}, b"{}", "rejected", id="the rule needs a field"),
        pytest.param({}, {"transform": {"crm": NUMBER}}, b'{"total":"x"}', "rejected", id="dead for one destination"),
        pytest.param({"routes": BIG}, {}, b"{}", "recovered", id="the rule is gone"),
        pytest.param(
            {"normalize": NUMBER}, {"transform": {"crm": NUMBER}}, b'{"total":"x"}', "recovered",
            id="dead for all before, for one now",
        ),
        pytest.param(
            {"transform": {"crm": NUMBER}}, {"normalize": NUMBER}, b'{"total":"x"}', "rejected",
            id="dead for one before, for all now",
        ),
        pytest.param(
            {"normalize": NUMBER}, {"normalize": [{"op": "remove", "path": "a"}, *NUMBER]}, b'{"total":"x"}', "same",
            id="dead of the same cause, at a later step",
        ),
        pytest.param({"normalize": NUMBER}, {"routes": BIG}, b'{"total":[]}', "changed", id="dead of another cause"),
        pytest.param({}, {"normalize": SPLIT}, b'{"lines":[{},{}]}', "rerouted", id="exploded in the draft"),
    ],
)  # fmt: skip
def test_event_has_the_kind_of_its_difference(live: dict[str, Any], draft: dict[str, Any], body: bytes, kind: str):
    assert kind_of(outcome(body, **live), outcome(body, **draft)) == kind


def test_number_of_exploded_messages_is_compared_beyond_those_that_are_followed():
    body = b'{"lines":[%s]}' % b",".join([b'{"n":1}'] * (MAX_SHOWN + 5))
    fewer = b'{"lines":[%s]}' % b",".join([b'{"n":1}'] * (MAX_SHOWN + 4))
    assert kind_of(outcome(body, normalize=SPLIT), outcome(fewer, normalize=SPLIT)) == "rerouted"
    assert kind_of(outcome(body, normalize=SPLIT), outcome(body, normalize=SPLIT)) == "same"


def test_request_that_its_template_refuses_is_dead():
    template = {"crm": {"url": "https://crm.example/", "template": {"path": "/${body.id}"}}}
    assert kind_of(outcome(b'{"id":1}'), outcome(b'{"id":1}', more=template)) == "changed"
    assert kind_of(outcome(b"{}"), outcome(b"{}", more=template)) == "rejected"


def test_source_that_the_draft_lacks_rejects_its_events_at_ingest():
    found = described("rejected", outcome(), not_accepted("shop"))
    assert kind_of(outcome(), not_accepted("shop")) == "rejected"
    assert found.draft is not None
    assert [(unit.outcome, unit.node, unit.detail) for unit in found.draft.units] == [("dead", "ingest", "shop")]
    assert found.draft.to == []


def test_details_hold_only_the_units_that_differ():
    live, draft = outcome(b'{"total":50}'), outcome(b'{"total":50}', routes=BIG)
    found = described(kind_of(live, draft), live, draft)
    assert found.live is not None
    assert found.draft is not None
    assert (found.live.to, found.draft.to) == (["books", "crm"], ["books"])
    assert [(unit.destination, unit.request, unit.body) for unit in found.live.units] == [
        ("crm", ("POST https://crm.example/",), '{"total":50}')
    ]
    assert found.draft.units == []


def test_details_show_a_changed_header_without_the_equal_body():
    live, draft = outcome(), outcome(more={"crm": {"url": "https://crm.example/", "headers": {"X-Env": "b"}}})
    found = described("changed", live, draft)
    assert found.draft is not None
    assert [(unit.request, unit.body) for unit in found.draft.units] == [
        (("POST https://crm.example/", "X-Env: b"), "")
    ]


def test_bodies_of_details_are_cut():
    long = b'{"a":"%s"}' % (b"x" * MOST_CHARS)
    found = described("rerouted", outcome(long), outcome(long, normalize=[{"op": "filter", "when": "false"}]))
    assert found.live is not None
    assert sum(len(unit.body) for unit in found.live.units) == MOST_CHARS
    assert [unit.is_cut for unit in found.live.units] == [True, True]
