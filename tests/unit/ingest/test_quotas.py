"""Quotas at ingest: which requests are admitted or refused, and how replicas share a tenant's limits."""

import asyncio
import gzip
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.ingest import replica as module
from dataplane.ingest.acks import AckTracker
from dataplane.ingest.app import IngestApp
from dataplane.ingest.feeds import FeedKey
from dataplane.ingest.quotas import BURST_S, OverQuotaError, Peers, TenantMeter, TenantMeters
from dataplane.ingest.replica import IngestReplica
from dataplane.ledger.meta import Headers
from dataplane.runtime.settings import settings_from
from dataplane.spec import parse_pipe_spec
from dataplane.spec.keys import key_digest
from dataplane.tables.control import ControlTable
from dataplane.tables.quotas import MIB, QuotaError, Quotas, checked_limits, limits_of, parse_quotas
from dataplane.tables.records import (
    ApiKeyRecord,
    CellRecord,
    PipeRecord,
    PlanRecord,
    QuotaRecord,
    TopicRecord,
)
from tests.support.cluster import key_of
from tests.support.http_exchange import MemoryExchange
from tests.support.memory_replica import close_replica

KEY = key_of("p")
SPEC = parse_pipe_spec({"sources": {"shop": {}}, "destinations": {"crm": {"url": "https://crm.example/"}}})


def test_installation_sets_some_default_quotas_and_keeps_the_others():
    quotas = parse_quotas("events_per_s=7, pipes = 3")
    assert (quotas.events_per_s, quotas.pipes, quotas.topics) == (7, 3, Quotas().topics)
    assert limits_of(quotas, {"events_per_s": None, "pipes": 9, "of_a_later_release": 1}).pipes == 9


@pytest.mark.parametrize("text", ["events=1", "pipes", "pipes=-1", "pipes=many", "events_per_s=0", "bytes_per_s=1"])
def test_invalid_quota_is_refused(text: str):
    with pytest.raises(QuotaError, match=text.partition("=")[0]):
        parse_quotas(text)


def test_unknown_kind_of_quota_is_refused():
    with pytest.raises(QuotaError, match="is not a kind of quota"):
        checked_limits({"friends": 1})


# -- one tenant at one replica -----------------------------------------------------------------------------------------


def meter(now_s: float = 0.0, **limits: int) -> TenantMeter:
    return TenantMeter(limits_of(Quotas(), limits), now_s)


def test_idle_tenant_may_send_one_burst_at_once_and_no_more():
    tenant = meter(events_per_s=10)
    assert tenant.admit(100, 0.0) == 10 * BURST_S
    with pytest.raises(OverQuotaError) as refused:
        tenant.check(0.0)
    assert (refused.value.status, refused.value.code, refused.value.retry_after_s) == (429, "quota-exceeded", 1)
    assert tenant.admit(100, 0.55) == 5


def test_retry_after_is_the_time_until_the_rest_of_the_batch_fits():
    tenant = meter(events_per_s=10)
    tenant.admit(20, 0.0)
    assert tenant.over_rest(15).retry_after_s == 2
    assert tenant.over_rest(1_000).retry_after_s == 2, "at most the time until the bucket is full"


def test_single_body_may_overdraw_the_byte_bucket_once():
    tenant = meter(bytes_per_s=1_024)
    tenant.check(0.0)
    tenant.charge(1_024 * 4)
    with pytest.raises(OverQuotaError) as refused:
        tenant.check(1.9)
    assert refused.value.policies == ["bytes"]
    tenant.check(2.1)


def test_ratelimit_headers_are_structured_fields_of_the_draft():
    tenant = meter(events_per_s=10, bytes_per_s=2_000)
    tenant.admit(5, 0.0)
    assert tenant.headers() == [
        ("ratelimit-policy", '"events";q=20;w=2, "bytes";q=4000;w=2;qu="content-bytes"'),
        ("ratelimit", '"events";r=15;t=1, "bytes";r=4000;t=0'),
    ]


def test_in_flight_bodies_are_bounded_and_a_refused_one_does_not_count():
    tenant = meter(in_flight_bytes=8 * MIB)
    tenant.begin(5 * MIB)
    with pytest.raises(OverQuotaError):
        tenant.begin(4 * MIB)
    tenant.begin(3 * MIB)


@given(
    limit=st.integers(1, 1_000),
    steps=st.lists(st.tuples(st.floats(0.001, 5.0), st.integers(1, 500)), min_size=1, max_size=60),
)
def test_admitted_events_never_exceed_the_rate_plus_one_burst(limit: int, steps: list[tuple[float, int]]):
    tenant, now_s, admitted = meter(events_per_s=limit), 0.0, 0
    for pause_s, events in steps:
        now_s += pause_s
        admitted += tenant.admit(events, now_s)
        assert admitted <= limit * (now_s + BURST_S) + 1e-6


