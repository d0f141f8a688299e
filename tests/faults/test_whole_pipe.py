"""Explode, filter, look-up, routes and peek on real Kafka and Spark: each destination gets exactly its messages.

The expected deliveries are computed here from the events, without the code that runs the pipe.
"""

from typing import Any

import msgspec
import pytest
from confluent_kafka import TopicPartition

from dataplane.ledger.bins import Bin
from tests.support.data_plane import DataPlane
from tests.support.kafka import admin_consumer
from tests.support.patience import Patience, until

GOODS = {"a": b'{"price":10}', "b": b'{"price":200}'}
# One of three lines has a count of 0, and one of four orders names a good that is not in the table.
ORDERS: list[dict[str, Any]] = [
    {"order": n, "lines": [{"sku": "ab"[(n + k) % 2] if n % 4 else "none", "count": k} for k in range(3)]}
    for n in range(60)
]
SPEC: dict[str, Any] = {
    "normalize": [
        {"op": "explode", "path": "lines"},
        {"op": "filter", "when": "body.lines.count > 0"},
        {"op": "peek", "name": "lines", "share": 1},
    ],
    "enrich": [{"table": "goods", "key": "body.lines.sku", "into": "good", "on_missing": "dead"}],
    "routes": {"rules": [{"when": "body.good.price > 100", "to": ["dear", "audit"]}], "otherwise": ["cheap"]},
    "transform": {"audit": [{"op": "keep", "fields": ["order"]}]},
}
Lines = set[tuple[int, int]]


def lines_of(wanted: str) -> Lines:
    """Return (order, count) of a good's lines whose count is not 0."""
    return {
        (o["order"], line["count"]) for o in ORDERS for line in o["lines"] if line["sku"] == wanted and line["count"]
    }


def got(plane: DataPlane, path: str) -> list[Any]:
    return [msgspec.json.decode(one.body) for one in plane.receiver.got[path]]


def tail(plane: DataPlane, wanted: int) -> set[str]:
    """Return the bodies of the copies in the live tail, after a wait for `wanted` of them."""
    topic = plane.cluster.topics["tail"]
    reader = admin_consumer(
        {"bootstrap.servers": plane.cluster.kafka, "group.id": "looks-on", "auto.offset.reset": "earliest"}
    )
    reader.assign([TopicPartition(topic.name, 0, 0)])
    bodies: set[str] = set()
    patience = Patience(20)
    while len(bodies) < wanted and not patience.is_over:
        bodies |= {(m.value() or b"").decode() for m in reader.consume(500, 0.5) if not m.error()}
    reader.close()
    return bodies


@pytest.mark.timeout(900)
def test_each_destination_gets_exactly_its_own_lines(plane: DataPlane):
    plane.cluster.publish_rows("goods", dict(GOODS))
    to = {name: {"url": plane.receiver.url(f"/whole-{name}")} for name in ("dear", "audit", "cheap")}
    key = plane.add_pipe("whole", to, **SPEC)
    status, _, answer = plane.post(key, msgspec.json.encode(ORDERS))
    assert status == 202
    positions = {one["position"] for one in msgspec.json.decode(answer)["items"]}
    dear, cheap, nowhere = lines_of("b"), lines_of("a"), lines_of("none")
    until(lambda: len(got(plane, "/whole-dear")) >= len(dear), "the dear lines arrive", 60)
    whole = plane.settled("whole", positions)

    assert {(body["order"], body["lines"]["count"]) for body in got(plane, "/whole-dear")} == dear
    assert {(body["order"], body["lines"]["count"]) for body in got(plane, "/whole-cheap")} == cheap
    assert {body["good"]["price"] for body in got(plane, "/whole-cheap")} == {10}
    assert sorted(body["order"] for body in got(plane, "/whole-audit")) == sorted(order for order, _ in dear)
    assert all(set(body) == {"order"} for body in got(plane, "/whole-audit"))
    assert whole.lost() == 0
    assert {name: whole.units(Bin.DELIVERED, name) for name in to} == {
        "dear": len(dear), "audit": len(dear), "cheap": len(cheap),
    }  # fmt: skip
    assert whole.units(Bin.FILTERED) == len(ORDERS)
    assert whole.units(Bin.DEAD) == len(nowhere)
    assert len(tail(plane, len(dear | cheap) + len(nowhere))) == len(dear | cheap) + len(nowhere)
