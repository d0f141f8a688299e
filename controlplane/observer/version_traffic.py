"""Store the traffic by schema version that ingest reports, in the transaction that moves the offset."""

from collections.abc import Iterable
from typing import Final

from controlplane.observer.columns import execute_in_columns
from controlplane.observer.merge import clean
from dataplane.ledger.version_traffic import VersionTraffic
from mgmt.models import Source, SubjectVersion

_ADD: Final = """
INSERT INTO mgmt_versionhour AS known (source_id, version_id, "hour", accepted, rejected)
SELECT source_id, version_id, "hour", sum(accepted), sum(rejected)
FROM unnest(%s::bigint[], %s::bigint[], %s::int[], %s::bigint[], %s::bigint[])
    AS t(source_id, version_id, "hour", accepted, rejected)
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
ON CONFLICT (version_id, source_id, "hour") DO UPDATE
SET accepted = known.accepted + EXCLUDED.accepted, rejected = known.rejected + EXCLUDED.rejected
"""


def add_traffic(reports: Iterable[VersionTraffic]) -> None:
    """Add reports to the counts of their hours. Reports of unknown sources and versions are skipped."""
    found = [(clean(one.pipe, 32), clean(one.source, 40), *_version_of(one), one) for one in reports]
    if not found:
        return
    sources = {
        (row.pipe_id, row.name): (row.pk, row.pipe.tenant_id)
        for row in Source.objects.filter(pipe__in={pipe for pipe, *_ in found}).select_related("pipe")
    }
    named = SubjectVersion.objects.filter(
        subject__tenant__in={tenant for _, tenant in sources.values()},
        subject__name__in={subject for _, _, subject, *_ in found},
        number__in={number for *_, number, _ in found},
    )
    rows = named.values_list("subject__tenant_id", "subject__name", "number", "pk")
    versions = {(tenant, subject, number): pk for tenant, subject, number, pk in rows}
    counts = []
    for pipe, source, subject, number, one in found:
        source_id, tenant = sources.get((pipe, source), (0, ""))
        if version_id := versions.get((tenant, subject, number)):
            counts.append((source_id, version_id, one.hour, one.accepted, one.rejected))
    execute_in_columns(_ADD, counts)


def _version_of(report: VersionTraffic) -> tuple[str, int]:
    subject, _, number = report.version.rpartition("@")
    return clean(subject, 255), int(number) if number.isdecimal() and len(number) < 9 else 0
