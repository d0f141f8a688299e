"""The rollup: whatever happens to minutes, the sums of a range are those of its minutes."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from django.utils import timezone

from controlplane.observer.attempts import SuccessSampler
from controlplane.observer.batch import AuditBatch
from controlplane.observer.rollups import keep_rollups
from controlplane.observer.seal import seal_row
from controlplane.observer.store import LedgerStore
from dataplane.ledger.audit import AUDIT_VERSION, AuditRecord
from dataplane.ledger.facts import FactBook, FactKey
from dataplane.ledger.report_parts import encode_parts
from dataplane.ledger.units import position_of
from dataplane.names import AUDIT_TOPIC
from dataplane.runtime.telemetry.lags import LagBook
from mgmt.ledger.queries.bucket_range import BucketRange
from mgmt.ledger.queries.ledger import accounts
from mgmt.ledger.queries.minute_sums import TrendSums
from mgmt.ledger.queries.minutes import minute_lines
from mgmt.ledger.queries.rollups import LENGTHS, BlockRange, covering
from mgmt.ledger.queries.timing import end_to_end
from mgmt.ledger.queries.trends import trends_of
from mgmt.models import AuditOffset, FactRow, Pipe, PipeRollup, RollupMark, Seal, SettledOffset
from tests.db.console.truth import Truth, go_live
from tests.db.controlplane.test_observer_storage import AUDIT, Message
from tests.db.queries.test_trends import sums_of

pytestmark = pytest.mark.django_db
GRACE_S: Final = 60
DAY: Final = 29_833_920  # a bucket at midnight
NOW: Final = datetime.fromtimestamp((DAY + 900) * 60, UTC)
ENDED: Final = DAY + 900 - 2


class Ledger:
    """Ledger of one pipe, written by the Observer's own store. `account`: whose facts are reported."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe, self.account = pipe, pipe.id
        self._store = LedgerStore()
        self._store.offsets = {AUDIT: 0}
        self._offset = self._sequence = 0
        AuditOffset.objects.create(topic=AUDIT_TOPIC, partition=0, next_offset=0)

    def report(self, bucket: int, facts: Sequence[tuple[str, str, str]], offsets: range, lag_us: int = 0) -> None:
        """Store facts about messages of the minute, and their end-to-end lag if it is not 0."""
        book, lags = FactBook(), LagBook()
        positions = range(position_of(1, 0, offsets.start), position_of(1, 0, offsets.stop))
        for node, fact, detail in facts:
            book.extend(self.account, bucket, FactKey(node, fact, detail), positions)
        if lag_us:
            lags.add_all((self.account, "transmit:crm", bucket), [0] * len(offsets), [lag_us] * len(offsets))
        self._sequence += 1
        about = (AUDIT_VERSION, "c1", "transmit-0", "transmit", 0)
        batch = AuditBatch(SuccessSampler(5))
        record = AuditRecord(*about, [], [], book.sets(), lags.take(), run="run", sequence=self._sequence)
        for value in encode_parts(record):
            batch.add(Message(AUDIT, self._offset, value))
            self._offset += 1
        self._store.save(batch, maybe_sealed_before=ENDED, now=NOW)

    def accept(self, bucket: int, offsets: range) -> None:
        self.report(bucket, [("ingest", "sent", "acked"), ("ingest", "sent", "seen"), ("process", "sent", "")], offsets)
        self.report(bucket, [("transform:crm", "sent", "")], offsets)

    def deliver(self, bucket: int, offsets: range, lag_us: int = 5_000) -> None:
        self.report(bucket, [("transmit:crm", "delivered", "")], offsets, lag_us)

    def seal(self, bucket: int) -> None:
        account = accounts(self.pipe.id, [bucket])[bucket]
        seal_row(self.pipe.id, bucket, account, timezone.now()).save(force_insert=True)


@pytest.fixture
def ledger(pipe: Pipe) -> Ledger:
    go_live(pipe)
    Truth(pipe).passed(10_000)
    return Ledger(pipe)


