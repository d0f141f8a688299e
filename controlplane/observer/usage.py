"""Add usage to the rows of its day, in the transaction that moves the offset, so that it counts once."""

from collections import Counter
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Final

from controlplane.observer.columns import execute_in_columns
from controlplane.observer.merge import UsageId, clean
from dataplane.causes import Cause
from dataplane.ledger.usage import NO_PIPE, PipeShare
from mgmt.alerts.services.alerts import FailureGroup

EPOCH: Final = date(1970, 1, 1)
REFUSED_LEAST: Final = 10  # in one report of ingest; fewer are a short burst, which its sender repeats
_ADD: Final = """
INSERT INTO mgmt_usage AS known (pipe_id, day, cell, kind, units, size_bytes, cpu_us, refused)
SELECT * FROM unnest(%s::varchar[], %s::date[], %s::varchar[], %s::varchar[], %s::bigint[], %s::bigint[], %s::bigint[],
                     %s::bigint[])
ON CONFLICT (pipe_id, day, cell, kind) DO UPDATE SET
    units = known.units + EXCLUDED.units,
    size_bytes = known.size_bytes + EXCLUDED.size_bytes,
    cpu_us = known.cpu_us + EXCLUDED.cpu_us,
    refused = known.refused + EXCLUDED.refused
"""


def add_usage(usage: Mapping[UsageId, PipeShare]) -> None:
    """Add usage in one statement, in a fixed order, so that Observers of several partitions do not deadlock."""
    execute_in_columns(_ADD, [(*_row_key(key), *usage[key]) for key in sorted(usage)])


def refusals(usage: Mapping[UsageId, PipeShare], now: datetime) -> list[FailureGroup]:
    """Return an alert for each pipe of which ingest refused at least REFUSED_LEAST events because of the quota."""
    refused: Counter[str] = Counter()
    for key, spent in usage.items():
        refused[clean(key.pipe, 32)] += spent.refused
    return [
        FailureGroup(
            pipe, "", Cause.QUOTA_EXCEEDED, count, now, {"reason": f"{count} events were refused within a minute"}
        )
        for pipe, count in refused.items()
        if count >= REFUSED_LEAST
    ]


def _row_key(key: UsageId) -> tuple[str | None, date, str, str]:
    pipe = None if key.pipe == NO_PIPE else clean(key.pipe, 32)
    return pipe, EPOCH + timedelta(days=key.day), clean(key.cell, 20), clean(key.kind, 16)
