"""A pipe's windows: their definitions, their late events, and the current values of a key."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Sum

from dataplane.ledger.facts import LATE, Fact
from dataplane.names import window_node
from dataplane.plan.taps import CompiledTap, digest_partition, key_digest, key_values
from dataplane.spec import parse_pipe_spec
from dataplane.spec.windows import RunningWindow, SessionWindow, SlidingWindow, TumblingWindow, WindowSpec
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.messages.queries.records import RecordUnavailableError, newest_of_key
from mgmt.models import FactRow, Pipe, PipeRevision, Topic

LATE_OVER: Final = timedelta(days=1)


class WindowKeyError(Exception):
    """The values do not match the paths of the window's key."""


@dataclass(frozen=True)
class WindowSummary:
    """Window of the live revision, and its number of late events of the last day."""

    name: str
    window: WindowSpec
    late: int

    @property
    def words(self) -> str:
        """Span and key of the window as text."""
        key = f" by {', '.join(self.window.by)}" if self.window.by else ""
        match self.window.span:
            case TumblingWindow(size_s):
                return f"every {size_s} s{key}"
            case SlidingWindow(size_s, every_s):
                return f"the last {size_s} s, every {every_s} s{key}"
            case SessionWindow(gap_s):
                return f"sessions with gaps below {gap_s} s{key}"
            case RunningWindow(every_s):
                return f"since the beginning, emitted every {every_s} s{key}"


def windows_of(pipe: Pipe) -> Mapping[str, WindowSpec]:
    """Return the windows of the live revision, or of the newest one if none is live."""
    live = pipe.revisions.filter(state=PipeRevision.State.LIVE).first() or pipe.revisions.latest("number")
    return parse_pipe_spec(live.spec).windows


def window_lines(*, pipe: Pipe, now: datetime) -> list[WindowSummary]:
    """Return one line for each window, by name."""
    windows = windows_of(pipe)
    rows = FactRow.objects.filter(
        pipe_id=pipe.id,
        bucket__gte=bucket_at(now - LATE_OVER),
        node__in=[window_node(name) for name in windows],
        fact=Fact.SENT,
        detail=LATE,
    )
    late = dict(rows.values_list("node").annotate(n=Sum("count")).order_by())
    return [WindowSummary(name, window, late.get(window_node(name), 0)) for name, window in sorted(windows.items())]


def key_from(window: WindowSpec, texts: Sequence[str]) -> list[Any]:
    """Parse the values of a key: JSON, or text if it is not JSON.

    Raises WindowKeyError if their number differs from that of the window's paths.
    """
    if len(texts) != len(window.by):
        paths = ", ".join(window.by) or "no path"
        raise WindowKeyError(
            f"needs {len(window.by)} value{'s' * (len(window.by) != 1)}, for {paths}, got {len(texts)}"
        )
    return [_value_of(text) for text in texts]


def _value_of(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def current_of(*, pipe: Pipe, name: str, window: WindowSpec, by: Sequence[Any]) -> dict[str, Any]:
    """Read the values of a key's open windows from Kafka: window, by, as_of, open (start, end, events, values of each).

    Raises RecordUnavailableError.
    """
    current: dict[str, Any] = {"window": name, "by": dict(zip(window.by, by, strict=True)), "as_of": None, "open": []}
    topic = Topic.objects.filter(cell_id=pipe.cell_id, purpose="panes").order_by("-generation").first()
    if topic is None:
        return current
    key = key_digest(pipe.id, name, CompiledTap(name, window).definition, key_values(list(by)))
    record = newest_of_key(topic.name, digest_partition(key, topic.partitions), key)
    value = record.value() if record is not None else None
    return current | json.loads(value) if value else current


__all__ = [
    "RecordUnavailableError",
    "WindowKeyError",
    "WindowSummary",
    "current_of",
    "key_from",
    "window_lines",
    "windows_of",
]
