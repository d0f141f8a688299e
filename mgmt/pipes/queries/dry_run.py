"""Dry runs of specs on sample events, in a sandbox worker. Nothing is sent and no row is written."""

import base64
import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from dataplane.plan.dryrun import DryRun, SampleEvent
from dataplane.sandbox.jobs import Tried
from dataplane.spec import SpecError
from dataplane.tables.sealed import salt_place
from mgmt import sandbox
from mgmt.lookups.queries.rows import TenantLookupRows
from mgmt.models import Tenant
from mgmt.pipes.spec_check import checked_spec
from mgmt.tenancy.secrets import decrypt

MESSAGE_ID: Final = "msg_dry-run"
_NO_SALT: Final = b"a dry run of no tenant"  # hashes then differ from those of every tenant


def dry_run_spec(
    document: Mapping[str, Any],
    body: bytes,
    *,
    source: str = "",
    tenant: Tenant | None = None,
    pipe_id: str = "",
    owner: str = "",
) -> DryRun:
    """Return every node's output and the requests for an event at a source (the spec's first by default).

    Hashes and look-up tables are the tenant's if one is given. `owner`: whose limit of concurrent runs applies, the
    tenant's by default. Raises SpecError as saving does, with the path `source` if that is not valid; SandboxRefused.
    """
    now_us = time.time_ns() // 1_000
    sample = SampleEvent(body, source, MESSAGE_ID, now_us, now_us, pipe_id)
    rows = TenantLookupRows(tenant.id if tenant else "")
    owner = owner or (tenant.id if tenant else "")
    found = sandbox.try_event(document, sample, salt=salt_of(tenant), rows=rows, owner=owner)
    checked_spec(document)
    return found.run


def rerun_event(document: Mapping[str, Any], sample: SampleEvent, tenant: Tenant, follow: str) -> Tried:
    """Run a stored message's stages again: same hashes, look-up tables as they are now. Raises SandboxRefused."""
    rows = TenantLookupRows(tenant.id)
    return sandbox.try_event(document, sample, salt=salt_of(tenant), rows=rows, owner=tenant.id, follow=follow)


def sample_body(event: Any) -> bytes:
    """Return a JSON value as an event's body. Raises SpecError with the path `event` if it cannot be encoded."""
    try:
        return msgspec.json.encode(event)
    except (OverflowError, UnicodeEncodeError, RecursionError) as exc:
        reason = "contains a value that JSON cannot represent: an unpaired surrogate, or too many nesting levels"
        raise SpecError("event", reason) from exc


def salt_of(tenant: Tenant | None) -> bytes:
    """Return the salt of a tenant's hashes; for no tenant one that no tenant has."""
    if tenant is None or not tenant.mask_salt:
        return _NO_SALT
    return base64.b64decode(decrypt(tenant.mask_salt, salt_place(tenant.id)))
