"""Targets of entries: kind, id and name of a changed row, as text."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from django.db.models import Model

from dataplane.spec.channels import host_of
from mgmt.models import (
    Alert,
    AlertChannel,
    ApiKey,
    ApiToken,
    Backfill,
    CatalogueLink,
    Cell,
    Destination,
    DestinationTest,
    IgnoredField,
    Invitation,
    LookupTable,
    Pipe,
    PipeRevision,
    PortalLink,
    Redrive,
    Replay,
    ServiceAccount,
    Shadow,
    Source,
    SourceSchema,
    SsoConnection,
    SsoDomain,
    Subject,
    SubjectVersion,
    Tenant,
    User,
)


class Target(NamedTuple):
    """Changed object: its kind, its id, and its name at that time."""

    kind: str
    id: str
    name: str


def _channel(row: AlertChannel) -> str:
    """Return the address; of a webhook only the host, because the path of some webhooks is a secret."""
    return host_of(row.target) if row.kind == AlertChannel.Kind.WEBHOOK else row.target


def _alert(row: Alert) -> str:
    return f"{row.cause} at {row.destination}" if row.destination else str(row.cause)


def _redrive(row: Redrive) -> str:
    return f"{row.total} messages to {row.destination}" if row.destination else f"{row.total} events"


_KINDS: Final[Mapping[type[Model], tuple[str, Callable[[Any], str]]]] = {
    Alert: ("alert", _alert),
    AlertChannel: ("channel", _channel),
    ApiKey: ("key", lambda row: row.label or f"{row.prefix}…"),
    ApiToken: ("token", lambda row: row.name),
    Backfill: ("backfill", lambda row: row.destination),
    CatalogueLink: ("catalogue link", str),
    Cell: ("cell", lambda row: row.id),
    Destination: ("destination", str),
    DestinationTest: ("delivery test", lambda row: row.destination),
    IgnoredField: ("field", str),
    Invitation: ("invitation", lambda row: row.email),
    LookupTable: ("table", str),
    Pipe: ("pipe", str),
    PipeRevision: ("revision", lambda row: f"revision {row.number}"),
    Redrive: ("redrive", _redrive),
    PortalLink: ("portal link", str),
    Replay: ("replay", lambda row: row.id),
    ServiceAccount: ("service account", str),
    Shadow: ("shadow run", lambda row: row.id),
    Source: ("source", str),
    SourceSchema: ("schema", lambda row: f"version {row.number} of source {row.source.name}"),
    SsoConnection: ("single sign-on", str),
    SsoDomain: ("domain", str),
    Subject: ("subject", str),
    SubjectVersion: ("version", lambda row: f"{row.subject.name} version {row.number}"),
    Tenant: ("tenant", str),
    User: ("user", lambda row: row.get_username()),
}


def target_of(target: Model | Target | tuple[str, str, str] | None) -> Target:
    """Return the target of an entry. Raises TypeError for a row of a kind without a name here."""
    if isinstance(target, tuple):
        return Target(*target)
    if target is None or target.__class__ not in _KINDS:
        raise TypeError(f"needs a row of a kind in mgmt.audit.targets, or kind, id and name; got {type(target)}")
    kind, name_of = _KINDS[target.__class__]
    return Target(kind, str(target.pk), name_of(target))
