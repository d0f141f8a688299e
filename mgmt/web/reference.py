"""Reference page of the API, docs/reference/api.md, from the OpenAPI document. Pure; `make reference` writes it."""

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

import yaml

_HEAD: Final = """# API

Generated from [openapi.yaml](../openapi.yaml) by `make reference`; do not edit this page. The document has all fields
of bodies and responses, with their meanings.

The console and the API read the same queries: a number is the same in both. Pages of the console show the matching call
under "Show as curl".

- **Sign in** with an [API token](../api-tokens.md), with Basic authentication, or with the session of the console and
  `X-CSRFToken`. A row of another tenant returns 404, as a missing one does. `role-too-low` (403) names the role
  that an operation needs, and `scope-too-low` the scope.
- **Errors** are `application/problem+json` (RFC 9457). `code` is stable, and `type` is the URL of its help page.
- **Parameters** are checked: one that an operation does not have, or a value out of range, is refused with 400.
- **Pages**: follow `next` until it is null. `limit` is at most 200.
- **Limits**: 1,200 requests per minute and token, and 1,200 of a user without token; 120 of a user that read messages
  from Kafka (messages and tail), 120 that read the event log, and 20 comparisons of a draft.
- **Retries**: send `Idempotency-Key` with a POST, such as a UUID, and repeat the request with the same key until it
  gets a response. It changes state once: for 24 hours a repetition gets the first response, with
  `Idempotent-Replayed: true`. A refused request leaves its key unused; a key with a different request is
  `idempotency-key-reused` (422).
- **Units** are in the names: `_us` is microseconds, `_s` seconds, `_bytes` bytes. Times are UTC. A `minute` is the
  number of minutes since 1970-01-01T00:00Z.

In the examples `$PENSTOCK` is the address of the console, `$INGEST` that of ingest, and `$TENANT`, `$PIPE` and the like
stand for ids. `GET /me/` returns the ids of your tenants, and `$PENSTOCK_TOKEN` is a token.
"""
# Title, introduction, and the beginnings of the paths, of which the longest that fits wins.
GROUPS: Final[tuple[tuple[str, str, tuple[str, ...]], ...]] = (
    (
        "Events",
        "Sent to ingest, whose address and API keys are those of a pipe's sources.",
        ("/v1/",),
    ),
    ("Deliveries", "Requests that Penstock sends to your endpoints.", ()),
    ("You and your tenants", "", ("/me/", "/tenants/{tenant}/members/", "/tenants/{tenant}/quotas/")),
    (
        "API tokens and service accounts",
        "",
        ("/tenants/{tenant}/tokens/", "/tenants/{tenant}/service-accounts/"),
    ),
    (
        "Overview",
        "What the home page shows.",
        ("/tenants/{tenant}/summary/", "/tenants/{tenant}/pipes/", "/tenants/{tenant}/undelivered/"),
    ),
    ("Pipes", "", ("/pipes/",)),
    (
        "Revisions and ramps",
        "",
        ("/pipes/{pipe}/revisions/", "/pipes/{pipe}/compare/", "/pipes/{pipe}/admission/"),
    ),
    ("Sources, schemas and keys", "", ("/pipes/{pipe}/sources/", "/pipes/{pipe}/keys/")),
    ("Destinations", "", ("/pipes/{pipe}/destinations/", "/pipes/{pipe}/standings/", "/destination-tests/")),
    (
        "Minutes, loss and lag",
        "Where the messages of each minute are, and how long they took.",
        ("/pipes/{pipe}/minutes/", "/pipes/{pipe}/loss", "/pipes/{pipe}/lag/", "/pipes/{pipe}/timing/"),
    ),
    (
        "Messages and attempts",
        "",
        (
            "/pipes/{pipe}/messages/",
            "/pipes/{pipe}/events/",
            "/tenants/{tenant}/messages/",
            "/pipes/{pipe}/attempts/",
            "/pipes/{pipe}/tail/",
        ),
    ),
    (
        "Undelivered messages",
        "A *move* is a redrive of dead letters or a release of held messages.",
        (
            "/pipes/{pipe}/undelivered/",
            "/pipes/{pipe}/waiting/",
            "/pipes/{pipe}/dead-letters/",
            "/pipes/{pipe}/held-messages/",
            "/pipes/{pipe}/moves/",
        ),
    ),
    ("Alerts and channels", "", ("/alerts/", "/pipes/{pipe}/alerts/", "/tenants/{tenant}/alert-channels/")),
    ("Windows and patterns", "", ("/pipes/{pipe}/windows/", "/pipes/{pipe}/patterns/")),
    ("Look-up tables", "", ("/lookup-tables/",)),
    (
        "Schema registry",
        "The wire API of Confluent's Schema Registry is at `/registry/`: see [the guide](../schema-registry.md).",
        ("/schemas/", "/tenants/{tenant}/schemas/"),
    ),
    ("Usage", "", ("/pipes/{pipe}/usage/", "/tenants/{tenant}/usage/")),
    (
        "Staff",
        "For users who operate the platform, in a session of the console; others, and API tokens, get 404. `$SESSION`"
        " and `$CSRF` are the values of the cookies `penstock_session` and `penstock_csrf`.",
        ("/staff/",),
    ),
    ("Errors", "", ("/problems/",)),
    ("Other", "", ("/",)),
)
_PREFIX: Final = "/api/v1"
_METHODS: Final = ("get", "post", "put", "patch", "delete")
_SPEC: Final = {
    "sources": {"shop": {}},
    "destinations": {"crm": {"type": "http", "url": "https://crm.example.com/in"}},
}
_SAMPLES: Final[Mapping[str, Any]] = {
    "PipeSpec": _SPEC,
    "DryRunIn": {"spec": _SPEC, "event": {"total": 150}},
    "RevisionIn": {"based_on": 1, "spec": _SPEC},
    "DestinationTestIn": {"destination": "crm", "spec": _SPEC, "event": {"total": 150}},
    "ChannelIn": {"kind": "mail", "target": "ops@example.com"},
    "SchemaDraftIn": {
        "subject": "refunds-value",
        "type": "AVRO",
        "schema": {"type": "record", "name": "Refund", "fields": [{"name": "total", "type": "double"}]},
    },
    "PatchedQuotasIn": {"limits": {"events_per_s": 500}, "reason": "contract of November"},
    "WebhookIn": {"preset": "github", "secret": "the-secret-that-github-shows"},
    "SsoIn": {"issuer": "https://login.acme.example", "client_id": "penstock", "client_secret": "..."},
    "date-time": "2026-01-31T12:00:00Z",
    "string": "...",
    "integer": 1,
    "number": 1,
    "boolean": True,
    "array": [],
    "object": {},
}


