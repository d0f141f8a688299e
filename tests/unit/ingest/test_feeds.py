"""Kafka sources: which topics are read for which tenant, and how a record becomes an event."""

import subprocess
import sys
from typing import Any

import pytest

from dataplane.ingest.events import MAX_ATTRIBUTES, ReceivedEvent
from dataplane.ingest.feed import decoded
from dataplane.ingest.feeds import FeedKey, record_of, usable_headers, wanted
from dataplane.spec import KafkaSource, parse_pipe_spec
from dataplane.spec.clusters import parse_clusters, why_not_readable
from dataplane.tables.control import ControlTable
from dataplane.tables.records import PipeRecord, PlanRecord
from localbox.settings import ROOT

CLUSTERS = parse_clusters(
    b'{"main": {"tenants": ["t1"], "topics": ["orders.*", "users"], "settings": {"bootstrap.servers": "k:9092"}}}'
)
WANT = FeedKey("p", "old", "t1", "users", "main", "earliest")


class Record:
    """Record as a Kafka consumer returns it."""

    def __init__(self, offset: int, body: bytes | None, key: bytes | None = None, *headers: tuple[str, Any]) -> None:
        self._parts = (offset, body, key, list(headers))

    def topic(self) -> str:
        return "users"

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return self._parts[0]

    def value(self) -> bytes | None:
        return self._parts[1]

    def key(self) -> bytes | None:
        return self._parts[2]

    def headers(self) -> list[tuple[str, Any]]:
        return self._parts[3]

    def timestamp(self) -> tuple[int, int]:
        return 1, 1_795_262_400_000


@pytest.mark.parametrize(
    ("tenant", "cluster", "topic", "field"),
    [
        ("t1", "main", "orders.eu", None),
        ("t1", "main", "users", None),
        ("t1", "main", "users2", "topic"),
        ("t1", "other", "users", "cluster"),
        ("t2", "main", "users", "cluster"),
    ],
)
def test_tenant_reads_only_topics_that_the_platform_allows_it(tenant: str, cluster: str, topic: str, field: str | None):
    why = why_not_readable(CLUSTERS, KafkaSource(cluster, topic), tenant)
    assert (why[0] if why else None) == field


@pytest.mark.parametrize("text", [b"[]", b"{", b'{"a":{"tenants":[],"topics":[],"settings":{}}}', b'{"a":{"x":1}}'])
def test_invalid_clusters_file_is_refused(text: bytes):
    with pytest.raises(ValueError, match="PENSTOCK_KAFKA_CLUSTERS"):
        parse_clusters(text)


def table(state: Any = "active", tenant: str = "t1", weights: Any = ((1, 0), (2, 100))) -> ControlTable:
    made = ControlTable()
    for revision, topic in ((1, "orders.old"), (2, "users")):
        sources = {"shop": {}, "old": {"type": "kafka", "cluster": "main", "topic": topic}}
        spec = {"sources": sources, "destinations": {"crm": {"url": "https://crm.example/"}}}
        made.apply(PlanRecord("p", revision, parse_pipe_spec(spec)))
    made.apply(PipeRecord("p", 1, tenant, "orders", "c1", state, list(weights)))
    return made


def test_newest_revision_with_traffic_decides_which_topic_is_read():
    assert wanted(table(), CLUSTERS) == {WANT}
    assert wanted(table(weights=((1, 100),)), CLUSTERS) == {WANT._replace(topic="orders.old")}
    assert wanted(table("paused"), CLUSTERS) == {WANT}, "a paused pipe accepts events and holds them"


@pytest.mark.parametrize("known", [table("closed"), table(weights=()), table(tenant="t2"), ControlTable()])
def test_pipe_that_is_closed_foreign_unknown_or_without_revision_reads_no_topic(known: ControlTable):
    assert wanted(known, CLUSTERS) == set()


def event_of(record: "Record") -> ReceivedEvent:
    event, _ = record_of(record, WANT)
    return next(decoded([event], 1_000))


