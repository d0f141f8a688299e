"""Row scope of the running code: the tenants whose rows Postgres shows to its queries.

Row-level security is the second wall between tenants; the first is mgmt.web.access. A query that has lost its filter
by tenant finds no row of another tenant. The database engine config.postgres applies the scope to each connection
before the next statement; the policies of the tables compare it (mgmt.tenancy.row_policies).

- Processes that serve no customers (workers, controllers, commands) are unrestricted.
- A request begins with no tenant and gets those of its user, or of its API token (`restrict_to`).
- Staff pages, and the few reads that precede or cross tenants, name their reason (`all_tenants`).
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal, NamedTuple, TypeVar

# SQL of the role of requests: neither owner nor superuser, so that policies apply to it. Each database has its own,
# because roles belong to the server: the role of one installation opens nothing of another.
WEB_ROLE_SQL: Final = "left('penstock_web_' || current_database(), 63)"
ALL: Final = "*"
_Item = TypeVar("_Item")

# The reasons for which code that serves a request sees the rows of all tenants.
Reason = Literal[
    "authentication",  # memberships of an account; the API token of a request; the single sign-on of an organisation
    "link",  # an invitation, a shared catalogue, a portal or a confirmation, found by the digest of a random token
    "receipt",  # a message found by its random id
    "placement",  # the load of cells, which tenants share
]


class RowScope(NamedTuple):
    """Scope of statements: as the web role or not, and the setting `penstock.tenants`, ids with commas or ALL."""

    as_web: bool
    tenants: str


UNRESTRICTED: Final = RowScope(False, ALL)
NO_TENANT: Final = RowScope(True, "")
EVERY_TENANT: Final = RowScope(True, ALL)

_outside_requests = UNRESTRICTED
_CURRENT: Final[ContextVar[RowScope | None]] = ContextVar("penstock_row_scope", default=None)


def current_scope() -> RowScope:
    """Return the scope of the running code."""
    return _CURRENT.get() or _outside_requests


def restrict_process() -> None:
    """Give code outside of requests no tenant, too: the web process has no other business with tenants' rows."""
    global _outside_requests  # noqa: PLW0603 once, when the process starts
    _outside_requests = NO_TENANT


@contextmanager
def row_scope(scope: RowScope) -> Iterator[None]:
    """Run the block in a scope; `restrict_to` within it ends with it, too."""
    token = _CURRENT.set(scope)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def restrict_to(tenant_ids: Iterable[str]) -> None:
    """Show only the rows of these tenants from now on, to the end of the request."""
    _change_to(scope_of(tenant_ids))


def add_tenant(tenant_id: str) -> None:
    """Show the rows of one tenant more from now on, to the end of the request: the one that a link has named."""
    known = current_scope().tenants
    _change_to(scope_of({tenant_id, *filter(None, known.split(","))}) if known != ALL else EVERY_TENANT)


def open_to_staff() -> None:
    """Show the rows of all tenants from now on, to the end of the request. The caller has checked that it is staff."""
    _change_to(EVERY_TENANT)


@contextmanager
def all_tenants(_reason: Reason) -> Iterator[None]:
    """Run a block, or as a decorator a function, that sees the rows of all tenants."""
    scope = current_scope()
    with row_scope(scope if scope == UNRESTRICTED else EVERY_TENANT):
        yield


def _change_to(scope: RowScope) -> None:
    if current_scope() != UNRESTRICTED:  # outside of a request there is nothing to restrict
        _CURRENT.set(scope)


def scope_of(tenant_ids: Iterable[str]) -> RowScope:
    """Return the scope of these tenants."""
    return RowScope(True, ",".join(sorted(tenant_ids)))


def in_scope(scope: RowScope, items: Iterator[_Item]) -> Iterator[_Item]:
    """Yield the items, each produced in the scope: streamed responses are read after their request has ended."""
    while True:
        with row_scope(scope):
            try:
                item = next(items)
            except StopIteration:
                return
        yield item
