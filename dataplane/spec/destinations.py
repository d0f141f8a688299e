"""`Destination`: one of the kinds, told apart by `type`."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from dataplane.spec.destination import HttpDestination, OAuth2, check_http
from dataplane.spec.guard import plain_host
from dataplane.spec.kept import LakeDestination, TableDestination, TopicDestination, check_table

_PORTS: Final = {"http": 80, "https": 443}
Destination = HttpDestination | LakeDestination | TopicDestination | TableDestination


def check_destination(path: str, destination: Destination) -> None:
    """What types cannot say. Raises SpecError, naming the field under `path`."""
    match destination:
        case HttpDestination():
            check_http(path, destination)
        case TableDestination():
            check_table(path, destination)


def destination_of(config: Mapping[str, Any]) -> Destination:
    """A destination's part of a stored spec. Raises msgspec.ValidationError."""
    to: Destination = msgspec.convert(with_type(config), type=Destination)
    return to


def endpoint_of(to: Destination) -> str:
    """Return where a destination's credential is sent to: scheme, host and port of its URL, and its token URL if any.

    A stored credential belongs to one endpoint: whoever changes the endpoint enters it again.
    """
    if not isinstance(to, HttpDestination):
        return ""
    parts = urlsplit(to.url)
    port = parts.port or _PORTS[parts.scheme]
    origin = f"{parts.scheme}://{plain_host(parts.hostname or '')}:{port}"
    return f"{origin} {to.auth.token_url}" if isinstance(to.auth, OAuth2) else origin


def with_type(part: Any) -> Any:
    """A source's or destination's part of a document, with the type that is meant where none is named."""
    return {"type": "http", **part} if isinstance(part, Mapping) else part


def keeps_order(to: Destination) -> bool:
    """Whether messages of one key are to get there in the order in which they came."""
    return to.ordered or isinstance(to, TopicDestination)
