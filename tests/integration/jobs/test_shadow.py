"""Shadow runs on real Kafka and Spark: exact counts of each kind, also after a kill, and next to live traffic."""

import json
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from controlplane.compute.processes import members, signal_all
from dataplane.replay.progress_log import read_shadow_progress
from dataplane.retrier.redriver import place_reader
from dataplane.spec import PipeSpec, parse_pipe_spec
from dataplane.tables.records import PlanRecord, ShadowRecord
from dataplane.tables.shadows import ShadowProgress
from tests.support.data_plane import DataPlane, running_plane
from tests.support.patience import until

PIPE = "shadowed"
EVENTS, BATCH, KEYS = 6_000, 200, 50
TENTH = EVENTS // 10
PATIENCE_S = 240.0
KEEP_ALL_BUT_9 = {"op": "filter", "when": "body.last != 9"}
SOURCES: dict[str, Any] = {"shop": {"key": "key"}}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataPlane]:
    """Kafka, two ingest replicas, the cell under its keeper, and a receiver."""
    with running_plane(tmp_path_factory.mktemp("shadow")) as plane:
        yield plane


@pytest.mark.long
@pytest.mark.timeout(1_500)  # includes the start of the data plane
def test_past_and_live_events_are_compared_exactly_although_the_application_is_killed(plane: DataPlane):
    key = plane.add_pipe(
        PIPE, {"crm": {"url": plane.receiver.url("/crm")}}, sources=SOURCES, normalize=[KEEP_ALL_BUT_9]
    )
    since_us = time.time_ns() // 1_000
    send(plane, key, range(EVENTS // 2))
    until(lambda: delivered(plane) == EVENTS // 2 - TENTH // 2, "the first half", PATIENCE_S)
    until_us = time.time_ns() // 1_000
    both = {name: {"type": "http", "url": plane.receiver.url(f"/{name}")} for name in ("crm", "log")}
    live = parse_pipe_spec({"sources": SOURCES, "destinations": both, "normalize": [KEEP_ALL_BUT_9]})
    plane.cluster.publish(PlanRecord(PIPE, 2, live))  # it would send to log, too: every unit of it is not sent yet
    draft = parse_pipe_spec(
        {
            "sources": SOURCES,
            "destinations": both,
            "normalize": [
                {"op": "filter", "when": "body.last != 8"},
                {"op": "cast", "path": "code", "to": "int"},
                {"op": "map", "path": "total", "expr": "body.last == 7 ? 0 : body.total"},
            ],
        }
    )
    follow = shadow(plane, "shd_live", draft, since_us, 0)
    plane.cluster.publish(shadow(plane, "shd_past", draft, since_us, until_us), follow)

    until(lambda: events(plane, "shd_past") > 0, "the first job", PATIENCE_S, seen=lambda: progress(plane))
    assert events(plane, "shd_past") < EVENTS // 2
    running = plane.files.running(plane.cluster.cell)
    assert running is not None
    signal_all(members(running.incarnation), signal.SIGKILL)
    assert not is_done(plane, "shd_past")
    until(lambda: is_done(plane, "shd_past"), "the end of the past run", PATIENCE_S, seen=lambda: progress(plane))
    past = progress(plane)["shd_past"]
    check(past, EVENTS // 2)
    assert past.reached == past.ends
    assert past.compared_until_us == until_us

    send(plane, key, range(EVENTS // 2, EVENTS))
    until(
        lambda: events(plane, "shd_live") == EVENTS,
        "the live run",
        PATIENCE_S,
        seen=lambda: progress(plane)["shd_live"],
    )
    sent_us = time.time_ns() // 1_000
    until(lambda: progress(plane)["shd_live"].compared_until_us > sent_us, "an idle live run", PATIENCE_S)
    found = progress(plane)["shd_live"]
    assert not found.done
    check(found, EVENTS)
    plane.cluster.publish(shadow(plane, "shd_live", draft, since_us, 0, state="ended"))
    until(lambda: is_done(plane, "shd_live"), "the end of the live run", PATIENCE_S)
    check(progress(plane)["shd_live"], EVENTS)
    assert len(plane.receiver.got["/log"]) == 0, "a shadow run sends nothing"
    assert delivered(plane) == EVENTS - TENTH


def check(found: ShadowProgress, count: int) -> None:
    """Compare the counts with what the draft does by the last digit of each event."""
    tenth = count // 10
    assert (found.error, found.events) == ("", count)
    assert found.units == {
        "crm": {"equal": 6 * tenth, "different": tenth, "only_live": 2 * tenth, "only_shadow": tenth},
        "log": {"not_sent": 7 * tenth, "only_shadow": tenth},
    }
    assert found.fields == {"crm": {"total": tenth}}
    assert found.rejected == {"step": tenth}
    assert {(one.kind, one.destination) for one in found.samples} == {
        ("different", "crm"),
        ("only_live", "crm"),
        ("only_shadow", "crm"),
        ("not_sent", "log"),
        ("only_shadow", "log"),
    }
    assert count / 60 < found.cost_events < count / 8
    assert found.live_cpu_us > 0
    assert found.shadow_cpu_us > 0


def shadow(plane: DataPlane, name: str, draft: PipeSpec, since_us: int, until_us: int, **fields: Any) -> ShadowRecord:
    """Return the request for a run."""
    given = {"revision": 2, "most_events": 0, "state": "running", **fields}
    return ShadowRecord(
        shadow=name,
        version=plane.cluster.version(),
        cell=plane.cluster.cell,
        pipe=PIPE,
        spec=draft,
        since_us=since_us,
        until_us=until_us,
        **given,
    )


def send(plane: DataPlane, key: str, numbers: range) -> None:
    """Send events whose fields follow from their numbers."""
    for start in range(numbers.start, numbers.stop, BATCH):
        found = [
            {"key": f"k{n % KEYS}", "n": n, "last": n % 10, "total": 1 + n, "code": "x" if n % 10 == 6 else n}
            for n in range(start, start + BATCH)
        ]
        body = b"\n".join(json.dumps(event).encode() for event in found)
        status, _, text = plane.post(key, body, content_type="application/x-ndjson")
        assert status in (200, 202), text


def delivered(plane: DataPlane) -> int:
    """Return how many different events the receiver has."""
    return len({one.id for one in list(plane.receiver.got["/crm"])})


def progress(plane: DataPlane) -> dict[str, ShadowProgress]:
    """Return the newest stored progress of each run."""
    reader = place_reader(plane.broker.address)
    try:
        return read_shadow_progress(reader, plane.cluster.topics["signals"].name)
    finally:
        reader.close()


def events(plane: DataPlane, name: str) -> int:
    """Return how many events a run has compared."""
    found = progress(plane).get(name)
    return found.events if found is not None else 0


def is_done(plane: DataPlane, name: str) -> bool:
    """Return True if a run has ended."""
    found = progress(plane).get(name)
    return found is not None and found.done
