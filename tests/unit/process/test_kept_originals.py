"""A process lane passes the original body on to the destinations that send it, and to no other."""

from pathlib import Path
from typing import Any

import pytest

from dataplane.ledger.meta import MessageMeta, OriginalBody, decode_meta, encode_meta, read_meta
from dataplane.ledger.peek import PeekMeta, peek_headers, read_peek
from dataplane.plan import compile_plan
from dataplane.plan.through import through
from dataplane.process.flows import FlowGroup, PipeFlow
from dataplane.process.item import item_of
from dataplane.record_limits import CLIENT_MAX_BYTES, wire_bytes
from dataplane.spec import parse_pipe_spec
from dataplane.stages.enrich import EmptyTables
from dataplane.tables.records import PlanRecord
from tests.support import process_lane
from tests.support.memory_lane import MemoryMessage

ORIGINAL = OriginalBody("application/x-www-form-urlencoded", b"Body=hello+there&SmsSid=7")
BODY = b'{"Body":"hello there","SmsSid":"7"}'
SENDS = {"type": "http", "url": "https://crm.example/", "original_body": True}
PLAIN = {"type": "http", "url": "https://erp.example/"}
FILTER = {"op": "filter", "when": 'body.SmsSid == "7"'}


def spec_of(destinations: dict[str, Any], **more: Any) -> Any:
    return parse_pipe_spec({"sources": {"shop": {}}, "destinations": destinations, **more})


@pytest.mark.parametrize("names", [("crm", "erp"), ("erp", "crm")], ids=" before ".join)
@pytest.mark.parametrize("more", [{}, {"normalize": [FILTER], "transform": {"crm": [FILTER]}}])
def test_only_the_destination_that_sends_it_gets_the_original(
    tmp_path: Path, names: tuple[str, ...], more: dict[str, Any]
):
    known = {"crm": SENDS, "erp": PLAIN}
    spec = spec_of({name: known[name] for name in names}, **more)
    lane = process_lane.opened(tmp_path, PlanRecord("p", 1, spec))
    lane.take(process_lane.arrived(1, BODY, original=ORIGINAL))
    found = {read_meta(one["headers"]).destination: one for one in process_lane.egress(lane)}
    assert {name: read_meta(one["headers"]).original for name, one in found.items()} == {"crm": ORIGINAL, "erp": None}
    assert {one["value"] for one in found.values()} == {BODY}
    assert b"hello+there" not in b"".join(value for _, value in found["erp"]["headers"])


def test_dead_letter_of_the_steps_keeps_the_original_for_a_redrive(tmp_path: Path):
    fails = {"op": "filter", "when": "body.missing.field == 1"}
    lane = process_lane.opened(tmp_path, PlanRecord("p", 1, spec_of({"crm": SENDS}, normalize=[fails])))
    lane.take(process_lane.arrived(1, BODY, original=ORIGINAL))
    (letter,) = process_lane.dead(lane)
    assert (read_meta(letter["headers"]).original, letter["value"]) == (ORIGINAL, BODY)


def test_child_of_an_exploded_event_has_no_original(tmp_path: Path):
    """As after a rollback to a revision with other steps."""
    spec = spec_of(
        {"erp": PLAIN}, normalize=[{"op": "explode", "path": "lines"}, {"op": "filter", "when": "body.no.no"}]
    )
    lane = process_lane.opened(tmp_path, PlanRecord("p", 1, spec))
    lane.take(process_lane.arrived(1, b'{"lines":[1,2]}', original=ORIGINAL))
    assert [read_meta(one["headers"]).original for one in process_lane.dead(lane)] == [None, None]


def test_replay_passes_it_on_as_a_lane_does():
    plan = compile_plan(spec_of({"crm": SENDS, "erp": PLAIN}))
    meta = MessageMeta(1, "m", "p", 1, "shop", 1, 1, 0, original=ORIGINAL)
    for name, expected in (("crm", ORIGINAL), ("erp", None)):
        ((sent, body),) = through(plan, name, decode_meta(encode_meta(meta)), BODY, EmptyTables())
        assert (sent.original, body) == (expected, BODY)


def test_copy_for_a_live_tail_has_no_original():
    meta = MessageMeta(1, "m", "p", 1, "shop", 1, 1, 0, original=ORIGINAL)
    headers = peek_headers(PeekMeta(meta, "process", "seen"))
    assert read_peek(headers).meta == MessageMeta(1, "m", "p", 1, "shop", 1, 1, 0)
    assert meta.original == ORIGINAL


def test_originals_count_in_the_size_of_a_queue():
    """A tenant with large originals must not fill the partition's window unnoticed."""
    meta = MessageMeta(1, "m", "p", 1, "shop", 1, 1, 0, original=OriginalBody("text/xml", b"x" * 1_000))
    item = item_of(meta, MemoryMessage(0, 0, BODY, []), [])
    flow = PipeFlow(("p", 0), "ten_a")
    flow.add(FlowGroup("p", 1, 0, 0, 0), [item, item])
    assert flow.size_bytes() == 2 * (1_000 + len(BODY))


def test_largest_pair_that_ingest_accepts_fits_every_later_topic(tmp_path: Path):
    original = OriginalBody("application/xml", b"x" * (900 * 1024))
    lane = process_lane.opened(tmp_path, PlanRecord("p", 1, spec_of({"crm": SENDS})))
    lane.take(process_lane.arrived(1, b'"' + b"j" * (1000 * 1024) + b'"', original=original))
    (sent,) = process_lane.egress(lane)
    assert wire_bytes(sent["value"], b"", sent["headers"]) < CLIENT_MAX_BYTES
    assert read_meta(sent["headers"]).original == original
