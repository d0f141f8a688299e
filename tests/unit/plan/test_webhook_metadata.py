"""Parts of its request that an event keeps: headers in expressions and at destinations, the id for dedup, its bytes."""

from typing import Any

import msgspec
import pytest

from dataplane.ledger.meta import MessageMeta, decode_meta, encode_meta
from dataplane.plan import compile_plan
from dataplane.plan.about import about
from dataplane.plan.dedup import DedupIdentity
from dataplane.plan.dryrun import SampleEvent, dry_run
from dataplane.plan.outbound import forwarded_headers
from dataplane.plan.through import through
from dataplane.spec import SpecError, parse_pipe_spec
from dataplane.spec.dedup import DedupSpec
from dataplane.stages.enrich import EmptyTables
from tests.support.doc_blocks import documented

HEADERS = {"x-github-event": "push", "x-hub-signature-256": "sha256=ab"}
META = MessageMeta(1, "m", "p", 1, "shop", 1, 1, 0, idempotency_key="d-1", request_headers=HEADERS)
BODY = b'{ "ref" : "main",  "n": 1.0e0 }'


def spec(normalize: Any = (), **to: Any) -> Any:
    destination = {"type": "http", "url": "https://crm.example/", **to}
    document = {"sources": {"shop": {}}, "destinations": {"crm": destination}, "normalize": list(normalize)}
    return parse_pipe_spec(document)


def sent(*steps: Any) -> list[bytes]:
    plan = compile_plan(spec(steps))
    return [body for _, body in through(plan, "crm", decode_meta(encode_meta(META)), BODY, EmptyTables())]


def test_expressions_read_the_headers():
    push = {"op": "filter", "when": 'meta.headers["x-github-event"] == "push"'}
    assert sent(push) == [BODY]
    assert sent({"op": "filter", "when": 'meta.headers["x-github-event"] == "ping"'}) == []
    run = dry_run(
        spec([push]), compile_plan(spec([push])), SampleEvent(BODY, "shop", "m", 1, 1, headers=HEADERS), lambda: 0
    )
    assert [request.body.encode() for request in run.requests] == [BODY]


def test_documented_expression_keeps_pushes_and_drops_events_without_the_header():
    plan = compile_plan(spec([{"op": "filter", "when": documented("webhook-sources.md", "cel").strip()}]))
    for headers, kept in ((HEADERS, [BODY]), ({"x-github-event": "ping"}, []), ({}, [])):
        meta = msgspec.structs.replace(META, request_headers=headers)
        assert [body for _, body in through(plan, "crm", meta, BODY, EmptyTables())] == kept


def test_mapped_headers_are_a_copy():
    steps = [{"op": "map", "path": "h", "expr": "meta.headers"}, {"op": "set", "path": "h.x-github-event", "value": 1}]
    assert msgspec.json.decode(sent(*steps)[0])["h"]["x-github-event"] == 1
    assert about(META).meta["headers"] == HEADERS


def test_bytes_stay_as_they_came_unless_a_step_changes_the_body():
    only_read = [{"op": "filter", "when": "body.n == 1.0"}, {"op": "peek", "name": "raw", "share": 1.0}]
    assert sent() == sent(*only_read) == [BODY]
    assert sent({"op": "set", "path": "a", "value": 1}) != [BODY]


def test_destination_gets_the_headers_that_it_asks_for():
    to = spec(forward_headers=["X-Hub-Signature-256", "X-Missing"]).destinations["crm"]
    assert forwarded_headers(to, META) == ["X-Hub-Signature-256: sha256=ab"]
    assert forwarded_headers(spec().destinations["crm"], META) == []


@pytest.mark.parametrize(
    "to",
    [
        {"forward_headers": ["webhook-id"]},
        {"forward_headers": ["authorization"]},
        {"forward_headers": ["host"]},
        {"forward_headers": ["x-a", "X-A"]},
        {"forward_headers": ["x-a"], "headers": {"X-A": "1"}},
        {"forward_headers": ["x-a"], "auth": {"type": "header", "name": "X-A"}},
        {"forward_headers": ["x-a"], "batch": {}},
    ],
)
def test_header_that_would_take_the_place_of_another_is_refused(to: Any):
    with pytest.raises(SpecError, match="forward_headers"):
        spec(**to)


def test_same_id_of_the_same_source_is_the_same_delivery():
    identity = DedupIdentity(DedupSpec(by="idempotency-key"))
    assert identity.of_key(META) == identity.of_key(msgspec.structs.replace(META, id="m2", request_headers={}))
    others = [{"idempotency_key": "d-2"}, {"source": "other"}, {"pipe": "q"}]
    assert len({identity.of_key(msgspec.structs.replace(META, **one)) for one in [{}, *others]}) == 4
    assert identity.of_key(msgspec.structs.replace(META, idempotency_key="")) is None


@pytest.mark.parametrize("dedup", [{}, {"paths": []}, {"paths": ["id"], "by": "idempotency-key"}])
def test_dedup_needs_paths_or_the_senders_id(dedup: Any):
    document = {"sources": {"shop": {}}, "destinations": {"crm": {"type": "lake"}}, "dedup": dedup}
    with pytest.raises(SpecError, match="paths"):
        parse_pipe_spec(document)
