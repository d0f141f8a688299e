"""AsyncAPI 3.0 document of a tenant's event types: how to reach each source, and what its events must fit. Pure."""

import json
import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from dataplane.names import EVENTS_PATH
from dataplane.schemas.types import SchemaType

# Schema formats of https://www.asyncapi.com/docs/reference/specification/v3.0.0#multiFormatSchemaObject
_FORMATS: Final = {
    SchemaType.AVRO: "application/vnd.apache.avro;version=1.9.0",
    SchemaType.JSON: "application/schema+json;version=draft-2020-12",
}
_TYPE_KEYS: Final = ("type", "fields", "items", "values")  # of Avro: they hold types


class CatalogueMessage(Struct, frozen=True):
    """One event type of a source, and the newest version of its subject. name: "" for the only type of the source."""

    name: str
    subject: str
    number: int
    kind: SchemaType
    document: str


class CatalogueSource(Struct, frozen=True):
    """A source with its event types. type_from: place of an event's type."""

    pipe: str
    pipe_name: str
    source: str
    type_from: str
    version: int
    messages: list[CatalogueMessage]


def asyncapi_document(*, title: str, ingest_url: str, sources: Iterable[CatalogueSource]) -> dict[str, Any]:
    """Return the document. Channels are sources; they share an address, and the API key selects the source."""
    found = list(sources)
    url = urlsplit(ingest_url)
    server = {"host": url.netloc, "protocol": url.scheme, "security": [{"$ref": "#/components/securitySchemes/apiKey"}]}
    return {
        "asyncapi": "3.0.0",
        "info": {"title": title, "version": str(sum(one.version for one in found))},
        "defaultContentType": "application/json",
        "servers": {"ingest": server},
        "channels": {_key(one): _channel(one) for one in found},
        "operations": {
            f"send.{_key(one)}": {"action": "send", "channel": {"$ref": f"#/channels/{_key(one)}"}} for one in found
        },
        "components": {
            "securitySchemes": {
                "apiKey": {"type": "http", "scheme": "bearer", "description": "An API key of the source."}
            }
        },
    }


def _key(one: CatalogueSource) -> str:
    return f"{one.pipe}.{one.source}"


def _channel(one: CatalogueSource) -> dict[str, Any]:
    return {
        "address": EVENTS_PATH,
        "title": f"{one.pipe_name}: {one.source}",
        "description": _how(one.type_from),
        "servers": [{"$ref": "#/servers/ingest"}],
        "messages": {_message_key(number, message): _message(message) for number, message in enumerate(one.messages)},
    }


def _how(type_from: str) -> str:
    kind, _, where = type_from.partition(":")
    return f"The {kind} {where} names the type of an event." if where else "All events have one type."


def _message_key(number: int, message: CatalogueMessage) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", f"{number + 1}-{message.name or 'event'}")


def _message(message: CatalogueMessage) -> dict[str, Any]:
    schema = json.loads(message.document)
    return {
        "name": message.name or message.subject,
        "title": f"{message.subject}, version {message.number}",
        "contentType": "application/json",
        "payload": {
            "schemaFormat": _FORMATS[message.kind],
            "schema": _with_namespaces(schema) if message.kind == SchemaType.AVRO else schema,
        },
    }


def _with_namespaces(schema: Any) -> Any:
    """Return an Avro schema whose full names are divided into name and namespace, as AsyncAPI's schema needs them."""
    if isinstance(schema, list):
        return [_with_namespaces(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _with_namespaces(one) if key in _TYPE_KEYS else one for key, one in schema.items()}
    namespace, _, short = str(schema.get("name", "")).rpartition(".")
    return found | ({"name": short, "namespace": namespace} if namespace else {})
