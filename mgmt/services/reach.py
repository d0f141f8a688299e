"""Which addresses destinations may have, checked when a spec is saved; lanes check again at each connect."""

from collections.abc import Iterator

from django.conf import settings

from dataplane.spec import PipeSpec, SpecError
from dataplane.spec.destination import HttpDestination, OAuth2
from dataplane.spec.guard import parse_networks, why_forbidden


class DestinationForbidden(SpecError):  # noqa: N818 named for what the caller answers
    """The platform will not connect there. `path` names the field, `reason` what was needed."""


def check_destinations(spec: PipeSpec) -> None:
    """Raise DestinationForbidden for the first URL that leads where no destination may be."""
    for name, destination in spec.destinations.items():
        for field, url in _urls(destination):
            check_outbound(f"$.destinations.{name}.{field}", url)


def check_outbound(path: str, url: str) -> None:
    """Raise DestinationForbidden, naming the field, for a URL that the platform will not open."""
    allowed = parse_networks(settings.PENSTOCK_DESTINATION_ALLOW)
    if reason := why_forbidden(url, allowed, https_only=settings.PRODUCTION):
        raise DestinationForbidden(path, reason)


def _urls(destination: HttpDestination) -> Iterator[tuple[str, str]]:
    yield "url", destination.url
    if isinstance(destination.auth, OAuth2):
        yield "auth.token_url", destination.auth.token_url
