"""Shadow runs, and the driver's reports of them."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from dataplane.ledger.units import position_of
from dataplane.tables.shadows import SHADOW_VERSION, FieldDifference, ShadowProgress, ShadowSample
from mgmt.models import Pipe, Shadow
from mgmt.services import ShadowRequest, start_shadow

NOW: Final = datetime(2026, 11, 27, 12, 0, 30, tzinfo=UTC)
INGEST: Final = "penstock.c1.ingest.g1/0"
FILTER: Final = {"op": "filter", "when": "body.total > 0"}


def a_draft(pipe: Pipe) -> dict[str, Any]:
    """Return the newest spec of the pipe with a filter step."""
    spec: dict[str, Any] = pipe.revisions.latest("number").spec
    return {**spec, "normalize": [FILTER]}


def a_shadow(pipe: Pipe, *, now: datetime = NOW, draft: dict[str, Any] | None = None, **changes: Any) -> Shadow:
    """Start a run of a draft of a published pipe."""
    based_on = pipe.revisions.latest("number").number
    request = ShadowRequest(**changes)
    return start_shadow(pipe=pipe, spec=draft or a_draft(pipe), based_on=based_on, request=request, by=None, now=now)


def a_report(shadow: Shadow, **changes: Any) -> ShadowProgress:
    """Return a report of the driver after half of 200 records."""
    fields: dict[str, Any] = {
        "version": SHADOW_VERSION,
        "shadow": shadow.id,
        "at_us": int(NOW.timestamp()) * 1_000_000,
        "reached": {INGEST: 1_100},
        "ends": {INGEST: 1_200},
        "read": 100,
        "events": 80,
        "units": {"crm": {"equal": 60, "different": 10, "only_live": 5, "only_shadow": 3, "not_sent": 2}},
        "fields": {"crm": {"total": 9, "lines.*.sku": 1}},
        "rejected": {"step": 4},
        "samples": [
            ShadowSample("different", "crm", position_of(1, 0, 1_050), 0, [FieldDifference("total", '"12"', "12")]),
            ShadowSample("only_shadow", "crm", position_of(1, 0, 1_060), 2),
            ShadowSample("only_live", "crm", position_of(1, 0, 1_070), 0, [], "filter"),
        ],
        "cost_events": 4,
        "live_cpu_us": 200,
        "shadow_cpu_us": 300,
        "compared_until_us": int((NOW - timedelta(seconds=3)).timestamp()) * 1_000_000,
    }
    return ShadowProgress(**fields | changes)