# -- replicas share ----------------------------------------------------------------------------------------------------


class Clock:
    """Monotonic clock in seconds that the test sets."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Fleet:
    """Replicas that report to each other once a second what they admitted, as heartbeats do."""

    def __init__(self, replicas: int, limit: int) -> None:
        self.clock = Clock()
        quotas = Quotas(events_per_s=limit)
        self.meters = [TenantMeters(ControlTable(), quotas, MIB, self.clock) for _ in range(replicas)]
        for _ in range(2):
            self.tell()

    def tell(self) -> None:
        said = [meters.publish_use() for meters in self.meters]
        for one, meters in enumerate(self.meters):
            for other, taken in enumerate(said):
                if other != one:
                    meters.peers.on_report(f"ingest-{other}", taken, self.clock.now_s)
            meters.share_out()

    def second(self, *demand: int) -> list[int]:
        """Send each replica so many events within one second; return how many each admitted."""
        admitted = [0] * len(demand)
        for _ in range(20):
            self.clock.now_s += 0.05
            for number, events in enumerate(demand):
                admitted[number] += self.meters[number].of("t").admit(events // 20, self.clock.now_s)
        self.tell()
        return admitted


def test_tenant_on_one_connection_gets_its_whole_quota():
    fleet = Fleet(3, 100)
    for _ in range(4):  # use up the burst
        fleet.second(1_000, 0, 0)
    assert sum(sum(fleet.second(1_000, 0, 0)) for _ in range(10)) == pytest.approx(1_000, rel=0.05)


@pytest.mark.parametrize("demand", [(1_000, 1_000, 1_000), (1_000, 20, 20), (1_000, 60, 0), (40, 40, 40)])
def test_all_replicas_together_admit_the_quota_and_no_more(demand: tuple[int, ...]):
    fleet = Fleet(3, 100)
    for _ in range(10):
        fleet.second(*demand)
    admitted = sum(sum(fleet.second(*demand)) for _ in range(20))
    assert admitted == pytest.approx(20 * min(100, sum(demand)), rel=0.07)


def test_excess_admitted_while_demand_changes_is_bounded():
    """After a silence each replica knows of no other demand: it admits one burst and one second of the quota."""
    fleet = Fleet(3, 100)
    admitted = sum(fleet.second(1_000, 1_000, 1_000)) + sum(fleet.second(1_000, 1_000, 1_000))
    assert admitted <= 3 * 100 * (BURST_S + 1) + 100


def test_silent_or_ended_replica_no_longer_counts_among_the_peers():
    peers = Peers()
    peers.on_report("ingest-2", {"t": (50.0, 0.0)}, 0.0)
    peers.on_report("ingest-3", {"t": (10.0, 0.0)}, 0.0)
    assert (peers.live(1.0), peers.taken("t")) == (2, (60.0, 0.0))
    peers.gone("ingest-3")
    assert (peers.live(1.0), peers.taken("t")) == (1, (50.0, 0.0))
    assert (peers.live(10.0), peers.taken("t")) == (0, (0.0, 0.0))


def test_quota_record_applies_at_once_and_keeps_the_defaults_of_limits_not_named():
    table, clock = ControlTable(), Clock()
    meters = TenantMeters(table, Quotas(events_per_s=10, bytes_per_s=2_000), MIB, clock)
    assert meters.of("t").admit(100, clock.now_s) == 20
    table.apply(QuotaRecord("t", 1, events_per_s=1_000))
    clock.now_s += 1
    assert meters.of("t").admit(5_000, clock.now_s) == 1_000
    assert meters.quota("t") == Quotas(events_per_s=1_000, bytes_per_s=2_000)
    assert meters.of("other").admit(100, clock.now_s) == 20, "without a record the defaults apply"


def test_meters_of_idle_tenants_are_dropped():
    clock = Clock()
    meters = TenantMeters(ControlTable(), Quotas(), MIB, clock)
    busy, idle = meters.of("busy"), meters.of("idle")
    clock.now_s += 1_000
    busy.admit(busy.room(clock.now_s), clock.now_s)
    meters.publish_use()
    assert meters.of("busy") is busy
    assert meters.of("idle") is not idle


# -- requests ----------------------------------------------------------------------------------------------------------


class AckingProducer:
    """Producer that stores every record at once."""

    def __init__(self) -> None:
        self.stored: list[bytes] = []
        self.headers: list[Headers] = []
        self._due: list[Callable[[], None]] = []
        self._offsets = itertools.count()

    def produce(self, _topic: str, value: bytes, *record: Any, headers: Headers) -> None:
        self.headers.append(headers)
        partition, report, offset = record[1], record[2], next(self._offsets)
        self.stored.append(value)
        place = SimpleNamespace(partition=lambda: partition, offset=lambda: offset)
        self._due.append(lambda: report(None, place))

    def flush(self, wait_s: float) -> int:
        """Report the records since the last poll; none is left."""
        self.poll(wait_s)
        return 0

    def poll(self, _wait_s: float) -> None:
        due, self._due = self._due, []
        for report in due:
            report()


class Ingest:
    """The replica's own app and classes on a producer that stores at once, with one pipe of tenant `t`."""

    def __init__(self, replica: IngestReplica, producer: AckingProducer) -> None:
        self.replica, self.stored, self.headers = replica, producer.stored, producer.headers
        self.app = IngestApp(replica)

    async def post(
        self, body: bytes, *, chunks: int = 0, before_body: Callable[[], None] = lambda: None, **headers: str
    ) -> MemoryExchange:
        known = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
        given = known | {name.replace("_", "-"): value for name, value in headers.items()}
        exchange = MemoryExchange(body, given, chunks=chunks, before_body=before_body)
        await self.app(exchange.request)
        return exchange

    def refused(self) -> int:
        self.replica._usage.hasten()
        usage = self.replica._usage.take_if_due()
        assert usage is not None
        return sum(pipe.refused for pipe in usage.pipes)


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Ingest]]:
    """Factory of ingest replicas with the given limits, on the running event loop."""
    opened: list[IngestReplica] = []

    def made(in_flight: int = 64 * MIB, **limits: int) -> Ingest:
        producer = AckingProducer()
        monkeypatch.setattr(module, "ingest_producer", lambda *_: producer)
        env = {"PENSTOCK_KAFKA": "127.0.0.1:1", "PENSTOCK_VAR": str(tmp_path)}
        quotas = ",".join(f"{name}={limit}" for name, limit in limits.items())
        env |= {"PENSTOCK_QUOTAS": quotas, "PENSTOCK_IN_FLIGHT_BYTES": str(in_flight)}
        replica = IngestReplica(settings_from(env), "ingest-1")
        replica._loop = asyncio.get_running_loop()
        replica._acks = AckTracker(replica._producer, replica._recorder.on_done)
        replica.meters.clock = lambda: 100.0
        for record in (
            CellRecord("c1", 1, 1, {}, {"ingest": TopicRecord("in", 1, 4, "")}),
            PlanRecord("p", 1, SPEC),
            PipeRecord("p", 1, "t", "orders", "c1", "active", [(1, 100)]),
            ApiKeyRecord(key_digest(KEY), 1, "p", "shop"),
        ):
            replica.table.apply(record)
        opened.append(replica)
        return Ingest(replica, producer)

    yield made
    for replica in opened:
        close_replica(replica)


