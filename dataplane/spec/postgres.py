"""The `postgres` destination of a spec: a table of a customer's own Postgres. Each message is one row."""

import re
from ipaddress import IPv6Address
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta, Struct, field

from dataplane.spec.checks import check_expression
from dataplane.spec.destination import BatchLimits, MaxBytes, MaxEvents, ResponseRule, RetryPolicy
from dataplane.spec.errors import SpecError
from dataplane.spec.steps import Expression
from dataplane.spec.template import RequestTemplate

Identifier = Annotated[str, Meta(min_length=1, max_length=63)]
MAX_IDENTIFIER_BYTES: Final = 63  # Postgres cuts longer ones off
MAX_COLUMNS: Final = 100
MAX_CA_CHARS: Final = 32 * 1024
# A name or an IPv4 address: no socket path, no list of hosts, no connection string.
_HOST: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]{0,252})")
_CERTIFICATE: Final = re.compile(r"-----BEGIN CERTIFICATE-----\s[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----")
DEFAULT_COLUMNS: Final = {
    "position": "meta.position",
    "child": "meta.child",
    "id": "meta.id",
    "event_time": "meta.event_time",
    "body": "body",
}

DEFAULT_KEY: Final = ("position", "child")


class RowSettings(BatchLimits, frozen=True):
    """Rows of one statement, inserted when a limit is reached or the oldest has waited `max_wait_ms`."""

    max_events: MaxEvents = 500
    max_bytes: MaxBytes = 1024 * 1024
    max_wait_ms: Annotated[int, Meta(ge=0, le=10_000)] = 500


class PostgresAuth(Struct, tag="postgres", tag_field="type", frozen=True):
    """User of a database; the password is the credential."""

    user: str


class PostgresDestination(Struct, tag="postgres", tag_field="type", forbid_unknown_fields=True, frozen=True):
    """Table of a Postgres database; each message becomes one row.

    host:        one host name or IP address
    user:        the user that may insert. Its password is stored as the destination's credential
    columns:     by name, an expression whose value Postgres converts to the column's type. In them `meta` also has
                 `position` and `child`, which together identify a message of the pipe
    key:         columns of a unique index; without any, rows are appended and a repeat is a second row
    on_conflict: for a row whose key the table has: `ignore` it, or `update` the other columns, in the order of each
                 event key
    sslmode:     `verify-full`: TLS, with the host's name in the certificate; `disable` only where plain HTTP is allowed
    ca:          certificates (PEM) of CAs to trust in place of the platform's
    batch:       limits of one statement
    """

    # Constant delivery settings, with the fields of HttpDestination.
    url: ClassVar[str] = ""
    rules: ClassVar[list[ResponseRule]] = []
    after_dead: ClassVar[str] = "go-on"
    headers: ClassVar[dict[str, str]] = {}
    template: ClassVar[RequestTemplate | None] = None

    host: Annotated[str, Meta(min_length=1, max_length=253)]
    database: Identifier
    user: Identifier
    table: Identifier
    port: Annotated[int, Meta(ge=1, le=65_535)] = 5432
    schema: Identifier = "public"
    columns: Annotated[dict[Identifier, Expression], Meta(min_length=1, max_length=MAX_COLUMNS)] = field(
        default_factory=DEFAULT_COLUMNS.copy
    )
    key: Annotated[tuple[Identifier, ...], Meta(max_length=10)] = DEFAULT_KEY
    on_conflict: Literal["ignore", "update"] = "ignore"
    sslmode: Literal["verify-full", "disable"] = "verify-full"
    ca: Annotated[str, Meta(max_length=MAX_CA_CHARS)] = ""
    batch: RowSettings = RowSettings()
    timeout_s: Annotated[float, Meta(gt=0, le=30)] = 8.0
    concurrency: Annotated[int, Meta(ge=1, le=16)] = 4
    rate_per_s: Annotated[float, Meta(gt=0, le=100_000)] | None = None
    retry: RetryPolicy = RetryPolicy()

    @property
    def auth(self) -> PostgresAuth:
        """Return the authentication of its connections."""
        return PostgresAuth(self.user)

    @property
    def ordered(self) -> bool:
        """Return True if rows are updated: a retry must not replace a newer row of its key."""
        return self.on_conflict == "update"


def check_postgres(path: str, to: PostgresDestination) -> None:
    """Check what types cannot express. Raises SpecError, with the field under `path`."""
    if not (_HOST.fullmatch(to.host) or _is_ipv6(to.host)):
        raise SpecError(f"{path}.host", "needs one host name or IP address, such as db.example.com")
    for name in ("database", "user", "schema", "table"):
        _check_identifier(f"{path}.{name}", getattr(to, name))
    for name, text in to.columns.items():
        _check_identifier(f"{path}.columns", name)
        check_expression(f"{path}.columns.{name}", text)
    if unknown := [name for name in to.key if name not in to.columns]:
        raise SpecError(f"{path}.key", f"needs names of columns, got {unknown[0]}")
    if len(set(to.key)) < len(to.key):
        raise SpecError(f"{path}.key", "needs each column once")
    if to.ordered and not 0 < len(to.key) < len(to.columns):
        raise SpecError(f"{path}.on_conflict", "needs a key, and a column outside of it to update")
    if to.ca and _CERTIFICATE.sub("", to.ca).strip():
        raise SpecError(f"{path}.ca", "needs certificates in PEM, without other text")


def _check_identifier(path: str, name: str) -> None:
    if "\0" in name or len(name.encode("utf-8", "replace")) > MAX_IDENTIFIER_BYTES or not name.isprintable():
        raise SpecError(path, f"needs names of up to {MAX_IDENTIFIER_BYTES} bytes without control characters")


def _is_ipv6(host: str) -> bool:
    try:
        return IPv6Address(host).scope_id is None
    except ValueError:
        return False
