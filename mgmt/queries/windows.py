"""A pipe's windows: what they are, how many events came too late for them, and what they say now of a key."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Sum

from dataplane.ledger.facts import LATE, Fact
from dataplane.names import window_node
from dataplane.plan.taps import Tapping, key_digest, key_values, pane_place
from dataplane.spec import parse_pipe_spec
from dataplane.spec.windows import Running, Session, Sliding, Tumbling, Window
from mgmt.models import FactRow, Pipe, PipeRevision, Topic
from mgmt.queries.records import RecordsAway, newest_of_key
from mgmt.queries.span import bucket_at

LATE_OVER: Final = timedelta(days=1)


class WrongKey(Exception):  # noqa: N818 named for what the caller answers
    """Not a value for each path of the window's key."""


@dataclass(frozen=True)
class WindowLine:
    """A window of the live revision, and how many events of the last day were too late for it."""

    name: str
    window: Window
    late: int

    @property
    def words(self) -> str:
        """Its span and its key."""
        key = f" by {', '.join(self.window.by)}" if self.window.by else ""
        match self.window.span:
            case Tumbling(size_s):
                return f"every {size_s} s{key}"
            case Sliding(size_s, every_s):
                return f"the last {size_s} s, every {every_s} s{key}"
            case Session(gap_s):
                return f"sessions with gaps below {gap_s} s{key}"
            case Running(every_s):
                return f"since the beginning, told every {every_s} s{key}"


def windows_of(pipe: Pipe) -> Mapping[str, Window]:
    """Those of the live revision, of the newest one before there is a live one."""
    live = pipe.revisions.filter(state=PipeRevision.State.LIVE).first() or pipe.revisions.latest("number")
    return parse_pipe_spec(live.spec).windows


def window_lines(*, pipe: Pipe, now: datetime) -> list[WindowLine]:
    """One line for each window, by name."""
    windows = windows_of(pipe)
    rows = FactRow.objects.filter(
        pipe_id=pipe.id,
        bucket__gte=bucket_at(now - LATE_OVER),
        node__in=[window_node(name) for name in windows],
        fact=Fact.SENT,
        detail=LATE,
    )
    late = dict(rows.values_list("node").annotate(n=Sum("count")).order_by())
    return [WindowLine(name, window, late.get(window_node(name), 0)) for name, window in sorted(windows.items())]


def key_from(window: Window, texts: Sequence[str]) -> list[Any]:
    """The values of a key as they are typed: JSON, or else text. Raises WrongKey."""
    if len(texts) != len(window.by):
        paths = ", ".join(window.by) or "no path"
        raise WrongKey(f"needs {len(window.by)} value{'s' * (len(window.by) != 1)}, for {paths}, got {len(texts)}")
    return [_value_of(text) for text in texts]


def _value_of(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def current_of(*, pipe: Pipe, name: str, window: Window, by: Sequence[Any]) -> dict[str, Any]:
    """What the open windows of a key say: window, by, as_of, open (start, end, events, values of each). Asks Kafka.

    Raises RecordsAway.
    """
    said: dict[str, Any] = {"window": name, "by": dict(zip(window.by, by, strict=True)), "as_of": None, "open": []}
    topic = Topic.objects.filter(cell_id=pipe.cell_id, purpose="panes").order_by("-generation").first()
    if topic is None:
        return said
    key = key_digest(pipe.id, name, Tapping(name, window).definition, key_values(list(by)))
    record = newest_of_key(topic.name, pane_place(key, topic.partitions), key)
    value = record.value() if record is not None else None
    return said | json.loads(value) if value else said


__all__ = ["RecordsAway", "WindowLine", "WrongKey", "current_of", "key_from", "window_lines", "windows_of"]
