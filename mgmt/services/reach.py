"""Which addresses destinations may have, checked when a spec is saved; lanes check again at each connect."""

from collections.abc import Iterator

from django.conf import settings

from dataplane.spec import Destination, HttpDestination, KafkaSource, LakeDestination, OAuth2, PipeSpec, SpecError
from dataplane.spec.clusters import why_not_readable
from dataplane.spec.guard import parse_networks, why_forbidden
from dataplane.spec.loops import is_own_url


class DestinationForbidden(SpecError):  # noqa: N818 named for what the caller answers
    """The platform will not connect there. `path` names the field, `reason` what was needed."""


def check_destinations(spec: PipeSpec) -> None:
    """Raise DestinationForbidden for the first address where no destination may be."""
    for name, destination in spec.destinations.items():
        for field, url in _urls(destination):
            check_outbound(f"$.destinations.{name}.{field}", url)
        if isinstance(destination, LakeDestination) and destination.root not in (None, *settings.PENSTOCK_LAKES):
            wanted = f"needs one of the platform's stores, {', '.join(settings.PENSTOCK_LAKES)}"
            raise DestinationForbidden(f"$.destinations.{name}.root", wanted)


def check_sources(tenant_id: str, spec: PipeSpec) -> None:
    """Raise SpecError for a topic that this tenant may not read."""
    for name, source in spec.sources.items():
        if isinstance(source, KafkaSource) and (why := _unreadable(source, tenant_id)):
            raise SpecError(f"$.sources.{name}.{why[0]}", why[1])


def _unreadable(source: KafkaSource, tenant_id: str) -> tuple[str, str] | None:
    return why_not_readable(settings.PENSTOCK_KAFKA_CLUSTERS, source, tenant_id)


def check_outbound(path: str, url: str) -> None:
    """Raise DestinationForbidden, naming the field, for a URL that the platform will not open."""
    allowed = parse_networks(settings.PENSTOCK_DESTINATION_ALLOW)
    if is_own_url(url, settings.PENSTOCK_OWN_INGEST):
        raise DestinationForbidden(path, "needs another address than that of our own ingest: events would go round")
    if reason := why_forbidden(url, allowed, https_only=settings.PRODUCTION):
        raise DestinationForbidden(path, reason)


def _urls(destination: Destination) -> Iterator[tuple[str, str]]:
    if isinstance(destination, HttpDestination):
        yield "url", destination.url
    if isinstance(destination.auth, OAuth2):
        yield "auth.token_url", destination.auth.token_url
