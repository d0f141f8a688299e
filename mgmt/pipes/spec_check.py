"""Checks of a spec before it is stored: its types and limits, and the addresses of its sources and destinations."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
from django.conf import settings
from django.utils import timezone

from dataplane.schemas.avro import tree_of
from dataplane.schemas.columns import column_of
from dataplane.schemas.types import SchemaRejectedError, SchemaType
from dataplane.spec import (
    ColumnsEncoding,
    DestinationSpec,
    KafkaSource,
    LakeDestination,
    OAuth2,
    PipeSpec,
    PostgresDestination,
    SpecError,
    UrlDestination,
    beginning_at,
    beginning_of,
    encoding_of,
    parse_pipe_spec,
)
from dataplane.spec.clusters import why_not_readable
from dataplane.spec.guard import FORBIDDEN_PORTS, parse_networks, why_forbidden, why_host_forbidden
from dataplane.spec.loops import is_own_url
from mgmt.models import SubjectVersion
from mgmt.registry.queries import find_version
from mgmt.sandbox import checked_spec_of

POSTGRES_PORT: Final = 5432


class DestinationForbidden(SpecError):  # noqa: N818 named for what the caller answers
    """The platform does not connect to this address. `path` names the field, `reason` says what is needed."""


def check_destinations(spec: PipeSpec) -> None:
    """Raise DestinationForbidden for the first address of the spec that is not permitted."""
    for name, destination in spec.destinations.items():
        for field, url in _urls(destination):
            check_outbound(f"$.destinations.{name}.{field}", url)
        if isinstance(destination, PostgresDestination):
            _check_database(f"$.destinations.{name}", destination)
        if isinstance(destination, LakeDestination) and destination.root not in (None, *settings.PENSTOCK_LAKES):
            wanted = f"needs one of the platform's stores, {', '.join(settings.PENSTOCK_LAKES)}"
            raise DestinationForbidden(f"$.destinations.{name}.root", wanted)


def check_beginnings(spec: PipeSpec, now: datetime) -> None:
    """Raise SpecError for a destination that is to start with events of the future."""
    for name, to in spec.destinations.items():
        at = beginning_at(text) if (text := beginning_of(to)) else None
        if at is not None and at > now:
            raise SpecError(f"$.destinations.{name}.from", f"needs a time in the past, got {text}")


def check_sources(tenant_id: str, spec: PipeSpec) -> None:
    """Raise SpecError for a Kafka source that this tenant may not read."""
    for name, source in spec.sources.items():
        if isinstance(source, KafkaSource) and (
            why := why_not_readable(settings.PENSTOCK_KAFKA_CLUSTERS, source, tenant_id)
        ):
            raise SpecError(f"$.sources.{name}.{why[0]}", why[1])


def check_encodings(tenant_id: str, spec: PipeSpec) -> None:
    """Raise SpecError for an encoding whose subject or version the tenant's schema registry lacks, or is not Avro."""
    for name, to in spec.destinations.items():
        if (encoding := encoding_of(to)) is None:
            continue
        path = f"$.destinations.{name}.encoding"
        try:
            found = find_version(tenant_id, encoding.subject, encoding.version)
        except SubjectVersion.DoesNotExist:
            if SubjectVersion.objects.filter(subject__tenant=tenant_id, subject__name=encoding.subject).exists():
                reason = f"needs a registered version of {encoding.subject}, got {encoding.version}"
                raise SpecError(f"{path}.version", reason) from None
            reason = f"needs a subject of your schema registry, got {encoding.subject}"
            raise SpecError(f"{path}.subject", reason) from None
        if found.schema.type != SchemaType.AVRO:
            raise SpecError(
                f"{path}.version", f"needs an Avro schema, and version {found.number} is {found.schema.type}"
            )
        if isinstance(encoding, ColumnsEncoding):
            _check_columns(f"{path}.version", found.schema.document)


def _check_columns(path: str, document: str) -> None:
    """Raise SpecError for a registered schema that columns cannot have: too wide, or names that differ in case only."""
    try:
        column_of(tree_of(document))
    except SchemaRejectedError as exc:
        raise SpecError(path, exc.reason) from exc


def check_outbound(path: str, url: str) -> None:
    """Raise DestinationForbidden, naming the field, for a URL to which the platform does not connect."""
    allowed = parse_networks(settings.PENSTOCK_DESTINATION_ALLOW)
    if is_own_url(url, settings.PENSTOCK_OWN_INGEST):
        raise DestinationForbidden(path, "must not be the address of Penstock's own ingest: events would loop")
    if reason := why_forbidden(url, allowed, https_only=settings.PRODUCTION):
        raise DestinationForbidden(path, reason)


def _check_database(path: str, to: PostgresDestination) -> None:
    """Raise DestinationForbidden for a database to which the platform does not connect."""
    if reason := why_host_forbidden(to.host, parse_networks(settings.PENSTOCK_DESTINATION_ALLOW)):
        raise DestinationForbidden(f"{path}.host", reason)
    if to.port in FORBIDDEN_PORTS - {POSTGRES_PORT}:
        raise DestinationForbidden(f"{path}.port", f"needs a port that is used for Postgres, got {to.port}")
    if to.sslmode == "disable" and settings.PRODUCTION:
        raise DestinationForbidden(f"{path}.sslmode", "needs verify-full")


def _urls(destination: DestinationSpec) -> Iterator[tuple[str, str]]:
    if isinstance(destination, UrlDestination):
        yield "url", destination.url
    if isinstance(destination.auth, OAuth2):
        yield "auth.token_url", destination.auth.token_url


_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def checked_spec(document: Mapping[str, Any], *, owner: str = "") -> PipeSpec:
    """Parse and check a document. Raises SpecError, also for a spec that parses but cannot be stored or published.

    A sandbox worker checks it first, for `owner`, because the cost of expressions and patterns is up to their author.
    Raises DestinationForbidden for a destination to which no lane would connect; SandboxRefused.
    """
    spec = checked_spec_of(document, owner=owner)
    try:
        text = msgspec.json.encode(spec)
        whole = parse_pipe_spec(text) == spec  # infinity, for one, is written as null
    except (OverflowError, UnicodeEncodeError, RecursionError) as exc:
        raise SpecError(
            "$", "contains a value that JSON cannot represent: an unpaired surrogate, or too many levels of nesting"
        ) from exc
    if not whole or _NUL.search(text):
        raise SpecError("$", "must not contain infinite numbers or the character U+0000")
    check_destinations(spec)
    check_beginnings(spec, timezone.now())
    return spec
