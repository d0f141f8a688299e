"""Usual ranges of a pipe's signals, and its findings: for pages, API and explain."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec
from django.db.models import Q, QuerySet

from mgmt.deliveries.queries.blocks import hours_of
from mgmt.models import Finding, IgnoredField, PatternHour, Pipe
from mgmt.patterns.blocks import IN_HOUR, PatternBlock, start_of
from mgmt.patterns.judge import PATTERNS, SignalReading, range_of, read
from mgmt.patterns.usual import HOURS_BACK

MOST_FINDINGS: Final = 100
LABELS: Final = {"volume": "Events a minute", "failures": "Messages that failed", "lag": "Lag p95"}


@dataclass(frozen=True)
class SignalStatus:
    """Current value of a signal, its usual range and the values that become a finding, as text; "" without history."""

    name: str
    label: str
    now: str
    usual: str
    threshold: str
    basis: str


@dataclass(frozen=True)
class CurrentBlock:
    """Newest block of a pipe: its start, and its signals with their usual ranges."""

    since: datetime
    lines: tuple[SignalStatus, ...]


def pattern_now(pipe: Pipe) -> CurrentBlock | None:
    """Return a pipe's newest block; None if none is stored yet. Two queries."""
    row = PatternHour.objects.filter(pipe_id=pipe.id).order_by("-hour").first()
    if row is None:
        return None
    blocks = msgspec.convert(row.blocks, list[PatternBlock | None])
    index, block = max((index, block) for index, block in enumerate(blocks) if block is not None)
    known = hours_of([pipe.id], [row.hour - back for back in HOURS_BACK]).get(pipe.id, {})
    readings = read(block, known, row.hour)
    return CurrentBlock(start_of(row.hour * IN_HOUR + index), tuple(_line(reading) for reading in readings.values()))


def findings_of(pipe: Pipe) -> QuerySet[Finding]:
    """Return the findings that were reported or silenced, newest first. One that was seen only once is neither."""
    return Finding.objects.filter(~Q(told_at=None) | ~Q(silenced=""), pipe=pipe).order_by("-since", "kind")


def ignored_fields(pipe: Pipe) -> QuerySet[IgnoredField]:
    """Return the fields of a pipe whose numeric drift is ignored, by source and path."""
    return pipe.ignored_fields.select_related("by").order_by("source", "path")


def reported_findings(pipe_ids: Iterable[str]) -> QuerySet[Finding]:
    """Return the reported findings that have not ended, oldest first."""
    rows = Finding.objects.filter(pipe_id__in=list(pipe_ids), ended_at=None).exclude(told_at=None)
    return rows.order_by("since", "kind")


def _line(reading: SignalReading) -> SignalStatus:
    signal, usual = reading.signal, reading.usual
    now = "" if reading.value is None else signal.text(reading.value)
    if usual is None:
        return SignalStatus(signal.name, LABELS[signal.name], now, "", "", "")
    sides = {pattern.high for pattern in PATTERNS if pattern.signal is signal}
    below = f"below {signal.text(usual.below)}" if False in sides and usual.below > 0 else ""
    unusual = " or ".join(filter(None, [below, f"above {signal.text(usual.above)}"]))
    return SignalStatus(signal.name, LABELS[signal.name], now, range_of(signal, usual), unusual, usual.basis)
