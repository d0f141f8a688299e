"""Track the audit records already counted: a writer numbers the records of each run, and a repeat keeps its number."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from controlplane.observer.columns import execute_in_columns
from controlplane.observer.merge import clean
from dataplane.ledger.audit import AuditRecord
from mgmt.models import ReportRun

_SAVE = """
INSERT INTO mgmt_reportrun AS known (audit_partition, cell, writer, run, sequence, at)
SELECT * FROM unnest(%s::int[], %s::varchar[], %s::varchar[], %s::varchar[], %s::bigint[], %s::timestamptz[])
ON CONFLICT (audit_partition, cell, writer, run) DO UPDATE SET sequence = EXCLUDED.sequence, at = EXCLUDED.at
"""


class RunId(NamedTuple):
    """One start of a writer, as it reports for one cell in one audit partition."""

    partition: int
    cell: str
    writer: str
    run: str


ReportRuns = dict[RunId, int]  # the sequence of the last record that was counted


def run_of(audit: AuditRecord, partition: int) -> RunId:
    """Return the run that an audit record belongs to."""
    return RunId(partition, clean(audit.cell, 20), clean(audit.writer, 60), clean(audit.run, 40))


def is_repeat(audit: AuditRecord, counted: int) -> bool:
    """Return True if the run's records up to `counted` include this one. Writers of an earlier release number none."""
    return bool(audit.run) and audit.sequence <= counted


def load_runs(partition: int) -> ReportRuns:
    """Return the last counted sequence of each run in an audit partition."""
    rows = ReportRun.objects.filter(audit_partition=partition)
    return {RunId(*row[:4]): row[4] for row in rows.values_list("audit_partition", "cell", "writer", "run", "sequence")}


def save_runs(counted: Mapping[RunId, int], now: datetime) -> None:
    """Store the counted sequences; call it in the transaction that stores the counts."""
    execute_in_columns(_SAVE, [(*run, counted[run], now) for run in sorted(counted)])
