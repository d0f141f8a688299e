"""`DestinationSpec`: all types of destinations, distinguished by `type`."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET

from dataplane.spec.destination import HttpDestination, OAuth2, check_http
from dataplane.spec.encoding import Encoding
from dataplane.spec.guard import plain_host
from dataplane.spec.object_store import AwsAuth, S3Destination, check_object_store
from dataplane.spec.postgres import PostgresDestination, check_postgres
from dataplane.spec.storage import LakeDestination, TableDestination, TopicDestination, check_table, check_topic

_PORTS: Final = {"http": 80, "https": 443}
UrlDestination = HttpDestination | S3Destination  # requests to a URL, with a credential
RemoteDestination = UrlDestination | PostgresDestination  # of a customer, with a credential
DestinationSpec = RemoteDestination | LakeDestination | TopicDestination | TableDestination


def check_destination(path: str, destination: DestinationSpec) -> None:
    """Check what types cannot express. Raises SpecError, with the field under `path`."""
    match destination:
        case HttpDestination():
            check_http(path, destination)
        case S3Destination():
            check_object_store(path, destination)
        case PostgresDestination():
            check_postgres(path, destination)
        case TopicDestination():
            check_topic(path, destination)
        case TableDestination():
            check_table(path, destination)


def destination_of(config: Mapping[str, Any]) -> DestinationSpec:
    """Return the destination in a part of a stored spec. Raises msgspec.ValidationError if it is invalid."""
    to: DestinationSpec = msgspec.convert(with_type(config), type=DestinationSpec)
    return to


def endpoint_of(to: DestinationSpec) -> str:
    """Return the recipient of a destination's credential: scheme, host and port of its URL, and its token URL if any.

    For a bucket it also names the access key, because each has a secret of its own. For a database it names host, port,
    user, `sslmode` and a digest of its CAs: another CA could let another server pass for the host.

    A stored credential belongs to one endpoint: a change of the endpoint requires that it is entered again.
    """
    if isinstance(to, PostgresDestination):
        server = f"postgresql://{to.user}@{plain_host(to.host)}:{to.port} {to.sslmode}"
        return f"{server} {sha256(to.ca.encode()).hexdigest()}" if to.ca else server
    if not isinstance(to, UrlDestination):
        return ""
    parts = urlsplit(to.url)
    port = parts.port or _PORTS[parts.scheme]
    origin = f"{parts.scheme}://{plain_host(parts.hostname or '')}:{port}"
    match to.auth:
        case OAuth2(token_url):
            return f"{origin} {token_url}"
        case AwsAuth(access_key_id):
            return f"{origin} {access_key_id}"
    return origin


def with_type(part: Any) -> Any:
    """Return a source's or destination's part of a document, with the default type `http` if it has none."""
    return {"type": "http", **part} if isinstance(part, Mapping) else part


def encoding_of(to: DestinationSpec) -> Encoding | None:
    """Return the encoding of a destination's events; None for JSON."""
    if isinstance(to, TableDestination | S3Destination | PostgresDestination) or to.encoding is UNSET:
        return None
    return to.encoding


def beginning_of(to: DestinationSpec) -> str:
    """Return the `from` of a destination: EARLIEST or a time; "" if it starts with new events."""
    return to.from_ or "" if isinstance(to, HttpDestination | TopicDestination) else ""


def sends_original(to: DestinationSpec) -> bool:
    """Return True if a destination gets the bodies of forms and XML as they were received."""
    return isinstance(to, HttpDestination) and to.original_body is True


def keeps_newest(to: DestinationSpec) -> bool:
    """Return True if a destination keeps the last value of each key: an earlier event would replace a later one."""
    match to:
        case TopicDestination():
            return to.compacted is True
        case PostgresDestination():
            return to.ordered
    return False


def keeps_order(to: DestinationSpec) -> bool:
    """Return True if a destination needs the messages of a key in order of arrival."""
    return to.ordered or isinstance(to, TopicDestination)
