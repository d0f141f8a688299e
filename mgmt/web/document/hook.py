"""Postprocessing hook of drf-spectacular: completes the OpenAPI document."""

from pathlib import Path
from typing import Any, Final

import yaml

from mgmt.web.document.fields import describe, operations_of
from mgmt.web.document.headers import add_headers
from mgmt.web.document.spec_types import spec_components
from mgmt.web.reference import GROUPS, group_of, place_of

_FOLDER: Final = Path(__file__).parent


def complete(result: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
    """Return the document with tags, descriptions, examples, headers, spec types, ingest and webhooks."""
    components = result["components"]["schemas"]
    components |= spec_components()
    for part in ("ingest", "webhooks"):
        loaded = yaml.safe_load((_FOLDER / f"{part}.yaml").read_text())
        components |= loaded["schemas"]
        result["components"].setdefault("securitySchemes", {}).update(loaded.get("securitySchemes", {}))
        result["paths"] |= loaded.get("paths", {})
        if "webhooks" in loaded:
            result["webhooks"] = loaded["webhooks"]
    result["components"]["schemas"] = dict(sorted(components.items()))
    _remove_tokens_of_staff(result)
    _tag(result)
    describe(result)
    add_headers(result)
    return result


def _remove_tokens_of_staff(document: dict[str, Any]) -> None:
    """Remove API tokens from the sign-in of staff operations, which answer 404 to them (`StaffView`)."""
    for path, operations in document["paths"].items():
        if place_of(path).startswith("/staff/"):
            for operation in operations.values():
                operation["security"] = [one for one in operation["security"] if "token" not in one]


def _tag(document: dict[str, Any]) -> None:
    """Give each operation the tag of its group, and a summary for lists of operations."""
    used = set()
    for path, operations in document["paths"].items():
        title = group_of(place_of(path))
        used.add(title)
        for operation in operations.values():
            operation["tags"] = [title]
    for operation in operations_of(document):
        operation.setdefault("summary", operation["operationId"].replace("_", " ").capitalize())
    used |= {tag for one in document["webhooks"].values() for tag in one["post"]["tags"]}
    document["tags"] = [
        {"name": title, **({"description": words} if words else {})} for title, words, _ in GROUPS if title in used
    ]
