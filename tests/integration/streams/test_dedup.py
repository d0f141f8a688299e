"""Dedup on real Kafka and Spark: the first event of an id passes, and each repeat names it, despite kills."""

import json
import random
from collections import defaultdict
from http.client import HTTPConnection
from typing import Any

import pytest

from dataplane.ledger.bins import Bin
from dataplane.ledger.facts import DEDUP, Fact
from tests.support.data_plane import DataPlane
from tests.support.killing import Killer
from tests.support.patience import until
from tests.support.sizes import STREAM_EVENTS, STREAM_KILLS
from tests.support.webhook_senders import hex_hmac

SECRET = "shared-with-the-sender"
COPIES, BATCH = 3, 100
BY_ORDER = {"paths": ["order.id"], "window_s": 3600}


def events(ids: int, seed: int) -> list[dict[str, Any]]:
    """Return several events of each id, far apart and next to each other."""
    copies = [{"order": {"id": number}, "copy": copy} for number in range(ids) for copy in range(COPIES)]
    random.Random(seed).shuffle(copies)
    return copies


def post(plane: DataPlane, key: str, batch: list[dict[str, Any]]) -> dict[str, int]:
    """Send events; return each order's id by the position that its event was given."""
    body = b"\n".join(json.dumps(event).encode() for event in batch)
    status, _, text = plane.post(key, body, content_type="application/x-ndjson")
    assert status in (200, 202, 207), text
    answers = json.loads(text)["items"]
    assert all(answer["status"] == 202 for answer in answers), text
    return {answer["position"]: event["order"]["id"] for answer, event in zip(answers, batch, strict=True)}


def post_delivery(plane: DataPlane, path: str, id_: str, body: bytes) -> str:
    """Send a signed delivery of GitHub; return the position of its event."""
    signature = "sha256=" + hex_hmac(SECRET, body)
    headers = {"content-type": "application/json", "x-github-delivery": id_, "x-hub-signature-256": signature}
    connection = HTTPConnection("127.0.0.1", plane.port, timeout=15)
    try:
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    assert answer.status == 202, text
    return str(json.loads(text)["position"])


def first_of(plane: DataPlane, pipe: str) -> dict[str, str]:
    """Return the position of the first event that each repeat in the ledger names."""
    return {
        position: detail
        for (node, fact, detail), positions in plane.books.details(pipe).items()
        if node == DEDUP and fact == Fact.DUPLICATE
        for position in positions
    }


def check_each_id_goes_on_once(
    plane: DataPlane, pipe: str, *, ids: int, kills: int, limit_s: float, execution: str = "streaming"
) -> None:
    """Send every id several times, kill the application now and then, and check each outcome in the ledger."""
    to = {"crm": {"url": plane.receiver.url(f"/{pipe}")}}
    key = plane.add_pipe(pipe, to, dedup=BY_ORDER, execution=execution)
    killer = Killer(plane, f"/{pipe}")
    sent = events(ids, seed=1)
    batches = [sent[at : at + BATCH] for at in range(0, len(sent), BATCH)]
    deadly = {len(batches) * (number + 1) // (kills + 1) for number in range(kills)}
    known: dict[str, int] = {}
    for number, batch in enumerate(batches):
        known |= post(plane, key, batch)
        if number in deadly:
            killer.kill()
    whole = plane.settled(pipe, set(known), limit_s)

    went_on, repeats = whole.at("crm", Bin.DELIVERED), whole.upstream(Bin.DUPLICATE)
    assert went_on | repeats == set(known)
    assert not went_on & repeats
    assert whole.lost() == 0
    by_id = defaultdict(list)
    for position in went_on:
        by_id[known[position]].append(position)
    assert {number: len(positions) for number, positions in by_id.items()} == dict.fromkeys(range(ids), 1)
    named = first_of(plane, pipe)
    assert set(named) == repeats
    assert all(by_id[known[position]] == [first] for position, first in named.items())
    bodies = (json.loads(one.body) for one in plane.receiver.got[f"/{pipe}"])
    came = {(event["order"]["id"], event["copy"]) for event in bodies}  # a delivery may be repeated after a kill
    assert sorted(number for number, _ in came) == list(range(ids)), "the destination has one event of each id"


@pytest.mark.timeout(1_500)  # includes the start of the package's services
def test_each_id_passes_once_and_every_repeat_names_it_although_the_application_is_killed(plane: DataPlane):
    check_each_id_goes_on_once(plane, "dedup", ids=400, kills=1, limit_s=200)


@pytest.mark.timeout(1_500)
def test_each_id_of_a_bulk_pipe_passes_once_although_the_application_is_killed(plane: DataPlane):
    before = plane.records_on("bulk")
    check_each_id_goes_on_once(plane, "dedup-bulk", ids=200, kills=1, limit_s=200, execution="bulk")
    assert plane.records_on("bulk") - before >= 200


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_each_id_passes_once_in_many_events_with_several_kills(plane: DataPlane):
    check_each_id_goes_on_once(plane, "dedup-long", ids=STREAM_EVENTS // COPIES, kills=STREAM_KILLS, limit_s=1_800)


def test_events_without_the_value_all_pass(plane: DataPlane):
    key = plane.add_pipe("unknown", {"crm": {"url": plane.receiver.url("/unknown")}}, dedup=BY_ORDER)
    for _ in range(2):
        assert plane.post(key, b'{"order":{"id":null}}')[0] == 202
        assert plane.post(key, b'{"order":7}')[0] == 202
    until(lambda: len(plane.receiver.got["/unknown"]) == 4, "all are delivered", 30)


@pytest.mark.timeout(900)
def test_delivery_that_a_provider_sends_again_arrives_once(plane: DataPlane):
    """GitHub's redelivery has the same `X-GitHub-Delivery`, also if the body is the same in another delivery."""
    path = plane.cluster.add_webhook("redelivered", "github", SECRET)
    to = {"crm": {"url": plane.receiver.url("/redelivered"), "forward_headers": ["X-GitHub-Delivery"]}}
    plane.add_pipe("redelivered", to, dedup={"by": "idempotency-key"})
    first = post_delivery(plane, path, "d-1", b'{"ref": "main"}')
    until(lambda: plane.receiver.got["/redelivered"], "the first delivery", 200)  # of two at once, either may pass
    again, other = (post_delivery(plane, path, id_, b'{"ref": "main"}') for id_ in ("d-1", "d-2"))
    whole = plane.settled("redelivered", {first, again, other}, 200)
    assert (whole.at("crm", Bin.DELIVERED), whole.upstream(Bin.DUPLICATE)) == ({first, other}, {again})
    assert first_of(plane, "redelivered") == {again: first}
    came = [one.headers["x-github-delivery"] for one in plane.receiver.got["/redelivered"]]
    assert sorted(came) == ["d-1", "d-2"]
