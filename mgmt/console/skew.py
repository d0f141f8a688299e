"""Key skew as the pages show it."""

from dataclasses import dataclass
from datetime import datetime

from mgmt.models import Pipe, Topic
from mgmt.queries.records import RecordsAway
from mgmt.queries.skew import HeavyKey, HotPartition, heavy_keys, hottest
from mgmt.queries.span import span_until


@dataclass(frozen=True)
class Skew:
    """A hot partition with the keys that fill it, or why they cannot be read."""

    hot: HotPartition
    keys: tuple[HeavyKey, ...] = ()
    away: str = ""


def skew_of(pipe: Pipe, now: datetime) -> Skew | None:
    """What to tell of the last hour; None if its events spread well enough."""
    topic = Topic.objects.filter(cell_id=pipe.cell_id, purpose="ingest").order_by("-generation").first()
    hot = hottest(pipe, span_until("1h", now), topic.partitions) if topic else None
    if hot is None:
        return None
    try:
        return Skew(hot, tuple(heavy_keys(pipe, hot)))
    except RecordsAway as exc:
        return Skew(hot, away=str(exc))
