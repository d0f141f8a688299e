"""Stores a batch and moves the offsets it covers, in one transaction.

The offset's conditional UPDATE is the fence: an Observer that lost a partition moves no row, stores nothing, and drops
what it remembered.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from controlplane.observer.batch import Batch
from controlplane.observer.cache import ByteCache
from controlplane.observer.days import note_days
from controlplane.observer.ended import save_ends
from controlplane.observer.fields import add_samples
from controlplane.observer.merge import FactId, Place, Tally, merged, united
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
from controlplane.observer.usage import add_usage, refusals
from mgmt.models import Attempt, AuditOffset
from mgmt.services.alerts import note_failures


class PartitionLostError(Exception):
    """The stored offset is not where this Observer left it: somebody else owns the partition now."""


class Store:
    """Rows of the partitions one Observer owns. `offsets`: where each stands; `counted`: audit records, as stored."""

    def __init__(self) -> None:
        self.offsets: dict[Place, int] = {}
        self.counted: ReportRuns = {}
        self._cache = ByteCache()

    def save(self, batch: Batch, *, maybe_sealed_before: int, now: datetime) -> None:
        """Store everything in `batch`, or nothing. Raises PartitionLostError.

        Buckets below `maybe_sealed_before` are looked up, so that what comes after their seal is counted as late.
        """
        with transaction.atomic():
            self._move(batch.moves)
            changed = self._save_tally(batch.tally, maybe_sealed_before)
            note_days({key.bucket for key in batch.tally.facts}, now)
            Attempt.objects.bulk_create(batch.attempts, ignore_conflicts=True, batch_size=ROWS)
            save_heartbeats(batch.heartbeats.values())
            save_ends(batch.ends, now)
            save_runs(batch.counted, now)
            note_failures(failures=refusals(batch.tally.usage, now), now=now)
        self.offsets |= batch.moves
        self.counted |= batch.counted
        for entries in changed:
            self._cache.update(entries)

    def _move(self, moves: Mapping[Place, int]) -> None:
        for (topic, partition), offset in sorted(moves.items()):
            ours = AuditOffset.objects.filter(
                topic=topic, partition=partition, next_offset=self.offsets[topic, partition]
            )
            if not ours.update(next_offset=offset):
                self._cache.clear()
                raise PartitionLostError(f"{topic}/{partition} moved from {self.offsets[topic, partition]}")

    def _save_tally(self, tally: Tally, maybe_sealed_before: int) -> list[Mapping[Any, bytes]]:
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

    def _merge_facts(self, tally: Tally, maybe_sealed_before: int) -> dict[FactId, bytes]:
        known = self._known(tally.facts, load_facts)
        stored = {key: united(known.get(key), positions) for key, positions in tally.facts.items()}
        changed = {key: value for key, value in stored.items() if value != known.get(key)}
        count_late(changed, known, maybe_sealed_before)
        return changed

    def _known(self, wanted: Mapping[Any, Any], load: Any) -> dict[Any, bytes]:
        """The stored bytes of `wanted`, from the cache and the rest from the rows."""
        known = {key: value for key in wanted if (value := self._cache.get(key)) is not None}
        if missing := [key for key in wanted if key not in known]:
            known |= load(missing)
        return known
