"""The `http` destination of a spec: its URL, limits, retries, authentication and response rules, without secrets."""

import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from msgspec import UNSET, Meta, Struct, UnsetType, field

from dataplane.expr.patterns import compile_pattern
from dataplane.spec.beginning import Beginning, check_beginning
from dataplane.spec.encoding import AvroEncoding
from dataplane.spec.errors import SpecError
from dataplane.spec.template import RequestTemplate, check_template

Url = Annotated[str, Meta(min_length=8, max_length=2_000)]
# (?!\n): `$` alone lets a final newline pass.
StatusRange = Annotated[str, Meta(pattern=r"^([1-5]xx|[1-5]\d\d|[1-5]\d\d-[1-5]\d\d)(?!\n)$")]
HeaderName = Annotated[str, Meta(min_length=1, max_length=100)]
HeaderValue = Annotated[str, Meta(max_length=2_000)]

Delays = Annotated[tuple[Annotated[int, Meta(ge=1, le=86_400)], ...], Meta(min_length=1, max_length=20)]

MAX_INSTRUCTIONS: Final = 500  # of all patterns' programs; RE2 takes up to 9 ns per instruction and byte of a response
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2
# Headers set by us or libcurl, and hop-by-hop ones (RFC 9110, 7.6.1): a destination's own headers cannot replace them.
_RESERVED: Final = frozenset(
    {"accept-encoding", "connection", "content-length", "content-type", "expect", "host", "keep-alive",
     "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding",
     "traceparent", "upgrade", "user-agent"}
)  # fmt: skip
_RESERVED_PREFIXES: Final = ("webhook-", "penstock-", "ce-")


class RetryPolicy(Struct, forbid_unknown_fields=True, frozen=True):
    """Retries of a destination: `local_tries` attempts at once, then global retries until `span_s` has passed.

    delays_s: waits before the global retries; the last one applies to all further ones
    """

    local_tries: Annotated[int, Meta(ge=1, le=10)] = 3
    span_s: Annotated[int, Meta(ge=1, le=7 * 86_400)] = 86_400
    delays_s: Delays = (10, 60, 300, 1_800, 7_200, 18_000, 36_000)


class ResponseMatch(Struct, forbid_unknown_fields=True, frozen=True):
    """Responses that a rule matches: a status (`408`), a class (`5xx`) or a range (`500-504`), and text in the body.

    `body` is an RE2 pattern, searched for in the first 16 kB of the response.
    """

    status: StatusRange
    body: Annotated[str, Meta(min_length=1, max_length=500)] | None = None


class ResponseRule(Struct, forbid_unknown_fields=True, frozen=True):
    """Rule for responses. The first matching rule decides; without one, the default outcome applies."""

    when: ResponseMatch
    then: Literal["delivered", "retry", "dead", "throttle"]


MaxEvents = Annotated[int, Meta(ge=1, le=1_000)]
MaxBytes = Annotated[int, Meta(ge=1_024, le=4 * 1024 * 1024)]
MaxWaitMs = Annotated[int, Meta(ge=0, le=30_000)]


class BatchLimits(Struct, forbid_unknown_fields=True, frozen=True):
    """Limits of a request with several messages."""

    max_events: MaxEvents = 100
    max_bytes: MaxBytes = 256 * 1024
    max_wait_ms: MaxWaitMs = 1_000


class BatchSettings(BatchLimits, frozen=True):
    """Several messages in one request, sent when a limit is reached or the oldest has waited `max_wait_ms`."""

    format: Literal["json-array", "ndjson", "cloudevents"] = "json-array"


class NoAuth(Struct, tag="none", tag_field="type", forbid_unknown_fields=True, frozen=True):
    """No authentication besides the signature."""


class HeaderAuth(Struct, tag="header", tag_field="type", forbid_unknown_fields=True, frozen=True):
    """Secret value in the header `name`."""

    name: HeaderName


class BasicAuth(Struct, tag="basic", tag_field="type", forbid_unknown_fields=True, frozen=True):
    """User name and secret password (RFC 7617)."""

    username: Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^:\x00-\x1f\x7f]*(?!\n)$")]