def roll_up(now: datetime = NOW) -> int:
    return keep_rollups(now, GRACE_S, budget_s=60)


def check(ledger: Ledger) -> None:
    """Compare ranges of all lengths with the sums over their minutes."""
    last = DAY + 900
    for name, minutes in (("15m", 15), ("1h", 60), ("6h", 360), ("24h", 1440), ("7d", 10_080)):
        span = BucketRange(name, last - minutes + 1, last)
        trend, lines = trends_of([ledger.pipe.id], span).by_pipe[ledger.pipe.id], []
        lines = minute_lines([ledger.pipe.id], span).get(ledger.pipe.id, [])
        assert [sums_of([line for line in lines if line.bucket in part]) for part in span.parts()] == trend.sums, name
        lags = end_to_end([ledger.pipe.id], span).get(ledger.pipe.id)
        assert trend.lag_p95_us == (lags.quantile(0.95) if lags else None), name


def finals() -> dict[int, int]:
    rows = PipeRollup.objects.filter(is_final=True)
    return {length: rows.filter(length=length).count() for length in LENGTHS}


def test_covering_takes_the_longest_blocks_that_fit():
    assert list(covering(3, 3, LENGTHS)) == []
    assert list(covering(7, 9, LENGTHS)) == [BlockRange(1, 7, 9)]
    assert list(covering(58, 1_503, LENGTHS)) == [
        BlockRange(1, 58, 60),
        BlockRange(60, 60, 720),
        BlockRange(720, 720, 1_440),
        BlockRange(60, 1_440, 1_500),
        BlockRange(1, 1_500, 1_503),
    ]
    for first, end in ((0, 1), (4, 6), (59, 61), (719, 2_161), (3, 4_000)):
        blocks = list(covering(first, end, LENGTHS))
        assert [block.first for block in blocks[1:]] == [block.end for block in blocks[:-1]]
        assert (blocks[0].first, blocks[-1].end) == (first, end)
        assert all(block.first % block.length == block.end % block.length == 0 for block in blocks)


def test_sums_come_from_final_blocks_of_every_length(ledger: Ledger):
    for bucket in range(DAY - 725, ENDED, 45):
        first = bucket - DAY + 725
        ledger.accept(bucket, range(first, first + 3))
        ledger.deliver(bucket, range(first, first + 3), lag_us=1_000 * (first + 1))
        ledger.seal(bucket)
    check(ledger)
    roll_up()
    assert RollupMark.objects.get().until == ENDED // 5 * 5
    assert not PipeRollup.objects.filter(is_final=False).exists()
    counts = finals()
    assert counts[720] == 3
    assert counts[60] > 20
    check(ledger)
    FactRow.objects.filter(bucket__lt=DAY).delete()
    Seal.objects.filter(bucket__lt=DAY).delete()
    span = BucketRange("7d", DAY + 900 - 10_079, DAY + 900)
    assert trends_of([ledger.pipe.id], span).by_pipe[ledger.pipe.id].whole.accepted == 3 * len(
        range(DAY - 725, ENDED, 45)
    ), "the minutes of a final block are not read"


