"""Templates for new pipes: a spec without URLs, with a sample event. Pure data."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from mgmt.pipes.editor.destination_row import URL_TO_COME
from mgmt.pipes.editor.draft import Draft, draft_from_spec


@dataclass(frozen=True)
class PipeTemplate:
    """Template of a pipe. `document` has URL_TO_COME wherever the user must enter a URL."""

    name: str
    title: str
    words: str
    pipe: str
    document: Mapping[str, Any]
    sample: Mapping[str, Any]


_HTTP: Final = {"type": "http", "url": URL_TO_COME}
STARTS: Final = (
    PipeTemplate(
        name="failed-builds",
        title="Failed builds",
        words="Send only failed builds to your endpoint, with the relevant fields.",
        pipe="failed builds",
        document={
            "version": 1,
            "sources": {"builds": {"type": "http", "event_time": "finished_at", "key": "repository", "id": "id"}},
            "normalize": [
                {"op": "filter", "when": 'body.result == "failed"'},
                {"op": "keep", "fields": ["id", "repository", "branch", "url", "finished_at"]},
            ],
            "destinations": {"chat": _HTTP},
        },
        sample={
            "id": "build-8412",
            "repository": "shop/checkout",
            "branch": "main",
            "result": "failed",
            "finished_at": "2026-03-14T09:26:53Z",
            "url": "https://ci.example.com/builds/8412",
            "log": "12 of 340 tests failed",
        },
    ),
    PipeTemplate(
        name="big-orders",
        title="Route large orders",
        words="Send every order to accounting, and orders over 1000 to the sales team as well.",
        pipe="orders",
        document={
            "version": 1,
            "sources": {"shop": {"type": "http", "event_time": "created_at", "key": "customer", "id": "id"}},
            "routes": {
                "mode": "first",
                "rules": [{"when": "double(body.total) > 1000.0", "to": ["books", "sales"]}],
                "otherwise": ["books"],
            },
            "destinations": {"books": _HTTP, "sales": _HTTP},
        },
        sample={
            "id": "ord-4711",
            "created_at": "2026-03-14T09:26:53Z",
            "customer": "c-42",
            "total": 1299.9,
            "lines": [{"sku": "A-1", "count": 2}, {"sku": "B-7", "count": 1}],
        },
    ),
    PipeTemplate(
        name="personal-data",
        title="Remove personal data",
        words="Remove names, mask phone numbers and IP addresses, and replace e-mail addresses by a hash.",
        pipe="visits",
        document={
            "version": 1,
            "sources": {"web": {"type": "http", "event_time": "at"}},
            "normalize": [
                {"op": "mask", "path": "person.email", "how": "hash"},
                {"op": "mask", "path": "person.phone", "how": "partial"},
                {"op": "mask", "path": "ip", "how": "redact"},
                {"op": "remove", "path": "person.name"},
            ],
            "destinations": {"analysis": _HTTP},
        },
        sample={
            "at": "2026-03-14T09:26:53Z",
            "page": "/prices",
            "ip": "203.0.113.9",
            "person": {"name": "Ada Lovelace", "email": "ada@example.com", "phone": "+44 20 7946 0958"},
        },
    ),
    PipeTemplate(
        name="keep-everything",
        title="Archive all events",
        words="Store events in a lake for later analysis and in a Kafka topic for live consumers. Needs no URL.",
        pipe="everything",
        document={
            "version": 1,
            "sources": {"web": {"type": "http", "event_time": "at", "key": "device"}},
            "destinations": {"lake": {"type": "lake"}, "readers": {"type": "topic"}},
        },
        sample={"at": "2026-03-14T09:26:53Z", "device": "d-17", "reading": {"celsius": 21.5, "battery": 0.83}},
    ),
)
_BY_NAME: Final = {start.name: start for start in STARTS}


def template_named(name: str) -> PipeTemplate | None:
    """Return the template with this name; None (a blank pipe) for any other."""
    return _BY_NAME.get(name)


def draft_of(start: PipeTemplate) -> Draft:
    """Return the draft of a template, with empty URLs."""
    draft = draft_from_spec(start.pipe, start.document)
    rows = tuple(replace(row, url="") for row in draft.destinations)
    return replace(draft, destinations=rows).with_sample(json.dumps(start.sample, indent=2))
