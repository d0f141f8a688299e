"""Store a batch and move the offsets that it covers, in one transaction.

The conditional UPDATE of the offset is the fence: an Observer that lost a partition updates no row, stores nothing, and
clears its cache.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from controlplane.observer.attempt_counts import add_attempt_counts
from controlplane.observer.batch import AuditBatch
from controlplane.observer.cache import ByteCache
from controlplane.observer.days import note_days
from controlplane.observer.failure_groups import save_ends
from controlplane.observer.fields import add_samples
from controlplane.observer.merge import FactId, MergedRecords, merged, united
from controlplane.observer.rejections import add_rejections
from controlplane.observer.rollups import reopen_blocks
from controlplane.observer.rows import (
    ROWS,
    count_late,
    load_facts,
    load_lags,
    raise_marks,
    save_facts,
    save_heartbeats,
    save_lags,
)
from controlplane.observer.runs import ReportRuns, save_runs
from controlplane.observer.sequence_breaks import save_breaks
from controlplane.observer.usage import add_usage, refusals
from controlplane.observer.version_traffic import add_traffic
from dataplane.names import SEQUENCE_PREFIX, PartitionKey
from mgmt.alerts.services.alerts import note_failures
from mgmt.models import AuditOffset, DeliveryAttempt


class PartitionLostError(Exception):
    """Raised when a stored offset is not the one that this Observer wrote: another one owns the partition now."""


class LedgerStore:
    """Store for the partitions that one Observer owns.

    offsets: the stored offset of each partition
    counted: the stored sequence of each run of audit records
    """

    def __init__(self) -> None:
        self.offsets: dict[PartitionKey, int] = {}
        self.counted: ReportRuns = {}
        self._cache = ByteCache()

    def save(self, batch: AuditBatch, *, maybe_sealed_before: int, now: datetime) -> None:
        """Store all of `batch`, or nothing. Raises PartitionLostError if another Observer moved an offset.

        Buckets below `maybe_sealed_before` are looked up, so that facts after their seal are counted as late.
        """
        with transaction.atomic():
            self._move(batch.moves)
            facts, lags = batch.tally.facts, batch.tally.lags
            reopen_blocks(
                {(key.pipe, key.bucket) for key in facts if not key.node.startswith(SEQUENCE_PREFIX)}
                | {(key.pipe, key.bucket) for key in lags}
            )
            changed = self._save_tally(batch.tally, maybe_sealed_before)
            note_days({key.bucket for key in batch.tally.facts}, now)
            DeliveryAttempt.objects.bulk_create(batch.attempts, ignore_conflicts=True, batch_size=ROWS)
            add_attempt_counts(batch.tally.deliveries, batch.attempts)
            save_heartbeats(batch.heartbeats.values())
            save_ends(batch.ends, now)
            save_runs(batch.counted, now)
            add_rejections(batch.tally.rejections)
            add_traffic(batch.tally.traffic)
            save_breaks(batch.tally.breaks)
            note_failures(failures=refusals(batch.tally.usage, now), now=now)
        self.offsets |= batch.moves
        self.counted |= batch.counted
        for entries in changed:
            self._cache.update(entries)

    def _move(self, moves: Mapping[PartitionKey, int]) -> None:
        for (topic, partition), offset in sorted(moves.items()):
            ours = AuditOffset.objects.filter(
                topic=topic, partition=partition, next_offset=self.offsets[topic, partition]
            )
            if not ours.update(next_offset=offset):
                self._cache.clear()
                raise PartitionLostError(f"{topic}/{partition} moved from {self.offsets[topic, partition]}")

    def _save_tally(self, tally: MergedRecords, maybe_sealed_before: int) -> list[Mapping[Any, bytes]]:
        facts = self._merge_facts(tally, maybe_sealed_before)
        known = self._known(tally.lags | tally.breakdowns, load_lags)
        lags = {key: merged(known.get(key), sketch) for key, sketch in tally.lags.items()}
        lags |= {key: merged(known.get(key), breakdown) for key, breakdown in tally.breakdowns.items()}
        save_facts(facts)
        save_lags(lags)
        raise_marks(tally)
        add_usage(tally.usage)
        add_samples(tally.samples)
        return [facts, lags]

    def _merge_facts(self, tally: MergedRecords, maybe_sealed_before: int) -> dict[FactId, bytes]:
        known = self._known(tally.facts, load_facts)
        stored = {key: united(known.get(key), positions) for key, positions in tally.facts.items()}
        changed = {key: value for key, value in stored.items() if value != known.get(key)}
        count_late(changed, known, maybe_sealed_before)
        return changed

    def _known(self, wanted: Mapping[Any, Any], load: Any) -> dict[Any, bytes]:
        """Return the stored bytes of `wanted`, from the cache, and the rest from the rows."""
        known = {key: value for key in wanted if (value := self._cache.get(key)) is not None}
        if missing := [key for key in wanted if key not in known]:
            known |= load(missing)
        return known
