"""Rows of the management plane, and the rows in which the control plane and the Observer report back."""

from mgmt.models.admission import Admission
from mgmt.models.alerts import Alert, AlertChannel, Incident, Notice
from mgmt.models.cells import Cell, Heartbeat, Topic
from mgmt.models.control import ControlAction, Controller, Lease, Pause, Tick, Verdict
from mgmt.models.delivery import DeadLetter, HeldMessage, Listed, Move, OffsetSet
from mgmt.models.limits import LimitCount
from mgmt.models.lookups import LookupRow, LookupTable
from mgmt.models.patterns import FieldHour, FieldSample, Finding, PatternHour, PatternMark
from mgmt.models.pipes import ApiKey, Destination, Pipe, PipeRevision, Source, SourceSchema
from mgmt.models.quotas import TenantQuota
from mgmt.models.ramps import Ramp, RampStep
from mgmt.models.ratings import Rating
from mgmt.models.releases import Release, Rollout, RolloutStep
from mgmt.models.relocations import Relocation
from mgmt.models.scaling import ScaleGroup, ScaleSample
from mgmt.models.signals import LaneSignal
from mgmt.models.tenancy import Membership, Tenant, User
from mgmt.models.test_requests import DestinationTest
from mgmt.models.truth import (
    Attempt,
    AuditOffset,
    CloseMark,
    FactRow,
    LagRow,
    LateCount,
    LedgerDay,
    Passed,
    Reach,
    ReportRun,
    Seal,
)
from mgmt.models.usage import Usage

__all__ = [
    "Admission",
    "Alert",
    "AlertChannel",
    "ApiKey",
    "Attempt",
    "AuditOffset",
    "Cell",
    "CloseMark",
    "ControlAction",
    "Controller",
    "DeadLetter",
    "Destination",
    "DestinationTest",
    "FactRow",
    "FieldHour",
    "FieldSample",
    "Finding",
    "Heartbeat",
    "HeldMessage",
    "Incident",
    "LagRow",
    "LaneSignal",
    "LateCount",
    "Lease",
    "LedgerDay",
    "LimitCount",
    "Listed",
    "LookupRow",
    "LookupTable",
    "Membership",
    "Move",
    "Notice",
    "OffsetSet",
    "Passed",
    "PatternHour",
    "PatternMark",
    "Pause",
    "Pipe",
    "PipeRevision",
    "Ramp",
    "RampStep",
    "Rating",
    "Reach",
    "Release",
    "Relocation",
    "ReportRun",
    "Rollout",
    "RolloutStep",
    "ScaleGroup",
    "ScaleSample",
    "Seal",
    "Source",
    "SourceSchema",
    "Tenant",
    "TenantQuota",
    "Tick",
    "Topic",
    "Usage",
    "User",
    "Verdict",
]
