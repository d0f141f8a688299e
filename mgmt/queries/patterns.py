"""What is usual of a pipe now, and what was found unusual: for pages, API and explain."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec
from django.db.models import Q, QuerySet

from mgmt.models import Finding, PatternHour, Pipe
from mgmt.patterns.blocks import IN_HOUR, Block, start_of
from mgmt.patterns.judge import PATTERNS, Reading, range_of, read
from mgmt.patterns.usual import HOURS_BACK
from mgmt.queries.blocks import hours_of

MOST_FINDINGS: Final = 100
LABELS: Final = {"volume": "Events a minute", "failures": "Messages that failed", "lag": "Lag p95"}


@dataclass(frozen=True)
class SignalLine:
    """A signal now, its usual range and what is told, in words; "" where nothing can be said yet."""

    name: str
    label: str
    now: str
    usual: str
    told: str
    basis: str


@dataclass(frozen=True)
class Now:
    """The newest block of a pipe, when it began, and its signals beside what is usual."""

    since: datetime
    lines: tuple[SignalLine, ...]


def pattern_now(pipe: Pipe) -> Now | None:
    """Two queries; None of a pipe of which no block was kept yet."""
    row = PatternHour.objects.filter(pipe_id=pipe.id).order_by("-hour").first()
    if row is None:
        return None
    blocks = msgspec.convert(row.blocks, list[Block | None])
    place, block = max((place, block) for place, block in enumerate(blocks) if block is not None)
    known = hours_of([pipe.id], [row.hour - back for back in HOURS_BACK]).get(pipe.id, {})
    readings = read(block, known, row.hour)
    return Now(start_of(row.hour * IN_HOUR + place), tuple(_line(reading) for reading in readings.values()))


def findings_of(pipe: Pipe) -> QuerySet[Finding]:
    """What was told or silenced, the newest first. What was seen once is neither."""
    return Finding.objects.filter(~Q(told_at=None) | ~Q(silenced=""), pipe=pipe).order_by("-since", "kind")


def told_now(pipe_ids: Iterable[str]) -> QuerySet[Finding]:
    """What is unusual now, the oldest first."""
    rows = Finding.objects.filter(pipe_id__in=list(pipe_ids), ended_at=None).exclude(told_at=None)
    return rows.order_by("since", "kind")


def _line(reading: Reading) -> SignalLine:
    signal, usual = reading.signal, reading.usual
    now = "" if reading.value is None else signal.text(reading.value)
    if usual is None:
        return SignalLine(signal.name, LABELS[signal.name], now, "", "", "")
    sides = {pattern.high for pattern in PATTERNS if pattern.signal is signal}
    below = f"below {signal.text(usual.below)}" if False in sides and usual.below > 0 else ""
    told = " or ".join(filter(None, [below, f"above {signal.text(usual.above)}"]))
    return SignalLine(signal.name, LABELS[signal.name], now, range_of(signal, usual), told, usual.basis)
