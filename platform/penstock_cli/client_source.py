"""OpenAPI document as the generator of `penstock_client` needs it, with every operation. Pure.

`make client` writes the client. Specs stay plain objects and states plain texts, so that a step or a state which the
server learns needs no new client. Problems are read in one place (penstock_cli.connection), not by each operation: a
proxy in front of Penstock may answer 4xx and 5xx in any format. Their schemas are models of the client.
"""

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

PLAIN_OBJECTS: Final = frozenset({"PipeSpec"})
SENDERS: Final = "/v1/hooks/"
PROBLEMS: Final = ("ProblemOut", "EventProblemOut")
# The generator has one body type for an operation, so an operation becomes one for each media type of its request.
SUFFIXES: Final = {
    "application/json": "",
    "application/x-ndjson": "_as_lines",
    "application/avro": "_as_avro",
    "application/cloudevents+json": "_as_cloud_event",
    "application/cloudevents-batch+json": "_as_cloud_events",
    "text/csv": "_as_csv",
}
_BYTES: Final = {"type": "string", "format": "binary"}
_REF: Final = "#/components/schemas/"


def client_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document with all operations, their successful responses, and the schemas of these and of webhooks.

    Requests of webhook senders are left out: they are signed, and made by GitHub and the like.
    """
    paths: dict[str, Any] = {}
    for path, methods in document["paths"].items():
        if path.startswith(SENDERS):
            continue
        for verb, one in methods.items():
            for fragment, operation in _by_media_type(one):
                paths.setdefault(path + fragment, {})[verb] = _operation(operation)
    schemas: dict[str, Any] = {}
    due = sorted({*_references(paths), *_references(document.get("webhooks", {})), *PROBLEMS})
    while due:
        name = due.pop()
        if name in schemas:
            continue
        whole = document["components"]["schemas"][name]
        schemas[name] = {"type": "object", "additionalProperties": {}} if name in PLAIN_OBJECTS else _open(whole)
        due += _references(schemas[name])
    components = {"schemas": dict(sorted(schemas.items()))}
    return {"openapi": document["openapi"], "info": document["info"], "paths": paths, "components": components}


def operations_of(document: Mapping[str, Any]) -> set[str]:
    """Return the names of the operations of a client document."""
    return {one["operationId"] for methods in document["paths"].values() for one in methods.values()}


def digest_of(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the part of a document from which the client is generated."""
    return hashlib.sha256(json.dumps(client_document(document), sort_keys=True).encode()).hexdigest()


def _by_media_type(one: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the operation for each media type of its request, with the fragment that keeps its path apart.

    An HTTP client never sends a fragment.
    """
    content = one.get("requestBody", {}).get("content", {})
    if len(content) < 2:
        yield "", one
        return
    for media_type, body in content.items():
        suffix = SUFFIXES[media_type]
        request = {**one["requestBody"], "content": {media_type: _body(media_type, body)}}
        fragment = f"#{suffix.lstrip('_')}" if suffix else ""
        yield fragment, {**one, "operationId": one["operationId"] + suffix, "requestBody": request}


def _body(media_type: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a body that is not JSON as bytes: config.yaml has the generator send these as they are."""
    return body if media_type.endswith(("/json", "+json")) else {"schema": _BYTES}


def _operation(one: Mapping[str, Any]) -> dict[str, Any]:
    parts = ("operationId", "description", "parameters", "requestBody")
    kept = {name: one[name] for name in parts if name in one}
    responses = {code: answer for code, answer in one["responses"].items() if code.startswith("2")}
    found: dict[str, Any] = _open(kept | {"tags": ["operations"], "responses": responses})
    return found


def _open(part: Any) -> Any:
    """Return a part without the lists of its texts' values: a value that the server learns must not stop a program."""
    if isinstance(part, Mapping):
        return {name: _open(value) for name, value in part.items() if name != "enum" or not isinstance(value, list)}
    return [_open(value) for value in part] if isinstance(part, list) else part


def _references(part: Any) -> Iterator[str]:
    """Yield the names of the schemas to which a part of the document refers."""
    if isinstance(part, Mapping):
        target = part.get("$ref")
        if isinstance(target, str):
            yield target.removeprefix(_REF)
        for value in part.values():
            yield from _references(value)
    elif isinstance(part, list):
        for value in part:
            yield from _references(value)


def main() -> None:
    """Read the OpenAPI document from standard input; write the client's part, or with `--digest` its SHA-256."""
    import yaml

    document = yaml.load(sys.stdin, yaml.CSafeLoader)
    sys.stdout.write(digest_of(document) if "--digest" in sys.argv else json.dumps(client_document(document)))
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
