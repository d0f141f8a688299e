"""Services of the demo: a tenant, its owner, a staff user, a pipe. Each call reuses the rows of an earlier call."""

from typing import Any, Final

from django.db import transaction

from mgmt.models import Cell, Pipe, Source, Tenant, User
from mgmt.pipes.services.keys import create_api_key, revoke_api_key
from mgmt.pipes.services.pipes import create_pipe
from mgmt.pipes.services.revisions import publish_revision
from mgmt.tenancy.services.tenants import create_tenant

FIRST_CELL: Final = "c1"
DEMO_TENANT: Final = "Demo"
DEMO_OWNER: Final = "alice"
DEMO_SOURCE: Final = "demo"
DEMO_KEY: Final = "demo sender"


def ensure_first_cell() -> Cell:
    """Return the first cell, on which pipes are placed while there is no other; create it if it is missing."""
    return Cell.objects.get_or_create(id=FIRST_CELL)[0]


@transaction.atomic
def ensure_demo_tenant() -> tuple[Tenant, User]:
    """Return the tenant Demo and its owner alice. She has no password and signs in by a link."""
    owner = _ensure_user(DEMO_OWNER)
    tenant = Tenant.objects.filter(name=DEMO_TENANT, memberships__user=owner).order_by("created_at").first()
    return tenant or create_tenant(name=DEMO_TENANT, owner=owner), owner


def ensure_staff_user() -> User:
    """Return the staff user `admin`, who has no password."""
    return _ensure_user("admin", is_staff=True, is_superuser=True)


def ensure_demo_pipe(*, url: str, name: str) -> Pipe:
    """Return the demo's pipe of this name, whose newest revision delivers to `url`."""
    spec = {"sources": {DEMO_SOURCE: {}}, "destinations": {"receiver": {"type": "http", "url": url}}}
    return ensure_pipe_to_receiver(name=name, spec=spec)


def ensure_pipe_to_receiver(*, name: str, spec: dict[str, Any]) -> Pipe:
    """Return the demo tenant's pipe of this name; publish `spec` if the newest revision has another receiver URL."""
    tenant, owner = ensure_demo_tenant()
    pipe = Pipe.objects.filter(tenant=tenant, name=name).first()
    if pipe is None:
        return create_pipe(tenant=tenant, name=name, spec=spec, author=owner)
    newest = pipe.revisions.latest("number")
    if newest.spec["destinations"].get("receiver", {}).get("url") != spec["destinations"]["receiver"]["url"]:
        publish_revision(pipe=pipe, spec=spec, based_on=newest.number, author=owner)
    return pipe


def renew_demo_keys(*, pipe: Pipe) -> dict[str, str]:
    """Return a new key for each source of the pipe; revoke the keys of earlier demos, which nobody holds any more."""
    return {source.name: _renewed(source) for source in pipe.sources.order_by("name")}


def _renewed(source: Source) -> str:
    for old in source.keys.filter(label=DEMO_KEY, revoked_at=None):
        revoke_api_key(key=old)
    return create_api_key(source=source, label=DEMO_KEY)[1]


def _ensure_user(username: str, **flags: Any) -> User:
    user = User.objects.filter(username=username).first()
    return user or User.objects.create_user(username, **flags)