def test_record_becomes_an_event_with_its_timestamp_its_key_and_an_id_from_its_offset():
    event = event_of(Record(7, b'{"a":1}', b"k1", ("ce_type", b"order"), ("penstock-meta", b"x"), ("x", None)))
    again = event_of(Record(7, b'{"a":2}'))
    other = event_of(Record(8, b'{"a":1}'))
    assert (event.body, event.value, event.time) == (b'{"a":1}', {"a": 1}, 1_795_262_400_000)
    assert event.headers == [("content-type", b"application/json"), ("ce_type", b"order")]
    assert event.origin is not None
    assert again.origin is not None
    assert other.origin is not None
    assert event.origin.key == "k1"
    assert event.origin.id == again.origin.id != other.origin.id
    assert again.origin.key is None


@pytest.mark.parametrize("body", [b"\xff\x00", b"{", b"NaN"])
def test_record_that_is_not_json_is_accepted_unchanged(body: bytes):
    event = event_of(Record(7, body))
    assert (event.body, event.value) == (body, None)


def test_tombstone_becomes_null():
    assert event_of(Record(7, None)).body == b"null"


def test_body_over_the_limit_is_not_decoded():
    large = ReceivedEvent(b"[" + b"[]," * 500 + b"1]", None, [])
    assert next(decoded([large], 1_000)).value is None


# -- headers -------------------------------------------------------------------------------------------------------

JSON = ("content-type", b"application/json")
TRACE = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(("ce_x\r\nHost: evil\r\n\r\nPOST /", b"v"), id="CR LF in the name"),
        pytest.param(("ce_x\n", b"v"), id="LF at the end of the name"),
        pytest.param(("ce_x: y", b"v"), id="another header in the name"),
        pytest.param(("ce_\u00e9", b"v"), id="a name that is not ASCII"),
        pytest.param(("ce_X", b"v"), id="capitals in the name"),
        pytest.param(("ce_", b"v"), id="no name"),
        pytest.param(("ce_" + "a" * 65, b"v"), id="a long name"),
        pytest.param(("ce_x", b"a\r\nb"), id="CR LF in the value"),
        pytest.param(("ce_x", b"\0"), id="NUL in the value"),
        pytest.param(("ce_x", b"\x7f"), id="DEL in the value"),
        pytest.param(("ce_x", b"\xff"), id="a value that is not UTF-8"),
        pytest.param(("ce_x", b"v" * 1_025), id="a long value"),
        pytest.param(("content-type", b"text/plain\r\nx: y"), id="CR LF in the content type"),
        pytest.param(("traceparent", b"00-junk"), id="no traceparent"),
    ],
)
def test_undeliverable_header_is_dropped_and_the_record_is_kept(header: tuple[str, bytes]):
    event, dropped = record_of(Record(7, b"{}", None, ("ce_id", b"1"), header), WANT)
    assert event.body == b"{}"
    assert (event.headers, dropped) == ([JSON, ("ce_id", b"1")], 1)


def test_usable_headers_are_kept_and_unrelated_ones_are_not_counted_as_dropped():
    given = [("x-own", b"\r\n"), ("ce_time", None), ("ce_subject", "\u00e9".encode()), ("traceparent", TRACE)]
    assert usable_headers([*given, ("content-type", b"text/plain")]) == (
        [("content-type", b"text/plain"), ("ce_subject", "\u00e9".encode()), ("traceparent", TRACE)],
        0,
    )


def test_last_of_two_headers_with_the_same_name_is_used():
    assert usable_headers([("ce_id", b"1"), ("ce_id", b"2")]) == ([JSON, ("ce_id", b"2")], 1)


def test_record_has_at_most_as_many_attributes_as_a_posted_event():
    headers, dropped = usable_headers([(f"ce_a{number}", b"v") for number in range(MAX_ATTRIBUTES + 50)])
    assert len(headers) <= MAX_ATTRIBUTES + 2
    assert dropped == MAX_ATTRIBUTES + 50 - (len(headers) - 1)


def test_header_name_that_is_not_utf8_costs_the_record_only_its_headers():
    """Run in a subprocess: an unguarded read ends with SIGSEGV."""
    command = [sys.executable, "-m", "tests.support.raw_headers"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == f"200 { ({(b'{}', (JSON,), 1)}) }\n"
