"""Rows of the management plane, and the rows in which the control plane and the Observer report back."""

from mgmt.models.cells import Cell, Heartbeat, Topic
from mgmt.models.pipes import ApiKey, Destination, Pipe, PipeRevision, Source
from mgmt.models.tenancy import Membership, Tenant, User
from mgmt.models.truth import Attempt, AuditOffset, CloseMark, FactRow, LagRow, LateCount, Passed, Reach, Seal

__all__ = [
    "ApiKey",
    "Attempt",
    "AuditOffset",
    "Cell",
    "CloseMark",
    "Destination",
    "FactRow",
    "Heartbeat",
    "LagRow",
    "LateCount",
    "Membership",
    "Passed",
    "Pipe",
    "PipeRevision",
    "Reach",
    "Seal",
    "Source",
    "Tenant",
    "Topic",
    "User",
]