def reference(document: Mapping[str, Any]) -> str:
    """Return the page: each operation with its parameters and a curl command, by group."""
    by_group: dict[str, list[str]] = {title: [] for title, _, _ in GROUPS}
    for path, operations in document["paths"].items():
        place = place_of(path)
        for method in _METHODS:
            if method in operations and place != "/schema/":
                by_group[group_of(place)].append(_operation(document, place, method, operations[method]))
    parts = [_HEAD]
    for title, words, _ in GROUPS:
        if by_group[title]:
            parts += [f"## {title}\n", *([f"{words}\n"] if words else []), *by_group[title]]
    return "\n".join(parts)


def place_of(path: str) -> str:
    """Return a path of the API without its prefix."""
    return path.removeprefix(_PREFIX)


def group_of(place: str) -> str:
    """Return the title of the group of a path."""
    fits = [(len(start), title) for title, _, starts in GROUPS for start in starts if place.startswith(start)]
    return max(fits)[1]


def _operation(document: Mapping[str, Any], place: str, method: str, operation: Mapping[str, Any]) -> str:
    query = [one["name"] for one in operation.get("parameters", []) if one["in"] == "query"]
    words = " ".join(operation.get("description", "").split())
    takes = f"\n\nParameters: {', '.join(f'`{name}`' for name in query)}." if query else ""
    command = " \\\n  ".join(_curl(document, place, method, operation))
    return f"### {method.upper()} {place}\n\n{words}{takes}\n\n```\n{command}\n```\n"


def _curl(document: Mapping[str, Any], place: str, method: str, operation: Mapping[str, Any]) -> Iterator[str]:
    wanted = [one for one in operation.get("parameters", []) if one["in"] == "query" and one.get("required")]
    examples = {one["name"]: one.get("example") or _sample(document, one["schema"]) for one in wanted}
    query = f"?{urlencode(examples)}" if wanted else ""
    verb = "" if method == "get" else f" -X {method.upper()}"
    sign_in = _sign_in(operation.get("security", []), changes=method != "get")
    if "servers" in operation:  # ingest
        key = ' -H "Authorization: Bearer $PENSTOCK_KEY"' if operation["security"] else ""
        yield f'curl -sS{verb} "$INGEST{_address(place)}"{key}'
    else:
        yield f'curl -sS{sign_in}{verb} "$PENSTOCK{_PREFIX}{_address(place)}{query}"'
    if "text/event-stream" in operation["responses"].get("200", {}).get("content", {}):
        yield '-N -H "Accept: text/event-stream"'
    content = operation.get("requestBody", {}).get("content", {})
    if "application/json" in content:
        taken = content["application/json"]
        body = taken.get("example") or _sample(document, taken["schema"])
        yield '-H "Content-Type: application/json"'
        yield f"-d {shlex.quote(json.dumps(body))}"
    elif content:
        yield f'-H "Content-Type: {next(iter(content))}"'
        yield "--data-binary @rows.csv"


def _sign_in(security: Sequence[Mapping[str, Any]], *, changes: bool) -> str:
    """Return curl's arguments for a token, or else for a session; "" if the operation needs no sign-in."""
    schemes = {name for one in security for name in one}
    if "token" in schemes:
        return ' -H "Authorization: Bearer $PENSTOCK_TOKEN"'
    if "session" not in schemes:
        return ""
    csrf = ' -H "X-CSRFToken: $CSRF" -H "Origin: $PENSTOCK"' if changes else ""
    return f' -b "penstock_session=$SESSION; penstock_csrf=$CSRF"{csrf}'


def _address(place: str) -> str:
    parts = (f"${part[1:-1].upper()}" if part.startswith("{") else part for part in place.split("/"))
    return "/".join(parts)


def _sample(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    """Return the example of a schema, or a value with its required fields."""
    if examples := schema.get("examples"):
        return examples[0]
    if ref := schema.get("$ref", ""):
        name = ref.rpartition("/")[2]
        return _SAMPLES.get(name) or _sample(document, document["components"]["schemas"][name])
    if "enum" in schema:
        return schema["enum"][0]
    if "oneOf" in schema or "allOf" in schema:
        return _sample(document, (schema.get("oneOf") or schema["allOf"])[0])
    if "properties" in schema:
        names = schema.get("required") or list(schema["properties"])[:1]
        return {name: _sample(document, schema["properties"][name]) for name in names}
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    return _SAMPLES.get(schema.get("format", ""), _SAMPLES[kind])


if __name__ == "__main__":
    sys.stdout.write(reference(yaml.safe_load(sys.stdin)))
