"""Part of the OpenAPI document from which `penstock_client` is generated: the operations of the command line. Pure.

`make client` writes the client. Specs stay plain objects and states plain texts, so that a step or a state which the
server learns needs no new client. Problems are read in one place (penstock_cli.connection), not by each operation.
"""

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

OPERATIONS: Final = frozenset(
    {
        "add_alert_channel",
        "create_lookup_table",
        "create_pipe",
        "dry_run",
        "get_event_types",
        "get_me",
        "get_message",
        "get_pipe",
        "get_replay",
        "get_summary",
        "search_tenant_messages",
        "get_revision",
        "list_alert_channels",
        "list_destinations",
        "list_events",
        "list_lookup_rows",
        "list_lookup_tables",
        "list_pipe_summaries",
        "list_pipes",
        "list_sources",
        "list_subjects",
        "list_subject_versions",
        "publish_revision",
        "register_version",
        "rename_pipe",
        "search_message_bodies",
        "search_messages",
        "set_credential",
        "set_event_types",
        "start_replay",
    }
)
PLAIN_OBJECTS: Final = frozenset({"PipeSpec"})
_REF: Final = "#/components/schemas/"


def client_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document with the operations of the command line, their successful responses and their schemas."""
    paths = {}
    for path, methods in document["paths"].items():
        kept = {
            verb: _operation(one)
            for verb, one in methods.items()
            if isinstance(one, dict) and one.get("operationId") in OPERATIONS
        }
        if kept:
            paths[path] = kept
    schemas: dict[str, Any] = {}
    due = sorted(set(_references(paths)))
    while due:
        name = due.pop()
        if name in schemas:
            continue
        whole = document["components"]["schemas"][name]
        schemas[name] = {"type": "object", "additionalProperties": {}} if name in PLAIN_OBJECTS else _open(whole)
        due += _references(schemas[name])
    components = {"schemas": dict(sorted(schemas.items()))}
    return {"openapi": document["openapi"], "info": document["info"], "paths": paths, "components": components}


def digest_of(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the part of a document from which the client is generated."""
    return hashlib.sha256(json.dumps(client_document(document), sort_keys=True).encode()).hexdigest()


def _operation(one: Mapping[str, Any]) -> dict[str, Any]:
    parts = ("operationId", "description", "parameters", "requestBody")
    kept = {name: one[name] for name in parts if name in one}
    responses = {code: answer for code, answer in one["responses"].items() if code.startswith("2")}
    found: dict[str, Any] = _open(kept | {"tags": ["operations"], "responses": responses})
    return found


def _open(part: Any) -> Any:
    """Return a part without the lists of its texts' values: a value that the server learns must not stop a command."""
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
