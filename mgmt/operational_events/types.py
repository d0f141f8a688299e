"""Types of operational events, each with its sentence and the fields of its `data`. Pure.

Every member of a tenant may see these fields: they name no person but the one who resolved an alert, and contain no
secret and no part of a message. docs/reference/operational-events.md is generated from this table.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple


class OperationalType(NamedTuple):
    """Type of operational events. `words`: when it occurs; `fields`: those that `data` may contain."""

    words: str
    fields: tuple[str, ...] = ()


_ALERT: Final = ("alert", "destination", "cause", "status", "suspended", "count", "opened_at", "url")
_STATE: Final = ("state", "cause", "reason")
ALERT_OPENED: Final = "penstock.alert.opened"
ALERT_RESOLVED: Final = "penstock.alert.resolved"
REVISION_LIVE: Final = "penstock.revision.live"
OPERATIONAL_TYPES: Final[Mapping[str, OperationalType]] = {
    ALERT_OPENED: OperationalType("an alert opened", _ALERT),
    ALERT_RESOLVED: OperationalType("an alert was resolved", (*_ALERT, "resolved_at", "resolution")),
    "penstock.destination.paused": OperationalType("a destination was paused", ("destination", *_STATE)),
    "penstock.destination.removed": OperationalType("a destination was removed", ("destination", *_STATE)),
    "penstock.destination.resumed": OperationalType("a destination is active again", ("destination", *_STATE)),
    "penstock.destination.suspended": OperationalType("Penstock suspended a destination", ("destination", *_STATE)),
    "penstock.pipe.closed": OperationalType("a pipe was closed", _STATE),
    "penstock.pipe.created": OperationalType("a pipe was created"),
    "penstock.pipe.paused": OperationalType("a person or Penstock paused a pipe", _STATE),
    "penstock.pipe.reopened": OperationalType("a closed pipe was opened again", _STATE),
    "penstock.pipe.resumed": OperationalType("a paused pipe was resumed", _STATE),
    REVISION_LIVE: OperationalType("a revision takes all keys", ("revision",)),
    "penstock.revision.published": OperationalType("a revision was published", ("revision",)),
    "penstock.revision.rolled_back": OperationalType(
        "the ramp of a revision was rolled back", ("revision", "share", "reason")
    ),
}
# Types of the changes that the audit log records under these actions.
TYPE_OF_ACTION: Final[Mapping[str, str]] = {
    "destination.paused": "penstock.destination.paused",
    "destination.removed": "penstock.destination.removed",
    "destination.resumed": "penstock.destination.resumed",
    "destination.suspended": "penstock.destination.suspended",
    "pipe.closed": "penstock.pipe.closed",
    "pipe.created": "penstock.pipe.created",
    "pipe.paused": "penstock.pipe.paused",
    "pipe.reopened": "penstock.pipe.reopened",
    "pipe.resumed": "penstock.pipe.resumed",
    "ramp.rolled_back": "penstock.revision.rolled_back",
    "revision.keys_spread": "penstock.revision.published",
    "revision.published": "penstock.revision.published",
    "revision.reverted": "penstock.revision.published",
}
