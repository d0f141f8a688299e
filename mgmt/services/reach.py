"""Which addresses destinations may have, checked when a spec is saved; lanes check again at each connect."""

from collections.abc import Iterator
from typing import Final

from django.conf import settings

from dataplane.spec import Destination, HttpDestination, LakeDestination, OAuth2, PipeSpec, SpecError
from dataplane.spec.guard import parse_networks, why_forbidden

SERVED: Final = {"sources": ("http",), "destinations": ("http", "lake", "topic", "table")}


class DestinationForbidden(SpecError):  # noqa: N818 named for what the caller answers
    """The platform will not connect there. `path` names the field, `reason` what was needed."""


def check_destinations(spec: PipeSpec) -> None:
    """Raise DestinationForbidden for the first address where no destination may be.

    Raise SpecError for a kind of source or destination that lanes of this release do not serve.
    """
    for field, parts in (("sources", spec.sources), ("destinations", spec.destinations)):
        for name, part in parts.items():
            if (kind := str(part.__struct_config__.tag)) not in SERVED[field]:
                raise SpecError(f"$.{field}.{name}.type", f"needs one of {', '.join(SERVED[field])}, got {kind}")
    for name, destination in spec.destinations.items():
        for field, url in _urls(destination):
            check_outbound(f"$.destinations.{name}.{field}", url)
        if isinstance(destination, LakeDestination) and destination.root not in (None, *settings.PENSTOCK_LAKES):
            wanted = f"needs one of the platform's stores, {', '.join(settings.PENSTOCK_LAKES)}"
            raise DestinationForbidden(f"$.destinations.{name}.root", wanted)


def check_outbound(path: str, url: str) -> None:
    """Raise DestinationForbidden, naming the field, for a URL that the platform will not open."""
    allowed = parse_networks(settings.PENSTOCK_DESTINATION_ALLOW)
    if reason := why_forbidden(url, allowed, https_only=settings.PRODUCTION):
        raise DestinationForbidden(path, reason)


def _urls(destination: Destination) -> Iterator[tuple[str, str]]:
    if isinstance(destination, HttpDestination):
        yield "url", destination.url
    if isinstance(destination.auth, OAuth2):
        yield "auth.token_url", destination.auth.token_url
