"""Field drift, from the lanes' observations to findings on a pipe: each sample and each block counts once."""

import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from msgspec import structs

from controlplane.observer.attempts import SuccessSampler
from controlplane.observer.batch import AuditBatch
from controlplane.observer.fields import add_samples
from controlplane.observer.patterns import watch_patterns
from controlplane.observer.store import LedgerStore, PartitionLostError
from controlplane.observer.trim import trim
from dataplane.ledger.audit import AUDIT_VERSION, AuditRecord, encode
from dataplane.ledger.fields import FieldCounter, FieldObservation
from dataplane.names import AUDIT_TOPIC
from mgmt.models import (
    AuditOffset,
    FieldHour,
    FieldSample,
    Finding,
    PatternHour,
    PatternMark,
    Pipe,
    SourceSchema,
    Tenant,
    User,
)
from mgmt.patterns.blocks import IN_HOUR, MINUTES, PatternBlock, hour_of
from mgmt.patterns.queries import findings_of
from mgmt.patterns.shares import EMPTY, STEPS, merged, with_sample
from mgmt.patterns.shares import FieldShares as Hour
from mgmt.patterns.usual import HOURS_BACK
from mgmt.services import create_pipe
from tests.db.cast import MakeSpec
from tests.db.controlplane.test_observer_storage import AUDIT, Message
from tests.db.controlplane.watching import BLOCK, FIRST, GRACE_S, NOW, START, watch_from_first, well_cell

USUAL: Final = {"user": {"country": "DE"}, "n": 1}
WITHOUT: Final = {"n": 1}
COUPON: Final = {"user": {"country": "DE"}, "n": 1, "coupon": "x"}
StoreSamples = Callable[..., None]


def observation_of(pipe: Pipe, number: int, *bodies: object, source: str = "shop", times: int = 60) -> FieldObservation:
    counter = FieldCounter(with_values=True)
    for body in bodies * times:
        counter.add(body)
    return counter.observation(pipe.id, source, number * MINUTES)


def had(pipe: Pipe, *bodies: object) -> None:
    """Store the same fields and volume in each block of the hours used for comparison."""
    hour = Hour(EMPTY.sampled, {})
    for place in range(IN_HOUR):
        hour = with_sample(hour, place, merged([observation_of(pipe, FIRST, *bodies)]))
    hours = [hour_of(FIRST) - back for back in HOURS_BACK]
    FieldHour.objects.bulk_create(
        [FieldHour(pipe_id=pipe.id, source="shop", hour=at, shares=msgspec.msgpack.encode(hour)) for at in hours]
    )
    blocks = msgspec.to_builtins([PatternBlock(1_000)] * IN_HOUR)
    PatternHour.objects.bulk_create([PatternHour(pipe_id=pipe.id, hour=at, blocks=blocks) for at in hours])


@pytest.fixture
def placed(pipe: Pipe) -> Pipe:
    watch_from_first(pipe, well_cell())
    AuditOffset.objects.create(topic=AUDIT_TOPIC, partition=0, next_offset=0)
    had(pipe, USUAL)
    return pipe


@pytest.fixture
def store_samples(placed: Pipe) -> StoreSamples:
    """Function that reports field samples to the Observer as lanes do, one audit record each."""
    store = LedgerStore()
    store.offsets = {AUDIT: 0}

    def store_samples(*samples: FieldObservation) -> None:
        batch, first = AuditBatch(SuccessSampler(5)), store.offsets[AUDIT]
        for offset, sample in enumerate(samples, first):
            audit = AuditRecord(AUDIT_VERSION, "c1", "process-0", "process", 0, [], [], [], [], None, [sample])
            batch.add(Message(AUDIT, offset, encode(audit)))
        store.save(batch, maybe_sealed_before=0, now=NOW)

    return store_samples


def findings(pipe: Pipe) -> Sequence[tuple[str, str]]:
    """Return the findings on fields; `quiet` is excluded because the test stores no volume."""
    return list(findings_of(pipe).exclude(kind="quiet").values_list("kind", "words"))


def test_missing_fields_are_one_finding_after_two_blocks_which_ends_after_two_good_ones(
    placed: Pipe, store_samples: StoreSamples
):
    for number in range(FIRST, FIRST + 4):
        body = WITHOUT if number < FIRST + 2 else USUAL
        store_samples(observation_of(placed, number, body), observation_of(placed, number, body))
    watch_patterns(NOW, GRACE_S)
    assert findings(placed) == []
    watch_patterns(NOW + BLOCK, GRACE_S)
    words = "field user of source shop in 0 % of the events where 100 % is usual at this hour of the week, and 1 more"
    assert findings(placed) == [("missing", words)]
    row = Finding.objects.get(kind="missing")
    assert (row.since, row.told_at, row.ended_at) == (START, NOW + BLOCK, None)
    watch_patterns(NOW + 3 * BLOCK, GRACE_S)
    row.refresh_from_db()
    assert (row.words, row.ended_at) == (words, START + 4 * BLOCK)


