"""Models of the management plane, and of the rows in which the control plane and the Observer report back."""

from mgmt.alerts.models import Alert, AlertChannel, Incident, Notification
from mgmt.audit.models import AuditEntry
from mgmt.cells.models.capacity_results import CapacityResult
from mgmt.cells.models.cells import Cell, Heartbeat, Topic
from mgmt.cells.models.control import CellVerdict, ControlAction, Controller, Lease, Pause, TaskRun
from mgmt.cells.models.kafka import KafkaCheck
from mgmt.cells.models.pipe_migrations import PipeMigration
from mgmt.cells.models.releases import Release, Rollout, RolloutStep
from mgmt.cells.models.scaling import ScaleGroup, ScaleSample
from mgmt.cells.models.signals import LaneSignal
from mgmt.deliveries.models import DeadLetter, DestinationHealth, HeldMessage, ListedMessage, OffsetSet, Redrive
from mgmt.delivery_tests.models import DestinationTest
from mgmt.event_types.models import EventType, SourceEventTypes, VersionHour
from mgmt.idempotency.models import IdempotentResponse
from mgmt.ledger.models import (
    AttemptCount,
    AuditOffset,
    CloseMark,
    DeliveryAttempt,
    FactRow,
    HighOffset,
    LagRow,
    LateCount,
    LedgerDay,
    PartitionWatch,
    PipeRollup,
    ReportRun,
    RollupMark,
    Seal,
    SettledOffset,
)
from mgmt.lookups.models import LookupRow, LookupTable
from mgmt.operational_events.models import OperationalEvent
from mgmt.patterns.models import (
    FieldHour,
    FieldSample,
    Finding,
    IgnoredField,
    NumberState,
    PatternHour,
    PatternMark,
)
from mgmt.pipes.models import ApiKey, Destination, Pipe, PipeRevision, Source, SourceSchema
from mgmt.portal.models import PortalLink
from mgmt.quotas.models import TenantQuota
from mgmt.ramps.models import Admission, Ramp, RampStep
from mgmt.registry.models import CatalogueLink, RegistryDefault, SchemaText, Subject, SubjectVersion
from mgmt.rejections.models import Rejection, RejectionMinute
from mgmt.replays.models import Backfill, Replay
from mgmt.sequences.models import SequenceBreakRow
from mgmt.shadows.models import Shadow
from mgmt.sso.models import SsoConnection, SsoDomain, UsedAssertion
from mgmt.tenancy.models import Invitation, LimitCount, Membership, Tenant, User
from mgmt.tokens.models import ApiToken, ServiceAccount
from mgmt.usage.models import Usage
from mgmt.webhook_sources.models import SourceWebhook

__all__ = [
    "Admission",
    "Alert",
    "AlertChannel",
    "ApiKey",
    "ApiToken",
    "AttemptCount",
    "AuditEntry",
    "AuditOffset",
    "Backfill",
    "CapacityResult",
    "CatalogueLink",
    "Cell",
    "CellVerdict",
    "CloseMark",
    "ControlAction",
    "Controller",
    "DeadLetter",
    "DeliveryAttempt",
    "Destination",
    "DestinationHealth",
    "DestinationTest",
    "EventType",
    "FactRow",
    "FieldHour",
    "FieldSample",
    "Finding",
    "Heartbeat",
    "HeldMessage",
    "HighOffset",
    "IdempotentResponse",
    "IgnoredField",
    "Incident",
    "Invitation",
    "KafkaCheck",
    "LagRow",
    "LaneSignal",
    "LateCount",
    "Lease",
    "LedgerDay",
    "LimitCount",
    "ListedMessage",
    "LookupRow",
    "LookupTable",
    "Membership",
    "Notification",
    "NumberState",
    "OffsetSet",
    "OperationalEvent",
    "PartitionWatch",
    "PatternHour",
    "PatternMark",
    "Pause",
    "Pipe",
    "PipeMigration",
    "PipeRevision",
    "PipeRollup",
    "PortalLink",
    "Ramp",
    "RampStep",
    "Redrive",
    "RegistryDefault",
    "Rejection",
    "RejectionMinute",
    "Release",
    "Replay",
    "ReportRun",
    "Rollout",
    "RolloutStep",
    "RollupMark",
    "ScaleGroup",
    "ScaleSample",
    "SchemaText",
    "Seal",
    "SequenceBreakRow",
    "ServiceAccount",
    "SettledOffset",
    "Shadow",
    "Source",
    "SourceEventTypes",
    "SourceSchema",
    "SourceWebhook",
    "SsoConnection",
    "SsoDomain",
    "Subject",
    "SubjectVersion",
    "TaskRun",
    "Tenant",
    "TenantQuota",
    "Topic",
    "Usage",
    "UsedAssertion",
    "User",
    "VersionHour",
]
