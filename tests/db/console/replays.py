"""Rows of replays as the service and the driver's reports store them, and the URLs of their pages."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.test import Client
from django.urls import reverse

from mgmt.models import Pipe, Replay
from tests.db.console.truth import plain

MakeReplay = Callable[..., Replay]


def ended(now: datetime, **fields: Any) -> dict[str, Any]:
    """Return the fields of a replay that has read all of its range."""
    start, end = now - timedelta(minutes=50), now - timedelta(minutes=10)
    return {
        "state": "done", "state_since": end, "started_at": start, "progress_at": end, "finished_at": end, "read": 4_052,
        "asked": 4_052, "ends": {"t/0": 4_052}, "reached": {"t/0": 4_052}, "units": {"crm": 4_012}, "filtered": 40,
        "size_bytes": 3_100_000,
    } | fields  # fmt: skip


def stored(bins: dict[str, dict[str, int]], now: datetime) -> dict[str, Any]:
    """Return the fields of a stored result."""
    asked = sum(sum(counts.values()) for counts in bins.values())
    return {"result": {"asked": asked, "bins": bins, "nodes": []}, "result_at": now}


def form_of(**fields: Any) -> dict[str, Any]:
    """Return the fields of a valid form."""
    return {
        "since": "2026-07-01T08:00", "until": "2026-07-01T20:00", "destinations": ["crm"], "rate_per_s": "50",
        "revision": "live", "where": "", "keys": "", "ids": "", "action": "review",
    } | fields  # fmt: skip


def list_of(pipe: Pipe) -> str:
    return reverse("console:replays", args=[pipe.id])


def new_of(pipe: Pipe) -> str:
    return reverse("console:new_replay", args=[pipe.id])


def page_of(row: Replay, action: str = "replay") -> str:
    return reverse(f"console:{action}", args=[row.pipe_id, row.id])


def text_of(browser: Client, url: str, **query: str) -> str:
    answer = browser.get(url, query)
    assert answer.status_code == 200
    return plain(answer.content.decode())