def test_request_over_the_quota_gets_429_with_retry_after_before_its_body_is_read(make: Callable[..., Ingest]):
    async def story() -> None:
        ingest = make(events_per_s=1)
        assert [(await ingest.post(b"{}")).status for _ in range(2)] == [202, 202]
        refused = await ingest.post(b"{}")
        assert (refused.status, refused.was_read, len(ingest.stored)) == (429, False, 2)
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.headers["retry-after"] == "1"
        assert refused.headers["ratelimit"].startswith('"events";r=0;t=2')
        assert refused.headers["ratelimit-policy"].startswith('"events";q=2;w=2')
        assert refused.answer["violated-policies"] == ["events"]
        assert refused.answer["code"] == "quota-exceeded"
        assert ingest.refused() == 1

    asyncio.run(story())


def test_batch_is_stored_up_to_the_quota_with_a_result_for_each_event(make: Callable[..., Ingest]):
    async def story() -> None:
        ingest = make(events_per_s=2)
        done = await ingest.post(b"[0,1,2,3,4,5,6]")
        assert done.status == 207
        assert [item["status"] for item in done.answer["items"]] == [202] * 4 + [429] * 3
        assert {item["code"] for item in done.answer["items"][4:]} == {"quota-exceeded"}
        assert ingest.stored == [b"0", b"1", b"2", b"3"], "the first ones, so that later events stay behind them"
        assert done.headers["retry-after"] == "2"
        assert ingest.refused() == 3

    asyncio.run(story())


def test_batch_of_which_no_event_fits_is_refused_as_a_whole(make: Callable[..., Ingest]):
    async def story() -> None:
        ingest = make(events_per_s=1)

        def others_come_first() -> None:
            ingest.replica.meters.of("t").admit(2, 100.0)

        refused = await ingest.post(b"[1,2]", before_body=others_come_first)
        assert (refused.status, refused.answer["code"], ingest.stored) == (429, "quota-exceeded", [])

    asyncio.run(story())