class BearerAuth(Struct, tag="bearer", tag_field="type", forbid_unknown_fields=True, frozen=True):
    """Secret token as `Authorization: Bearer` (RFC 6750)."""


class OAuth2(Struct, tag="oauth2", tag_field="type", forbid_unknown_fields=True, frozen=True):
    """Token from the client credentials grant (RFC 6749, 4.4), renewed before it expires."""

    token_url: Url
    client_id: Annotated[str, Meta(min_length=1, max_length=500)]
    scope: Annotated[str, Meta(max_length=500)] = ""


class MutualTls(Struct, tag="mtls", tag_field="type", forbid_unknown_fields=True, frozen=True):
    """Mutual TLS: Penstock presents a client certificate."""


Auth = NoAuth | HeaderAuth | BasicAuth | BearerAuth | OAuth2 | MutualTls


class HttpDestination(Struct, tag="http", tag_field="type", forbid_unknown_fields=True, frozen=True):
    """HTTP endpoint that receives one POST per message or batch, signed as in Standard Webhooks.

    ordered:    later messages of a key wait while an earlier one has not ended
    after_dead: with `ordered`: a key continues after a dead letter (`go-on`), or is held
    template:   path, headers and body of a request, computed from the message
    encoding:   Avro in place of JSON
    forward_headers: names of headers of the original request to send, of those that the source keeps
    original_body: send the body as the sender posted it, also a form or XML, which other destinations get as JSON
    """

    url: Url
    timeout_s: Annotated[float, Meta(gt=0, le=30)] = 15.0
    concurrency: Annotated[int, Meta(ge=1, le=1_000)] = 64
    retry: RetryPolicy = RetryPolicy()
    rate_per_s: Annotated[float, Meta(gt=0, le=100_000)] | None = None
    rules: Annotated[list[ResponseRule], Meta(max_length=20)] = []
    ordered: bool = False
    after_dead: Literal["go-on", "hold"] = "go-on"
    batch: BatchSettings | None = None
    auth: Auth = NoAuth()
    headers: Annotated[dict[HeaderName, HeaderValue], Meta(max_length=20)] = {}
    template: RequestTemplate | None = None
    encoding: AvroEncoding | UnsetType = UNSET  # omitted unless set: earlier releases of the data plane refuse it
    forward_headers: Annotated[list[HeaderName], Meta(max_length=20)] | UnsetType = UNSET
    original_body: bool | UnsetType = UNSET
    from_: Beginning | UnsetType = field(default=UNSET, name="from")  # omitted unless set, as `encoding`


def check_http(path: str, destination: HttpDestination) -> None:
    """Check what types cannot express. Raises SpecError, with the field under `path`."""
    check_url(f"{path}.url", destination.url)
    check_beginning(f"{path}.from", destination.from_)
    instructions = 0
    for number, rule in enumerate(destination.rules):
        _check_status(f"{path}.rules[{number}].when.status", rule.when.status)
        if rule.when.body is not None:
            instructions += _check_pattern(f"{path}.rules[{number}].when.body", rule.when.body)
    if instructions > MAX_INSTRUCTIONS:
        raise SpecError(f"{path}.rules", "needs shorter patterns: together they take too long to match")
    _check_headers(f"{path}.headers", destination.headers)
    if destination.template is not None:
        _check_template(f"{path}.template", destination, destination.template)
    if destination.encoding is not UNSET and destination.batch is not None:
        raise SpecError(f"{path}.encoding", "must be left out if the destination has a batch, which is JSON")
    if destination.forward_headers:
        _check_forwarded(f"{path}.forward_headers", destination, destination.forward_headers)
    if destination.original_body:
        _check_sent_as_received(f"{path}.original_body", destination)
    match destination.auth:
        case HeaderAuth(name):
            _check_header_name(f"{path}.auth.name", name)
            template = destination.template or RequestTemplate()
            if name.lower() in map(str.lower, [*destination.headers, *template.headers]):
                raise SpecError(f"{path}.auth.name", f"must not be one of `headers`, got {name}")
        case OAuth2(token_url):
            check_url(f"{path}.auth.token_url", token_url)


