"""Windows on real Kafka and Spark: what comes out equals a plain count over what was sent, whatever is killed."""

import json
import os
import random
import signal
import time
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dataplane.ledger.facts import LATE, Fact
from tests.rig.data_plane import DataPlane, until

SIZE_S, LATE_S = 5, 20
BY_SHOP = {
    "span": {"kind": "tumbling", "size_s": SIZE_S},
    "by": ["shop"],
    "late_s": LATE_S,
    "values": {"n": {"op": "count"}, "total": {"op": "sum", "of": "amount"}, "users": {"op": "distinct", "of": "user"}},
}
WINDOWS = {"by-shop": BY_SHOP}
ROUTES = {"rules": [{"when": "meta.source == 'window:by-shop'", "to": ["results"]}], "otherwise": ["crm"]}


def iso(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat()


def post(plane: DataPlane, key: str, events: list[dict[str, Any]]) -> list[str]:
    """Send events; the positions they were given."""
    body = b"\n".join(json.dumps(event).encode() for event in events)
    status, _, text = plane.post(key, body, content_type="application/x-ndjson")
    assert status in (200, 202, 207), text
    return [answer["position"] for answer in json.loads(text)["items"]]


def counted(events: list[dict[str, Any]]) -> dict[tuple[str, str], tuple[int, float, int]]:
    """By (shop, start of the window): events, their sum, users. Written apart from the code that is tested."""
    found: defaultdict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        at_s = datetime.fromisoformat(event["at"]).timestamp()
        start = datetime.fromtimestamp(at_s // SIZE_S * SIZE_S, UTC)
        found[event["shop"], start.isoformat().replace("+00:00", "Z")].append(event)
    return {
        key: (len(of), sum(event["amount"] for event in of), len({event["user"] for event in of}))
        for key, of in found.items()
    }


def results(plane: DataPlane, path: str) -> dict[tuple[str, str], tuple[int, float, int]]:
    """What came out, equal ids once. Bodies under one id must be equal, however often they came."""
    bodies = {received.id: plane.receiver.bodies[received.id] for received in plane.receiver.got[path]}
    digests = {(received.id, received.digest) for received in plane.receiver.got[path]}
    assert len(digests) == len(bodies), "one id, two results"
    found = [json.loads(body) for body in bodies.values()]
    values = {(r["by"]["shop"], r["start"]): r for r in found}
    assert len(values) == len(found), "one window, two ids"
    return {k: (r["values"]["n"], r["values"]["total"], r["values"]["users"]) for k, r in values.items()}


@pytest.mark.timeout(400)
def test_results_equal_a_count_over_what_was_sent_although_the_application_is_killed(plane: DataPlane):
    targets = {"crm": {"url": plane.receiver.url("/events")}, "results": {"url": plane.receiver.url("/results")}}
    shape = {"sources": {"shop": {"event_time": "at"}}, "windows": WINDOWS, "routes": ROUTES}
    key = plane.add_pipe("windows", targets, **shape)
    wild = plane.add_pipe("wild", {"crm": {"url": plane.receiver.url("/wild")}}, **shape | {"routes": None})
    chance = random.Random(4)
    sent: list[dict[str, Any]] = []
    positions: list[str] = []
    for turn in range(12):
        now = datetime.now(UTC)
        batch = [
            {
                "shop": chance.choice(["berlin", "rome"]),
                "user": chance.randrange(9),
                "amount": chance.randrange(1, 100) / 4,
                "at": (now - timedelta(seconds=chance.uniform(0.1, LATE_S - 8))).isoformat(),
            }
            for _ in range(40)
        ]
        positions += post(plane, key, batch)
        sent += batch
        post(plane, wild, [{"shop": "x", "user": 1, "amount": 1, "at": "9999-01-01T00:00:00Z"}])
        if turn == 6:
            until(lambda: plane.receiver.got["/events"], "an event is delivered", 180)
            os.kill(plane.driver_pid(), signal.SIGKILL)

    late = post(plane, key, [{"shop": "rome", "user": 1, "amount": 1, "at": iso(time.time() - LATE_S - 60)}])

    expected = counted(sent)
    until(lambda: len(results(plane, "/results")) >= len(expected), "every window has closed", 240)
    assert results(plane, "/results") == expected
    plane.settled("windows", set(positions), 60)
    assert plane.books.details("windows")["window:by-shop", Fact.SENT, LATE] == set(late)
    assert plane.whole("windows").lost() == 0
