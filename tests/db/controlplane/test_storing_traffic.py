"""Traffic by version that ingest reports is added to the counts of its hours once, and deleted after its retention."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.observer.trim import VERSIONS_FOR, trim
from dataplane.ledger.audit import AUDIT_VERSION, AuditRecord
from dataplane.ledger.version_traffic import VersionTraffic
from dataplane.schemas.types import SchemaType
from mgmt.models import Pipe, SubjectVersion, Tenant, User, VersionHour
from mgmt.registry.drafts import SchemaDraft
from mgmt.services import register_version
from tests.db.controlplane.test_duplicate_audit_records import Observer
from tests.db.mgmt.registry_schemas import V1, V2

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = int(NOON.timestamp()) // 3_600


@pytest.fixture
def pipe(pipe: Pipe, tenant: Tenant, alice: User, charlie: User) -> Pipe:
    """Pipe of a tenant with two versions of a subject; another tenant has a subject of the same name."""
    for schema in (V1, V2):
        registered(tenant, alice, schema)
    registered(charlie.memberships.get().tenant, charlie, V1)
    return pipe


def registered(tenant: Tenant, author: User, schema: object) -> SubjectVersion:
    draft = SchemaDraft(SchemaType.AVRO, json.dumps(schema))
    return register_version(tenant=tenant, subject="orders@eu", draft=draft, author=author)[0]


def told(pipe: str, number: int = 1, *, hour: int = HOUR, accepted: int = 0, rejected: int = 0) -> VersionTraffic:
    return VersionTraffic(pipe, "shop", f"orders@eu@{number}", hour, accepted, rejected)


def audit(sequence: int, *reports: VersionTraffic, writer: str = "ingest-1") -> AuditRecord:
    return AuditRecord(
        AUDIT_VERSION, "", writer, "ingest", 1, [], [], [], [], run="a", sequence=sequence, traffic=list(reports)
    )


def counts() -> dict[tuple[int, int], tuple[int, int]]:
    rows = VersionHour.objects.values_list("version__number", "hour", "accepted", "rejected")
    return {(number, hour - HOUR): (accepted, rejected) for number, hour, accepted, rejected in rows}


def test_reports_are_added_up_by_version_and_hour(pipe: Pipe, tenant: Tenant):
    observer = Observer()
    observer.read(audit(1, told(pipe.id, accepted=2), told(pipe.id, 2, accepted=5), told(pipe.id, hour=HOUR + 1)))
    observer.read(audit(2, told(pipe.id, accepted=3, rejected=1)), audit(1, told(pipe.id, rejected=4), writer="i-2"))
    assert counts() == {(1, 0): (5, 5), (2, 0): (5, 0), (1, 1): (0, 0)}
    assert {row.version.subject.tenant for row in VersionHour.objects.all()} == {tenant}
    assert {row.source.name for row in VersionHour.objects.all()} == {"shop"}


def test_report_that_was_sent_twice_counts_once(pipe: Pipe):
    observer = Observer()
    observer.read(audit(1, told(pipe.id, accepted=1)), audit(1, told(pipe.id, accepted=1)))
    observer.again().read(audit(1, told(pipe.id, accepted=1)))
    assert counts() == {(1, 0): (1, 0)}


def test_unknown_names_do_not_stop_the_observer(pipe: Pipe):
    hostile = [
        VersionTraffic(pipe.id, "shop", version, HOUR, 1, 1)
        for version in (
            "",
            "@",
            "orders@eu",
            "orders@eu@",
            "orders@eu@9",
            "orders@eu@-1",
            "orders@eu@" + "1" * 40,
            "\x00@1",
        )
    ]
    others = [VersionTraffic("pipe_unknown", "s\x00" * 99, "orders@eu@1", HOUR, 1, 1)]
    unknown = [VersionTraffic(pipe.id, "other", "orders@eu@1", HOUR, 1, 1)]
    Observer().read(audit(1, *hostile, *others, *unknown, told(pipe.id, 2, accepted=1)))
    assert counts() == {(2, 0): (1, 0)}


def test_counts_are_deleted_after_their_retention(pipe: Pipe):
    old = HOUR - int(VERSIONS_FOR.total_seconds()) // 3_600 - 1
    Observer().read(audit(1, told(pipe.id, hour=old, accepted=1), told(pipe.id, accepted=1)))
    trim(NOON, attempts_keep_h=1, seals_keep_d=1, ends_keep=timedelta(days=1))
    assert counts() == {(1, 0): (1, 0)}
