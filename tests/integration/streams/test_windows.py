"""Windows on real Kafka and Spark: what comes out equals a plain count over what was sent, whatever is killed."""

import json
import random
import time
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from pytest_django import Settings

from dataplane.ledger.facts import LATE, Fact
from dataplane.plan.taps import Tapping, key_digest, key_values, pane_place
from dataplane.spec.windows import Window
from mgmt.queries.records import newest_of_key
from tests.rig.data_plane import DataPlane, until
from tests.rig.killing import Killer

SIZE_S, LATE_S = 5, 20
BY_SHOP = {
    "span": {"kind": "tumbling", "size_s": SIZE_S},
    "by": ["shop"],
    "late_s": LATE_S,
    "values": {"n": {"op": "count"}, "total": {"op": "sum", "of": "amount"}, "users": {"op": "distinct", "of": "user"}},
}
WINDOWS = {"by-shop": BY_SHOP}
# Results do not queue behind every event that they were made of, only behind those of one user.
ROUTES = {
    "rules": [
        {"when": "meta.source == 'window:by-shop'", "to": ["results"]},
        {"when": "body.user == 0", "to": ["crm"]},
    ]
}


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
    bodies = {received.id: received.body for received in plane.receiver.got[path]}
    digests = {(received.id, received.digest) for received in plane.receiver.got[path]}
    assert len(digests) == len(bodies), "one id, two results"
    found = [json.loads(body) for body in bodies.values()]
    values = {(r["by"]["shop"], r["start"]): r for r in found}
    assert len(values) == len(found), "one window, two ids"
    return {k: (r["values"]["n"], r["values"]["total"], r["values"]["users"]) for k, r in values.items()}


def event(chance: random.Random) -> dict[str, Any]:
    """Out of order by seconds, as little as to be in time wherever it is held up."""
    at = datetime.now(UTC) - timedelta(seconds=chance.uniform(0.1, LATE_S - 8))
    return {
        "shop": chance.choice(["berlin", "rome"]),
        "user": chance.randrange(9),
        "amount": chance.randrange(1, 100) / 4,  # their sums are exact
        "at": at.isoformat(),
    }


def check_results(plane: DataPlane, pipe: str, *, batches: int, size: int, kills: int, limit_s: float) -> None:
    """Send events while another tenant's clock is wild, kill the application now and then, and count for ourselves."""
    paths = {name: f"/{pipe}-{name}" for name in ("crm", "results")}
    targets = {name: {"url": plane.receiver.url(path)} for name, path in paths.items()}
    shape = {"sources": {"shop": {"event_time": "at"}}, "windows": WINDOWS}
    key = plane.add_pipe(pipe, targets, **shape, routes=ROUTES)
    wild = plane.add_pipe(f"{pipe}-wild", {"crm": {"url": plane.receiver.url("/wild")}}, **shape)
    killer, chance = Killer(plane, paths["crm"]), random.Random(4)
    deadly = {batches * (number + 1) // (kills + 1) for number in range(kills)}
    sent: list[dict[str, Any]] = []
    positions: list[str] = []
    for number in range(batches):
        batch = [event(chance) for _ in range(size)]
        positions += post(plane, key, batch)
        sent += batch
        post(plane, wild, [{"shop": "x", "user": 1, "amount": 1, "at": "9999-01-01T00:00:00Z"}])
        if number in deadly:
            killer.kill()
    late = post(plane, key, [event(chance) | {"at": iso(time.time() - LATE_S - 60)}])

    expected = counted(sent)
    until(lambda: len(results(plane, paths["results"])) >= len(expected), "every window has closed", limit_s)
    assert results(plane, paths["results"]) == expected
    whole = plane.settled(pipe, {*positions, *late}, limit_s)
    assert plane.books.details(pipe)["window:by-shop", Fact.SENT, LATE] == set(late)
    assert whole.lost() == 0


@pytest.mark.timeout(1_500)
def test_results_equal_a_count_over_what_was_sent_although_the_application_is_killed(plane: DataPlane):
    check_results(plane, "windows", batches=12, size=40, kills=1, limit_s=240)


@pytest.mark.timeout(1_500)
def test_what_a_window_says_so_far_is_read_by_its_key(plane: DataPlane, settings: Settings):
    settings.PENSTOCK_KAFKA = plane.broker.address
    window = BY_SHOP | {"span": {"kind": "tumbling", "size_s": 3_600}}
    targets = {"crm": {"url": plane.receiver.url("/now")}}
    key = plane.add_pipe("now", targets, sources={"shop": {"event_time": "at"}}, windows={"w": window})
    chance = random.Random(5)
    sent = [event(chance) for _ in range(60)]
    post(plane, key, sent)

    tapping = Tapping("w", msgspec.convert(window, type=Window))
    topic = plane.cluster.topics["panes"]

    def said(shop: str) -> list[tuple[int, float]]:
        digest = key_digest("now", "w", tapping.definition, key_values([shop]))
        record = newest_of_key(topic.name, pane_place(digest, topic.partitions), digest)
        found = json.loads(record.value())["open"] if record is not None else []
        return [(pane["values"]["n"], pane["values"]["total"]) for pane in found]

    for shop in ("berlin", "rome"):
        of = [one["amount"] for one in sent if one["shop"] == shop]
        until(lambda shop=shop, of=of: sums(said(shop)) == (len(of), sum(of)), f"what it says of {shop}", 60)  # type: ignore[misc]


def sums(panes: list[tuple[int, float]]) -> tuple[int, float]:
    """Over an hour's end there are two."""
    return sum(n for n, _ in panes), sum(total for _, total in panes)


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_a_million_events_and_ten_kills(plane: DataPlane):
    check_results(plane, "windows-long", batches=10_000, size=100, kills=10, limit_s=1_800)
