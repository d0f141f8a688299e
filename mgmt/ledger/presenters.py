"""View model of key skew."""

from dataclasses import dataclass
from datetime import datetime

from mgmt.ledger.queries.bucket_range import span_until
from mgmt.ledger.queries.heavy_keys import HeavyKey, HotPartition, heaviest_keys, heavy_keys, live_spec, shown_keys
from mgmt.messages.queries.records import RecordUnavailableError
from mgmt.models import Pipe, Topic


@dataclass(frozen=True)
class SkewView:
    """Hot partition with its most frequent keys; `away` says why they cannot be read."""

    hot: HotPartition
    keys: tuple[HeavyKey, ...] = ()
    away: str = ""


def skew_view(pipe: Pipe, now: datetime) -> SkewView | None:
    """Return the skew of the last hour's events; None if they are distributed evenly enough."""
    topic = Topic.objects.filter(cell_id=pipe.cell_id, purpose="ingest").order_by("-generation").first()
    hot = heaviest_keys(pipe, span_until("1h", now), topic.partitions) if topic else None
    if hot is None:
        return None
    try:
        return SkewView(hot, tuple(shown_keys(heavy_keys(pipe, hot), live_spec(pipe))))
    except RecordUnavailableError as exc:
        return SkewView(hot, away=str(exc))
