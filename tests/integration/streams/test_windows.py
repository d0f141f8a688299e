"""Windows on real Kafka and Spark: results equal a plain count over the sent events, despite kills."""

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
from dataplane.plan.taps import CompiledTap, digest_partition, key_digest, key_values
from dataplane.spec.windows import WindowSpec
from mgmt.messages.queries.records import newest_of_key
from tests.support.data_plane import DataPlane
from tests.support.killing import Killer
from tests.support.patience import until
from tests.support.sizes import STREAM_EVENTS, STREAM_KILLS

SIZE_S, LATE_S = 5, 20
BY_SHOP = {
    "span": {"kind": "tumbling", "size_s": SIZE_S},
    "by": ["shop"],
    "late_s": LATE_S,
    "values": {"n": {"op": "count"}, "total": {"op": "sum", "of": "amount"}, "users": {"op": "distinct", "of": "user"}},
}
WINDOWS = {"by-shop": BY_SHOP}
# Results queue only behind the events of one user, not behind every event that they aggregate.
ROUTES = {
    "rules": [
        {"when": "meta.source == 'window:by-shop'", "to": ["results"]},
        {"when": "body.user == 0", "to": ["crm"]},
    ]
}


def iso(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat()


def post(plane: DataPlane, key: str, events: list[dict[str, Any]]) -> list[str]:
    """Send events and return their positions."""
    body = b"\n".join(json.dumps(event).encode() for event in events)
    status, _, text = plane.post(key, body, content_type="application/x-ndjson")
    assert status in (200, 202, 207), text
    return [answer["position"] for answer in json.loads(text)["items"]]


def counted(events: list[dict[str, Any]]) -> dict[tuple[str, str], tuple[int, float, int]]:
    """Return (events, sum, users) by (shop, start of the window), independently of the code under test."""
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
    """Return the received results by (shop, start of the window); all bodies under one id must be equal."""
    bodies = {received.id: received.body for received in plane.receiver.got[path]}
    digests = {(received.id, received.digest) for received in plane.receiver.got[path]}
    assert len(digests) == len(bodies), "one id has two results"
    found = [json.loads(body) for body in bodies.values()]
    values = {(r["by"]["shop"], r["start"]): r for r in found}
    assert len(values) == len(found), "one window has two ids"
    return {k: (r["values"]["n"], r["values"]["total"], r["values"]["users"]) for k, r in values.items()}


def event(chance: random.Random) -> dict[str, Any]:
    """Return an event that is out of order by seconds, but in time wherever it is delayed."""
    at = datetime.now(UTC) - timedelta(seconds=chance.uniform(0.1, LATE_S - 8))
    return {
        "shop": chance.choice(["berlin", "rome"]),
        "user": chance.randrange(9),
        "amount": chance.randrange(1, 100) / 4,  # their sums are exact in binary
        "at": at.isoformat(),
    }


def check_results(
    plane: DataPlane, pipe: str, *, batches: int, size: int, kills: int, limit_s: float, execution: str = "streaming"
) -> None:
    """Send events while another tenant's clock is wrong, kill the application now and then, and compare counts."""
    paths = {name: f"/{pipe}-{name}" for name in ("crm", "results")}
    targets = {name: {"url": plane.receiver.url(path)} for name, path in paths.items()}
    shape = {"sources": {"shop": {"event_time": "at"}}, "windows": WINDOWS}
    key = plane.add_pipe(pipe, targets, **shape, routes=ROUTES, execution=execution)
    wild = plane.add_pipe(f"{pipe}-wild", {"crm": {"url": plane.receiver.url("/wild")}}, tenant="ten_wild", **shape)
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
    assert results(plane, paths["results"]) == expected, "neither the late event nor a kill changed a result"


@pytest.mark.timeout(1_500)
def test_results_equal_a_count_over_sent_events_although_the_application_is_killed(plane: DataPlane):
    check_results(plane, "windows", batches=12, size=40, kills=1, limit_s=240)


@pytest.mark.long
@pytest.mark.timeout(1_500)
def test_results_of_a_bulk_pipe_equal_a_count_over_sent_events(plane: DataPlane):
    before = plane.records_on("bulk")
    check_results(plane, "windows-bulk", batches=12, size=40, kills=0, limit_s=240, execution="bulk")
    assert plane.records_on("bulk") - before >= 12 * 40


@pytest.mark.timeout(1_500)
def test_current_values_of_an_open_window_are_read_by_its_key(plane: DataPlane, settings: Settings):
    settings.PENSTOCK_KAFKA = plane.broker.address
    window = BY_SHOP | {"span": {"kind": "tumbling", "size_s": 3_600}}
    targets = {"crm": {"url": plane.receiver.url("/now")}}
    key = plane.add_pipe("now", targets, sources={"shop": {"event_time": "at"}}, windows={"w": window})
    chance = random.Random(5)
    sent = [event(chance) for _ in range(60)]
    post(plane, key, sent)

    tapping = CompiledTap("w", msgspec.convert(window, type=WindowSpec))
    topic = plane.cluster.topics["panes"]

    def current(shop: str) -> list[tuple[int, float]]:
        digest = key_digest("now", "w", tapping.definition, key_values([shop]))
        record = newest_of_key(topic.name, digest_partition(digest, topic.partitions), digest)
        found = json.loads(record.value())["open"] if record is not None else []
        return [(pane["values"]["n"], pane["values"]["total"]) for pane in found]

    for shop in ("berlin", "rome"):
        of = [one["amount"] for one in sent if one["shop"] == shop]
        until(lambda shop=shop, of=of: sums(current(shop)) == (len(of), sum(of)), f"current values of {shop}", 60)  # type: ignore[misc]


def sums(panes: list[tuple[int, float]]) -> tuple[int, float]:
    """Return the sums over all open panes: two across the end of an hour."""
    return sum(n for n, _ in panes), sum(total for _, total in panes)


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_results_equal_a_count_over_many_events_with_several_kills(plane: DataPlane):
    check_results(plane, "windows-long", batches=STREAM_EVENTS // 100, size=100, kills=STREAM_KILLS, limit_s=1_800)