def _check_forwarded(path: str, destination: HttpDestination, names: list[str]) -> None:
    """Check that a header of the original request takes the place of no other. Raises SpecError."""
    if destination.batch is not None:
        raise SpecError(path, "must be left out if the destination has a batch: each message has its own headers")
    template, auth = destination.template or RequestTemplate(), destination.auth
    taken = {*map(str.lower, destination.headers), *map(str.lower, template.headers)}
    taken |= {auth.name.lower()} if isinstance(auth, HeaderAuth) else set()
    for name in names:
        _check_own_header(path, name)
        if name.lower() in taken:
            raise SpecError(path, f"needs each header once, got {name}")
        taken.add(name.lower())


def _check_sent_as_received(path: str, destination: HttpDestination) -> None:
    """Check that the destination sends the body of the message. Raises SpecError."""
    has_own_body = destination.template is not None and destination.template.body is not None
    for name, is_set in (
        ("a batch", destination.batch is not None),
        ("an encoding", destination.encoding is not UNSET),
        ("a template with a body", has_own_body),
    ):
        if is_set:
            raise SpecError(path, f"must be left out if the destination has {name}, which replaces the original body")


def _check_pattern(path: str, pattern: str) -> int:
    """Return the number of instructions of the pattern's program. Raises SpecError if RE2 refuses the pattern."""
    try:
        return int(compile_pattern(pattern).programsize)
    except ValueError as exc:
        raise SpecError(path, f"needs an RE2 pattern: {exc}") from exc


def check_url(path: str, url: str) -> None:
    """Check that every URL parser reads the URL alike. Raises SpecError."""
    try:
        parts = urlsplit(url)
        port_ok = parts.port is None or 0 < parts.port < 65_536
    except ValueError as exc:
        raise SpecError(path, f"needs a URL, got one that does not parse: {exc}") from exc
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_ok:
        raise SpecError(path, "needs an absolute http or https URL with a host")
    if parts.username is not None or parts.password is not None:
        raise SpecError(path, "must not contain a user name or password")
    if parts.fragment or any(c.isspace() or ord(c) < 32 or c == "\\" for c in url):
        raise SpecError(path, "must not contain a fragment, white space, a backslash or control characters")


def status_bounds(status: str) -> tuple[int, int]:
    """Return the lowest and the highest status of `408`, `5xx` or `500-504`."""
    low, _, high = status.partition("-")
    return int(low.replace("x", "0")), int((high or low).replace("x", "9"))


def _check_status(path: str, status: str) -> None:
    low, high = status_bounds(status)
    if low > high:
        raise SpecError(path, f"needs the lower status first, got {status}")


def _check_template(path: str, destination: HttpDestination, template: RequestTemplate) -> None:
    if destination.batch is not None:
        raise SpecError(path, "must be left out if the destination has a batch")
    check_template(path, template)
    constant = set(map(str.lower, destination.headers))
    for name in template.headers:
        _check_own_header(f"{path}.headers", name)
        if name.lower() in constant:
            raise SpecError(f"{path}.headers", f"must not be one of the constant headers, got {name}")


def _check_headers(path: str, headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        _check_own_header(path, name)
        if not all(" " <= c <= "~" for c in value):
            raise SpecError(path, f"needs printable ASCII as the value of {name}")


def _check_own_header(path: str, name: str) -> None:
    _check_header_name(path, name)
    if name.lower() in ("authorization", "cookie"):
        raise SpecError(path, f"must not contain {name}: a secret belongs to the destination's auth")


def _check_header_name(path: str, name: str) -> None:
    if not _TOKEN.fullmatch(name):
        raise SpecError(path, f"needs a header name (RFC 9110), got {name!r}")
    if name.lower() in _RESERVED or name.lower().startswith(_RESERVED_PREFIXES):
        raise SpecError(path, f"must not be {name}, which Penstock sets")
