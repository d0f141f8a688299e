"""Observer rows in Postgres: stored once with their offset, fenced, sealed, counted if late, trimmed."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from pyroaring import BitMap64

from controlplane.observer.attempts import SuccessSampler
from controlplane.observer.batch import AuditBatch
from controlplane.observer.days import keep_days
from controlplane.observer.seal import first_open_bucket
from controlplane.observer.sealing import Sealer
from controlplane.observer.store import LedgerStore, PartitionLostError
from dataplane.ledger.audit import (
    AUDIT_VERSION,
    AttemptBatch,
    AttemptRecord,
    AuditRecord,
    FactSet,
    LagSet,
    OffsetMark,
    decode_audit,
    encode,
)
from dataplane.ledger.bins import Bin
from dataplane.ledger.breakdown import SLICES, Breakdown, Slice
from dataplane.ledger.heartbeat import HeartbeatRecord, encode_heartbeat
from dataplane.ledger.sketch import LagSketch
from dataplane.ledger.units import position_of
from dataplane.names import AUDIT_TOPIC, HEARTBEAT_TOPIC, PartitionKey, cell_topic
from dataplane.runtime.telemetry.lags import LagBook
from mgmt.deliveries.queries.health import destinations_behind
from mgmt.ledger.queries.ledger import accounts
from mgmt.models import (
    Alert,
    AuditOffset,
    Cell,
    CloseMark,
    FactRow,
    HighOffset,
    LagRow,
    LateCount,
    Pipe,
    Seal,
    SettledOffset,
    Tenant,
    Topic,
)
from mgmt.models import DeliveryAttempt as AttemptRow
from mgmt.models import Heartbeat as HeartbeatRow

pytestmark = pytest.mark.django_db

INGEST, EGRESS, ATTEMPTS = (cell_topic("c1", purpose, 1) for purpose in ("ingest", "egress", "attempts"))
AUDIT: PartitionKey = (AUDIT_TOPIC, 0)
NOW = datetime(2026, 1, 1, 12, 30, 30, tzinfo=UTC)
BUCKET = int(NOW.timestamp() // 60) - 10
GRACE_S = 60


class Message:
    """Record as the Kafka client returns it."""

    def __init__(self, place: PartitionKey, offset: int, value: bytes) -> None:
        self._place, self._offset, self._value = place, offset, value

    def topic(self) -> str:
        return self._place[0]

    def partition(self) -> int:
        return self._place[1]

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return self._value


def fact(node: str, name: str, offsets: list[int], detail: str = "") -> FactSet:
    units = BitMap64([position_of(1, 0, offset) for offset in offsets])
    return FactSet("p1", node, BUCKET, name, detail, 0, units.serialize())


def lag(values: list[int]) -> LagSet:
    sketch = LagSketch()
    sketch.add(values)
    return LagSet("p1", "normalize", BUCKET, "in", sketch.encode())


def audit(
    facts: list[FactSet],
    inputs: Sequence[OffsetMark] = (),
    outputs: Sequence[OffsetMark] = (),
    lags: Sequence[LagSet] = (),
) -> bytes:
    marks = list(inputs), list(outputs)
    return encode(AuditRecord(AUDIT_VERSION, "c1", "process-0", "process", 0, *marks, facts, list(lags)))


def batch_of(*messages: Message) -> AuditBatch:
    batch = AuditBatch(SuccessSampler(5))
    for message in messages:
        batch.add(message)
    return batch


@pytest.fixture
def store() -> LedgerStore:
    return store_at(0)


def store_at(offset: int) -> LedgerStore:
    AuditOffset.objects.update_or_create(topic=AUDIT_TOPIC, partition=0, defaults={"next_offset": offset})
    AuditOffset.objects.update_or_create(topic=ATTEMPTS, partition=0, defaults={"next_offset": offset})
    store = LedgerStore()
    store.offsets = {AUDIT: offset, (ATTEMPTS, 0): offset}
    return store


def save(store: LedgerStore, *messages: Message) -> None:
    store.save(batch_of(*messages), maybe_sealed_before=first_open_bucket(NOW, GRACE_S), now=NOW)


def positions(**of: str) -> list[int]:
    row = FactRow.objects.get(**of)
    return [unit & 0xFFFFFFFFFF for unit in BitMap64.deserialize(bytes(row.positions))]


def test_facts_of_later_batches_are_united_and_the_offset_advances_with_them(store: LedgerStore):
    save(store, Message(AUDIT, 0, audit([fact("ingest", "sent", [1, 2], "acked")])))
    save(store, Message(AUDIT, 1, audit([fact("ingest", "sent", [2, 3], "acked")])))
    assert positions(node="ingest") == [1, 2, 3]
    assert FactRow.objects.get().count == 3
    assert AuditOffset.objects.get(topic=AUDIT_TOPIC).next_offset == 2


def test_restarted_observer_merges_into_the_stored_rows(store: LedgerStore):
    save(store, Message(AUDIT, 0, audit([fact("ingest", "sent", [1])], lags=[lag([10])])))
    save(store_at(1), Message(AUDIT, 1, audit([fact("ingest", "sent", [2])], lags=[lag([20])])))
    assert positions(node="ingest") == [1, 2]
    assert LagSketch.decode(bytes(LagRow.objects.get().lag_in or b"")).count == 2


def delivered(lags_us: list[int], node: str = "transmit:crm") -> list[LagSet]:
    """Return the lags of deliveries as a lane reports them, a third of each spent in retries."""
    book = LagBook()
    for lag_us in lags_us:
        spent = [0] * SLICES
        spent[Slice.RETRY], spent[Slice.TRANSMIT] = lag_us // 3, lag_us - lag_us // 3
        book.add_delivered(("p1", node, BUCKET), lag_us // 2, 0, spent)
    return book.take()


def test_timing_of_a_node_is_one_row_that_merges_later_records(store: LedgerStore):
    save(store, Message(AUDIT, 0, audit([], lags=delivered([300, 600]))))
    save(store, Message(AUDIT, 1, audit([], lags=delivered([900]))))
    save(store_at(2), Message(AUDIT, 2, audit([], lags=delivered([1_200]))))
    row = LagRow.objects.get()
    lag_in, lag_out, own = (LagSketch.decode(bytes(column or b"")) for column in (row.lag_in, row.lag_out, row.own))
    assert [(one.count, one.max_us) for one in (lag_in, lag_out, own)] == [(4, 600), (4, 1_200), (4, 600)]
    breakdown = Breakdown.decode(bytes(row.breakdown or b""))
    sums = {portion.slice: portion.sum_us for portion in breakdown.portions(0.5)}
    assert (breakdown.count, sums) == (4, {Slice.RETRY: 1_000, Slice.TRANSMIT: 2_000})


def test_record_of_an_earlier_release_leaves_columns_unknown_to_it_unchanged(store: LedgerStore):
    save(store, Message(AUDIT, 0, audit([], lags=delivered([300]))))
    old = [msgspec.structs.replace(one, breakdown=b"") for one in delivered([900]) if one.way != "own"]
    save(store_at(1), Message(AUDIT, 1, audit([], lags=old)))
    row = LagRow.objects.get()
    assert LagSketch.decode(bytes(row.lag_out or b"")).count == 2
    assert LagSketch.decode(bytes(row.own or b"")).count == Breakdown.decode(bytes(row.breakdown or b"")).count == 1


def test_observer_that_lost_its_partition_stores_nothing(store: LedgerStore):
    AuditOffset.objects.filter(topic=AUDIT_TOPIC).update(next_offset=5)
    with pytest.raises(PartitionLostError):
        save(store, Message(AUDIT, 0, audit([fact("ingest", "sent", [1])])))
    assert not FactRow.objects.exists()


def test_marks_only_increase(store: LedgerStore):
    save(
        store,
        Message(
            AUDIT, 0, audit([fact("process", "sent", [1])], [OffsetMark(INGEST, 0, 9)], [OffsetMark(EGRESS, 1, 7)])
        ),
    )
    save(
        store,
        Message(
            AUDIT, 1, audit([fact("process", "sent", [1])], [OffsetMark(INGEST, 0, 4)], [OffsetMark(EGRESS, 1, 3)])
        ),
    )
    assert (SettledOffset.objects.get().offset, HighOffset.objects.get().offset) == (9, 7)


def test_unreadable_record_is_skipped(store: LedgerStore):
    save(store, Message(AUDIT, 0, b"\xff\xff"), Message(AUDIT, 1, audit([fact("ingest", "sent", [1])])))
    assert positions(node="ingest") == [1]
    assert AuditOffset.objects.get(topic=AUDIT_TOPIC).next_offset == 2


def test_attempts_read_again_are_stored_once(store: LedgerStore):
    tried = AttemptRecord("m", 1, "p1", 1, "crm", BUCKET, 1, 10**15, 0, 0, 0, 0, 5, 503, "retry", "busy", "10.0.0.1", 0)
    record = encode(AttemptBatch(AUDIT_VERSION, "c1", "transmit-0", 0, [tried]))
    save(store, Message((ATTEMPTS, 0), 0, record))
    save(store_at(0), Message((ATTEMPTS, 0), 0, record))
    assert AttemptRow.objects.get().status == 503


def test_newest_heartbeat_of_each_writer_is_kept(store: LedgerStore):
    beats = [
        HeartbeatRecord("c1", "process-0", "process", 1, "a", 10**15 + n, "running", n, 1, "host", 0.0, 1)
        for n in range(3)
    ]
    save(store, *(Message((HEARTBEAT_TOPIC, 0), n, encode_heartbeat(beat)) for n, beat in enumerate(beats)))
    assert HeartbeatRow.objects.get().table_offset == 2


@pytest.fixture
def pipe() -> Pipe:
    cell = Cell.objects.create(id="c1")
    for purpose in ("ingest", "egress", "retry-in", "retry-out"):
        Topic.objects.create(cell=cell, purpose=purpose, name=cell_topic("c1", purpose, 1), topic_id="x", partitions=1)
    tenant = Tenant.objects.create(name="Alice")
    return Pipe.objects.create(id="p1", tenant=tenant, name="orders", cell=cell)


def one_minute(passed_egress: int) -> list[bytes]:
    """Return the records of two messages through all nodes; transmit has settled egress up to `passed_egress`."""
    return [
        audit([fact("ingest", "sent", [0, 1], "acked")], [], [OffsetMark(INGEST, 0, 1)]),
        audit(
            [
                fact("ingest", "sent", [0, 1], "seen"),
                fact("process", "sent", [0, 1]),
                fact("transform:crm", "sent", [0, 1]),
            ],
            [OffsetMark(INGEST, 0, 2)],
            [OffsetMark(EGRESS, 0, 1)],
        ),
        audit([fact("transmit:crm", "delivered", [0, 1][:passed_egress])], [OffsetMark(EGRESS, 0, passed_egress)]),
    ]


def sealer_of(store: LedgerStore, records: list[bytes]) -> Sealer:
    first = store.offsets[AUDIT]
    save(store, *(Message(AUDIT, first + n, record) for n, record in enumerate(records)))
    sealer = Sealer(GRACE_S)
    sealer.load(0)
    return sealer


def ends(_place: PartitionKey) -> tuple[int, int]:
    return 0, 2


@pytest.mark.usefixtures("pipe")
def test_minute_that_all_readers_have_passed_is_sealed_with_its_account(store: LedgerStore):
    assert sealer_of(store, one_minute(2)).step(NOW, ends) == 1
    seal = Seal.objects.get()
    assert (seal.accepted, seal.unacked, seal.lost, seal.bins) == (2, 0, 0, {"crm": {"delivered": 2}})


@pytest.mark.usefixtures("pipe")
def test_lost_units_are_counted_for_the_cell_that_reported_the_minute(store: LedgerStore):
    records = one_minute(2)
    records[2] = audit([fact("transmit:crm", "delivered", [0])], [OffsetMark(EGRESS, 0, 2)])
    sealer = sealer_of(store, records)
    assert sealer.step(NOW, ends) == 1
    assert Seal.objects.get().lost == 1
    assert dict(sealer.sums.lost) == {"c1": 1}


@pytest.mark.usefixtures("pipe")
def test_minute_that_transmit_has_not_passed_stays_open(store: LedgerStore):
    sealer = sealer_of(store, one_minute(1))
    assert sealer.step(NOW, ends) == 0
    save(store, Message(AUDIT, 3, audit([fact("transmit:crm", "delivered", [1])], [OffsetMark(EGRESS, 0, 2)])))
    assert sealer.step(NOW, ends) == 1


@pytest.mark.usefixtures("pipe")
def test_minute_within_its_grace_period_is_not_examined(store: LedgerStore):
    sealer = sealer_of(store, one_minute(2))
    assert sealer.step(datetime.fromtimestamp((BUCKET + 1) * 60 + 30, UTC), ends) == 0
    assert not CloseMark.objects.exists()


@pytest.mark.usefixtures("pipe")
def test_end_of_a_minute_is_recorded_once(store: LedgerStore):
    sealer = sealer_of(store, one_minute(1))
    sealer.step(NOW, ends)
    sealer.step(NOW, lambda _: (0, 99))
    assert CloseMark.objects.get().ends == [[INGEST, 0, 2]]


@pytest.mark.usefixtures("pipe")
def test_facts_after_the_seal_are_late_and_the_seal_stays(store: LedgerStore):
    records = one_minute(2)
    records[2] = audit([fact("transmit:crm", "parked", [0, 1], "1")], [OffsetMark(EGRESS, 0, 2)], [])
    sealer = sealer_of(store, records)
    sealer.step(NOW, ends)
    before = Seal.objects.values().get()
    assert before["bins"] == {"crm": {"retrying": 2}}
    for offset, delivered in ((3, [0]), (4, [0, 1]), (5, [0, 1])):
        save(store, Message(AUDIT, offset, audit([fact("transmit:crm", "delivered", delivered)])))
    assert LateCount.objects.get(fact="delivered").count == 2, "repeated units do not count as late again"
    sealer.remember({("p1", BUCKET): "c1"})
    assert sealer.step(NOW, ends) == 0
    assert Seal.objects.values().get() == before


@pytest.mark.usefixtures("pipe")
def test_unsettled_message_is_lost_once_all_readers_have_passed(store: LedgerStore):
    records = one_minute(2)
    records[2] = audit([fact("transmit:crm", "delivered", [0])], [OffsetMark(EGRESS, 0, 2)], [])
    sealer_of(store, records).step(NOW, ends)
    assert (Seal.objects.get().lost, Seal.objects.get().bins) == (1, {"crm": {"delivered": 1, "lost": 1}})


@pytest.mark.usefixtures("pipe")
def test_stuck_minutes_do_not_block_others(store: LedgerStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("controlplane.observer.sealing.AT_ONCE", 1)
    sealer = sealer_of(store, one_minute(2))
    sealer.remember({("stuck", BUCKET - 1): "c1"})
    SettledOffset.objects.filter(topic=INGEST).update(offset=2)
    assert sum(sealer.step(NOW, ends) for _ in range(3)) >= 1


def test_old_rows_are_deleted_and_unsealed_ones_stay(store: LedgerStore):
    save(store, Message(AUDIT, 0, audit([fact("ingest", "sent", [1], "acked")], lags=[lag([1])])))
    long_after = NOW + timedelta(days=40)
    keep_days(long_after, facts_keep_d=30, seals_keep_d=400)
    assert FactRow.objects.exists()
    Seal.objects.create(pipe_id="p1", bucket=BUCKET, sealed_at=NOW, accepted=1, unacked=0, lost=0, bins={}, nodes=[])
    keep_days(long_after, facts_keep_d=30, seals_keep_d=400)
    assert not FactRow.objects.exists()
    assert not LagRow.objects.exists()
    assert Seal.objects.exists()


def of_replay(record: bytes) -> bytes:
    """Return an audit record with its facts in the account of a replay."""
    audit = decode_audit(record)
    facts = [msgspec.structs.replace(one, pipe="replay_1") for one in audit.facts]
    lags = [msgspec.structs.replace(one, pipe="replay_1") for one in audit.lags]
    return encode(msgspec.structs.replace(audit, facts=facts, lags=lags))


@pytest.mark.usefixtures("pipe")
def test_minute_of_a_replay_is_stored_and_never_sealed_nor_counted_as_open(store: LedgerStore):
    records = one_minute(2)
    records[2] = audit([fact("transmit:crm", "delivered", [0])], [OffsetMark(EGRESS, 0, 2)], lags=[lag([7])])
    batch = batch_of(*(Message(AUDIT, offset, of_replay(record)) for offset, record in enumerate(records)))
    store.save(batch, maybe_sealed_before=first_open_bucket(NOW, GRACE_S), now=NOW)
    sealer = Sealer(GRACE_S)
    sealer.load(0)
    sealer.remember(batch.tally.cells)
    assert sealer.open_minutes == 0
    assert sealer.step(NOW + timedelta(hours=1), ends) == 0
    assert not Seal.objects.exists()
    assert not LateCount.objects.exists()
    assert not Alert.objects.exists()
    assert accounts("replay_1", [BUCKET])[BUCKET].count(Bin.DELIVERED) == 1
    assert LagRow.objects.get().pipe_id == "replay_1"
    assert destinations_behind(BUCKET, BUCKET) == set(), "no pipe"
