"""What is read from clusters that are not ours, by whom, and what a record becomes."""

from typing import Any

import pytest

from dataplane.ingest.feeds import Wanted, event_of, wanted
from dataplane.spec import KafkaSource, parse_pipe_spec
from dataplane.spec.clusters import parse_clusters, why_not_readable
from dataplane.tables.control import ControlTable
from dataplane.tables.records import PipeRecord, PlanRecord

CLUSTERS = parse_clusters(
    b'{"main": {"tenants": ["t1"], "topics": ["orders.*", "users"], "settings": {"bootstrap.servers": "k:9092"}}}'
)
WANT = Wanted("p", "old", "t1", "users", "main", "earliest")


class Record:
    """A record as a consumer gives it."""

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
def test_a_tenant_reads_the_topics_that_the_platform_gives_it(tenant: str, cluster: str, topic: str, field: str | None):
    why = why_not_readable(CLUSTERS, KafkaSource(cluster, topic), tenant)
    assert (why[0] if why else None) == field


@pytest.mark.parametrize("text", [b"[]", b"{", b'{"a":{"tenants":[],"topics":[],"settings":{}}}', b'{"a":{"x":1}}'])
def test_a_file_of_clusters_that_cannot_be_is_refused(text: bytes):
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


def test_the_newest_revision_with_traffic_says_what_is_read():
    assert wanted(table(), CLUSTERS) == {WANT}
    assert wanted(table(weights=((1, 100),)), CLUSTERS) == {WANT._replace(topic="orders.old")}
    assert wanted(table("paused"), CLUSTERS) == {WANT}, "a paused pipe accepts and holds"


@pytest.mark.parametrize("known", [table("closed"), table(weights=()), table(tenant="t2"), ControlTable()])
def test_nothing_is_read_for_others(known: ControlTable):
    assert wanted(known, CLUSTERS) == set()


def test_a_record_becomes_an_event_with_its_own_time_key_and_an_id_of_its_place():
    event = event_of(Record(7, b'{"a":1}', b"k1", ("ce_type", b"order"), ("penstock-meta", b"x"), ("x", None)), WANT)
    again = event_of(Record(7, b'{"a":2}'), WANT)
    other = event_of(Record(8, b'{"a":1}'), WANT)
    assert (event.body, event.value, event.time) == (b'{"a":1}', {"a": 1}, 1_795_262_400_000)
    assert event.headers == [("content-type", b"application/json"), ("ce_type", b"order")]
    assert event.origin is not None
    assert again.origin is not None
    assert other.origin is not None
    assert event.origin.key == "k1"
    assert event.origin.id == again.origin.id != other.origin.id
    assert again.origin.key is None


@pytest.mark.parametrize("body", [b"\xff\x00", b"{", b"NaN"])
def test_what_is_no_json_is_taken_all_the_same(body: bytes):
    event = event_of(Record(7, body), WANT)
    assert (event.body, event.value) == (body, None)


def test_a_tombstone_is_null():
    assert event_of(Record(7, None), WANT).body == b"null"