def test_late_retries_redrives_and_events_open_a_block_again(ledger: Ledger):
    bucket = DAY + 130
    ledger.accept(bucket, range(10))
    ledger.deliver(bucket, range(4))
    ledger.report(bucket, [("transmit:crm", "dead", "rejected")], range(4, 6))
    ledger.report(bucket, [("transmit:crm", "parked", "1")], range(6, 10))
    ledger.seal(bucket)
    roll_up()
    assert finals() == {720: 0, 60: 0, 5: 0}, "four messages wait for a retry"
    check(ledger)

    ledger.deliver(bucket, range(6, 10), lag_us=90_000_000)
    roll_up()
    assert finals() == {720: 1, 60: 1, 5: 1}
    check(ledger)

    ledger.report(bucket, [], range(10), lag_us=500_000_000)  # a part of a report with lags only
    assert finals() == {720: 0, 60: 0, 5: 0}
    check(ledger)
    roll_up()
    check(ledger)

    ledger.report(bucket, [("transmit:crm", "redriven", "1")], range(4, 6))
    assert finals() == {720: 0, 60: 0, 5: 0}
    check(ledger)
    ledger.deliver(bucket, range(4, 6), lag_us=200_000_000)
    roll_up()
    assert finals() == {720: 1, 60: 1, 5: 1}
    check(ledger)

    ledger.accept(bucket + 60, range(20, 25))  # a minute of which nothing was known, in an hour that is past
    check(ledger)
    roll_up(NOW)
    assert finals()[720] == 0, "the late minute is open"
    check(ledger)
    ledger.deliver(bucket + 60, range(20, 25))
    ledger.seal(bucket + 60)
    roll_up(NOW + timedelta(minutes=2))
    assert finals() == {720: 1, 60: 2, 5: 2}
    check(ledger)
    trend = trends_of([ledger.pipe.id], BucketRange("24h", DAY - 539, DAY + 900)).by_pipe[ledger.pipe.id]
    assert trend.whole == TrendSums(accepted=15, delivered=15)


def test_fact_that_arrives_while_a_block_is_added_up_is_not_lost(ledger: Ledger, monkeypatch: pytest.MonkeyPatch):
    bucket = DAY + 130
    ledger.accept(bucket, range(10))
    ledger.deliver(bucket, range(9))
    ledger.report(bucket, [("transmit:crm", "dead", "rejected")], range(9, 10))
    ledger.seal(bucket)
    done: list[bool] = []

    def late(*given: object) -> object:
        found = original(*given)  # type: ignore[arg-type]  # as given
        if not done:
            done.append(True)
            ledger.deliver(bucket, range(9, 10))
        return found

    from controlplane.observer import rollups

    original = rollups._of_minutes
    monkeypatch.setattr(rollups, "_of_minutes", late)
    roll_up()
    assert done
    check(ledger)
    assert finals() == {720: 1, 60: 1, 5: 1}, "it was added up again"


def test_random_lives_of_minutes(ledger: Ledger):
    chance, free = random.Random(17), 0
    alive: list[tuple[int, int]] = []
    unsealed: set[int] = set()
    for step in range(60):
        bucket = DAY + chance.choice([5, 7, 64, 300, 719, 721, 890])
        match chance.randrange(5):
            case 0:
                ledger.accept(bucket, range(free, free + 3))
                alive += [(bucket, free + n) for n in range(3)]
                free += 3
                if not Seal.objects.filter(bucket=bucket).exists():
                    unsealed.add(bucket)
            case 1 if alive:
                its, offset = alive.pop(chance.randrange(len(alive)))
                fact = chance.choice(["delivered", "dead", "parked"])
                detail = {"dead": "rejected", "parked": "1"}.get(fact, "")
                ledger.report(its, [("transmit:crm", fact, detail)], range(offset, offset + 1), lag_us=1_000 * step)
                if fact == "parked":
                    alive.append((its, offset))
            case 2 if unsealed:
                ledger.seal(unsealed.pop())
            case 3:
                roll_up(NOW + timedelta(minutes=2 * step))
            case _:
                SettledOffset.objects.filter(topic="penstock.c1.egress.g1").update(offset=20_000 + step)
        if step % 4 == 0:
            check(ledger)
    check(ledger)
    assert RollupMark.objects.exists()


def test_replay_has_no_blocks_and_its_facts_open_none(ledger: Ledger):
    bucket = ENDED - 30
    ledger.accept(bucket, range(3))
    ledger.deliver(bucket, range(3))
    ledger.seal(bucket)
    ledger.account = "replay_1"
    ledger.accept(bucket, range(3))
    roll_up()
    assert set(PipeRollup.objects.values_list("pipe_id", flat=True)) == {ledger.pipe.id}
    ledger.deliver(bucket, range(3))
    roll_up()
    assert set(PipeRollup.objects.values_list("pipe_id", "is_final", "version")) == {(ledger.pipe.id, True, 0)}
