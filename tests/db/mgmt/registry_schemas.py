"""Schemas of the registry's tests, and requests to its wire API."""

import json
from typing import Any, Final

from rest_framework.test import APIClient

WIRE: Final = "application/vnd.schemaregistry.v1+json"


def record(name: str = "com.shop.Order", /, **fields: Any) -> dict[str, Any]:
    """Return an Avro record. A field is its type, or a dict with `type` and further attributes."""
    namespace, _, short = name.rpartition(".")
    listed = [{"name": key, **(one if isinstance(one, dict) else {"type": one})} for key, one in fields.items()]
    found: dict[str, Any] = {"type": "record", "name": short, "fields": listed}
    return found | ({"namespace": namespace} if namespace else {})


V1: Final = record(id="string", total="double")
V2: Final = record(id="string", total="double", note={"type": ["null", "string"], "default": None})
BREAKING: Final = record(id="long", total="double", tax="double")


class WireClient:
    """Requests to the wire API in the form that stock clients send."""

    def __init__(self, client: APIClient, root: str = "/registry") -> None:
        self.client, self.root = client, root

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Send a request and return the response."""
        text = "" if body is None else json.dumps(body)
        return self.client.generic(method, f"{self.root}{path}", text, content_type=WIRE, headers=headers)

    def register(self, subject: str, schema: Any, **more: Any) -> Any:
        """Register a schema and return the response."""
        return self.send("POST", f"/subjects/{subject}/versions", {"schema": as_text(schema)} | more)


def as_text(schema: Any) -> str:
    """Return a schema as JSON text."""
    return schema if isinstance(schema, str) else json.dumps(schema)