def test_invalid_event_beyond_the_quota_still_gets_its_own_error(make: Callable[..., Ingest]):
    async def story() -> None:
        ingest = make(events_per_s=1)
        done = await ingest.post(b"1\n2\n{\n4", content_type="application/x-ndjson")
        assert [item["status"] for item in done.answer["items"]] == [202, 202, 400, 429]

    asyncio.run(story())


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_byte_quota_counts_decompressed_bytes(make: Callable[..., Ingest], packed: bool):
    async def story() -> None:
        ingest = make(bytes_per_s=1_024)
        body = json.dumps("x" * 4_000).encode()
        more: dict[str, Any] = {"content_encoding": "gzip"} if packed else {}
        assert (await ingest.post(gzip.compress(body) if packed else body, **more)).status == 202
        refused = await ingest.post(b"{}")
        assert (refused.status, refused.answer["violated-policies"]) == (429, ["bytes"])

    asyncio.run(story())


def test_body_beyond_the_in_flight_limit_is_refused_before_it_is_read(make: Callable[..., Ingest]):
    async def story() -> None:
        ingest = make(in_flight_bytes=8 * MIB)
        ingest.replica.meters.of("t").begin(6 * MIB)
        large = json.dumps("x" * 3 * MIB).encode()
        refused = await ingest.post(large)
        assert (refused.status, refused.was_read, refused.answer["violated-policies"]) == (429, False, ["in-flight"])
        chunked = await ingest.post(b"x" * MIB, chunks=100)
        assert chunked.status == 429
        assert ingest.replica.meters.of("t").in_flight == 6 * MIB, "the refused bodies are no longer in flight"
        assert (await ingest.post(b"{}")).status == 202

    asyncio.run(story())


def test_replica_with_too_many_bytes_in_flight_answers_503_before_it_reads(make: Callable[..., Ingest]):
    async def story() -> None:
        ingest = make(in_flight=MIB)
        refused = await ingest.post(json.dumps("x" * 2 * MIB).encode())
        assert (refused.status, refused.was_read, refused.answer["code"]) == (503, False, "unavailable")
        assert ingest.replica.meters.in_flight == 0

    asyncio.run(story())


def test_accepted_request_reports_the_remaining_quota(make: Callable[..., Ingest]):
    async def story() -> None:
        ingest = make(events_per_s=5)
        assert (await ingest.post(b"{}")).headers["ratelimit"].startswith('"events";r=9;t=1')

    asyncio.run(story())


def test_tenant_over_its_quota_does_not_affect_another_tenant(make: Callable[..., Ingest]):
    async def story() -> None:
        ingest = make(events_per_s=1)
        other = key_of("other")
        ingest.replica.table.apply(PlanRecord("q", 1, SPEC))
        ingest.replica.table.apply(PipeRecord("q", 1, "u", "orders", "c1", "active", [(1, 100)]))
        ingest.replica.table.apply(ApiKeyRecord(key_digest(other), 1, "q", "shop"))
        assert (await ingest.post(b"[1,2,3,4]")).status == 207
        assert (await ingest.post(b"[1,2]", authorization=f"Bearer {other}")).status == 202

    asyncio.run(story())


def test_pipes_of_one_tenant_share_its_quota(make: Callable[..., Ingest]):
    async def story() -> None:
        ingest = make(events_per_s=1)
        ingest.replica.table.apply(PlanRecord("q", 1, SPEC))
        ingest.replica.table.apply(PipeRecord("q", 1, "t", "more", "c1", "active", [(1, 100)]))
        ingest.replica.table.apply(ApiKeyRecord(key_digest(key_of("other")), 1, "q", "shop"))
        assert (await ingest.post(b"[1,2]")).status == 202
        assert (await ingest.post(b"1", authorization=f"Bearer {key_of('other')}")).status == 429

    asyncio.run(story())


def test_kafka_source_gets_the_remaining_quota_and_its_events_do_not_count_as_refused(make: Callable[..., Ingest]):
    from dataplane.ingest.events import ReceivedEvent, RecordOrigin

    async def story() -> None:
        ingest = make(events_per_s=1)
        assert ingest.replica._room("t") == 2
        events = [ReceivedEvent(b"{}", {}, [], None, RecordOrigin(str(number), None)) for number in range(3)]
        feed = FeedKey("p", "shop", "t", "orders", "main", "earliest")
        assert await ingest.replica._take_fed(feed, events, len(events)) == [202, 202, 429]
        assert ingest.replica._room("t") == 0
        assert ingest.refused() == 0

    asyncio.run(story())
