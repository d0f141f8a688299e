"""Dry runs: a spec, not yet saved, on a sample event, in a sandbox worker. Nothing is sent and no row is written."""

import base64
import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from dataplane.plan.dryrun import DryRun, Sample
from dataplane.sandbox.jobs import Tried
from dataplane.spec import SpecError
from dataplane.tables.sealed import salt_place
from mgmt import sandbox
from mgmt.models import Tenant
from mgmt.queries.lookups import StoredRows
from mgmt.services.revisions import checked_spec
from mgmt.services.secrets import decrypt

MESSAGE_ID: Final = "msg_dry-run"
_NO_SALT: Final = b"a dry run of no tenant"  # hashes then differ from those of any


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

    Hashes and look-up tables are the tenant's if one is given. `owner`: who is counted as having it under way, the
    tenant by default. Raises SpecError as saving does, with the path `source` if that is wrong; SandboxRefused.
    """
    now_us = time.time_ns() // 1_000
    sample = Sample(body, source, MESSAGE_ID, now_us, now_us, pipe_id)
    rows = StoredRows(tenant.id if tenant else "")
    owner = owner or (tenant.id if tenant else "")
    found = sandbox.try_event(document, sample, salt=_salt(tenant), rows=rows, owner=owner)
    checked_spec(document)
    return found.run


def run_again(document: Mapping[str, Any], sample: Sample, tenant: Tenant, follow: str) -> Tried:
    """Recompute a stored message's way: hashes as they were, look-up tables as they are now. Raises SandboxRefused."""
    rows = StoredRows(tenant.id)
    return sandbox.try_event(document, sample, salt=_salt(tenant), rows=rows, owner=tenant.id, follow=follow)


def sample_body(event: Any) -> bytes:
    """Return a JSON value as an event's body. Raises SpecError with the path `event` if it cannot be written."""
    try:
        return msgspec.json.encode(event)
    except (OverflowError, UnicodeEncodeError, RecursionError) as exc:
        raise SpecError("event", "holds what JSON cannot carry: half a character, or levels beyond number") from exc


def _salt(tenant: Tenant | None) -> bytes:
    if tenant is None or not tenant.mask_salt:
        return _NO_SALT
    return base64.b64decode(decrypt(tenant.mask_salt, salt_place(tenant.id)))
