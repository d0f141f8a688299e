"""What a new pipe may start from: a spec but for its URLs, with an event that shows what it does. Pure data."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from mgmt.console.editor.draft import URL_TO_COME, Draft, draft_from_spec


@dataclass(frozen=True)
class Start:
    """One of them. `document` has URL_TO_COME wherever a URL of one's own is to be filled in."""

    name: str
    title: str
    words: str
    pipe: str
    document: Mapping[str, Any]
    sample: Mapping[str, Any]


_HTTP: Final = {"type": "http", "url": URL_TO_COME}
STARTS: Final = (
    Start(
        name="failed-builds",
        title="Failed builds",
        words="Of all builds only those that failed go to your endpoint, with the fields that matter.",
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
    Start(
        name="big-orders",
        title="Orders, big ones to two places",
        words="Every order goes to the books; one over 1000 goes to the sales team as well.",
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
    Start(
        name="personal-data",
        title="Without personal data",
        words="Names and addresses are taken out, the mail address becomes a hash that still tells people apart.",
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
    Start(
        name="keep-everything",
        title="Keep everything",
        words="Into a lake for questions of later, and a Kafka topic for readers of now. It needs no URL.",
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


def start_named(name: str) -> Start | None:
    """The start of that name; None, which is blank, for any other."""
    return _BY_NAME.get(name)


def draft_of(start: Start) -> Draft:
    """The draft that it fills in; its URLs are empty still."""
    draft = draft_from_spec(start.pipe, start.document)
    rows = tuple(replace(row, url="") for row in draft.destinations)
    return replace(draft, destinations=rows).with_sample(json.dumps(start.sample, indent=2))