def test_samples_of_several_lanes_are_merged_by_source(placed: Pipe, store_samples: StoreSamples):
    store_samples(
        observation_of(placed, FIRST, USUAL),
        observation_of(placed, FIRST, WITHOUT),
        observation_of(placed, FIRST, WITHOUT, source="app"),
    )
    watch_patterns(NOW, GRACE_S)
    rows = FieldHour.objects.filter(hour=hour_of(FIRST))
    kept = {row.source: msgspec.msgpack.decode(bytes(row.shares), type=Hour) for row in rows}
    assert {source: hour.row("user")[0] for source, hour in kept.items()} == {"shop": STEPS // 2, "app": 0}


def test_skewed_category_and_changed_type_are_reported(placed: Pipe, store_samples: StoreSamples):
    for number in (FIRST, FIRST + 1):
        store_samples(observation_of(placed, number, {"user": {"country": "FR"}, "n": "1"}))
    watch_patterns(NOW + BLOCK, GRACE_S)
    assert {kind for kind, _ in findings(placed)} == {"skew", "type"}


def test_repeated_run_changes_nothing(placed: Pipe, store_samples: StoreSamples):
    def rows() -> tuple[object, ...]:
        hours = [(row.hour, bytes(row.shares)) for row in FieldHour.objects.order_by("id")]
        return list(Finding.objects.values()), hours

    store_samples(observation_of(placed, FIRST, WITHOUT))
    watch_patterns(NOW, GRACE_S)
    before = rows()
    PatternMark.objects.update(block=FIRST - 1)  # as left by a run that was killed before it moved the mark
    watch_patterns(NOW + timedelta(seconds=9), GRACE_S)
    assert rows() == before


def test_observer_that_lost_its_partition_stores_no_sample(placed: Pipe, store_samples: StoreSamples):
    AuditOffset.objects.update(next_offset=9)
    with pytest.raises(PartitionLostError):
        store_samples(observation_of(placed, FIRST, WITHOUT))
    assert not FieldSample.objects.exists()


def test_new_field_after_schema_registration_is_listed_and_not_reported(
    placed: Pipe, store_samples: StoreSamples, alice: User, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as clock:
        clock.setattr(timezone, "now", lambda: START - timedelta(hours=3))
        SourceSchema.objects.create(source=placed.sources.get(), number=2, text="{}", author=alice)
    for number in (FIRST, FIRST + 1, FIRST + 2, FIRST + 3):
        store_samples(observation_of(placed, number, COUPON if number < FIRST + 2 else USUAL))
    source = placed.sources.get().name
    FieldSample.objects.update(source=source)
    FieldHour.objects.update(source=source)
    watch_patterns(NOW + BLOCK, GRACE_S)
    row = Finding.objects.get(kind="new")
    assert (row.told_at, row.silenced) == (None, f"after schema 2 of source {source} was registered")
    watch_patterns(NOW + 3 * BLOCK, GRACE_S)
    row.refresh_from_db()
    assert (row.ended_at, row.silenced) == (START + 3 * BLOCK, f"after schema 2 of source {source} was registered")


def test_query_count_does_not_grow_with_pipes(
    placed: Pipe, store_samples: StoreSamples, tenant: Tenant, alice: User, a_spec: MakeSpec
):
    def queries(now: datetime) -> int:
        with CaptureQueriesContext(connection) as asked:
            watch_patterns(now, GRACE_S)
        return len(asked)

    store_samples(observation_of(placed, FIRST, WITHOUT))
    with_one = queries(NOW)
    for number in range(10):
        pipe = create_pipe(tenant=tenant, name=f"more {number}", spec=a_spec(), author=alice)
        Pipe.objects.filter(id=pipe.id).update(cell=placed.cell)
        had(pipe, USUAL)
        store_samples(observation_of(pipe, FIRST + 1, WITHOUT))
    assert queries(NOW + BLOCK) <= with_one + 1  # existing findings are updated, new ones inserted
    assert Finding.objects.filter(kind="missing").count() == 11


def test_samples_are_trimmed_after_2_h_and_hours_when_they_are_no_longer_compared(
    placed: Pipe, store_samples: StoreSamples
):
    store_samples(observation_of(placed, FIRST, USUAL))
    for hours, samples, kept in ((1, 1, len(HOURS_BACK)), (3, 0, len(HOURS_BACK)), (30 * 24, 0, 0)):
        trim(NOW + timedelta(hours=hours), attempts_keep_h=1, seals_keep_d=400, ends_keep=timedelta(days=1))
        assert (FieldSample.objects.count(), FieldHour.objects.count()) == (samples, kept)


@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_thousand_pipes_of_thirty_fields_use_less_than_a_hundredth_of_a_core(placed: Pipe, tenant: Tenant):
    body = {f"f{number}": {"kind": "a", "size": 1.5} for number in range(10)}
    pipes = [Pipe(tenant=tenant, name=f"more {number}", cell=placed.cell) for number in range(1_000)]
    Pipe.objects.bulk_create(pipes)
    for pipe in pipes:
        had(pipe, body)
    sample = observation_of(placed, FIRST, body)
    add_samples([structs.replace(sample, pipe=pipe.id) for pipe in pipes for _ in range(2)])
    began_s = time.process_time()
    watch_patterns(NOW, GRACE_S)
    took_s = time.process_time() - began_s
    assert FieldHour.objects.filter(hour=hour_of(FIRST)).count() == 1_000
    assert took_s < 0.6 * MINUTES, f"{took_s:.1f} s"
