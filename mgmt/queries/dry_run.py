"""Dry runs: a spec, not yet saved, on a sample event. Nothing is sent and no row is written."""

import base64
import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from dataplane.plan import Plan, compile_plan
from dataplane.plan.dryrun import DryRun, Sample, dry_run
from dataplane.spec import PipeSpec, SpecError
from dataplane.tables.sealed import salt_place
from mgmt.models import Tenant
from mgmt.queries.lookups import StoredRows
from mgmt.services.revisions import checked_spec
from mgmt.services.secrets import decrypt

MESSAGE_ID: Final = "msg_dry-run"
_NO_SALT: Final = b"a dry run of no tenant"  # hashes then differ from those of any


def dry_run_spec(
    document: Mapping[str, Any], body: bytes, *, source: str = "", tenant: Tenant | None = None, pipe_id: str = ""
) -> DryRun:
    """Every node's output and the requests for an event at a source (the spec's first by default).

    Hashes and look-up tables are the tenant's if one is given. Raises SpecError as saving does, with the path `source`
    if that is wrong.
    """
    spec = checked_spec(document)
    name = source or next(iter(spec.sources))
    if name not in spec.sources:
        raise SpecError("source", f"needs a source of the spec, one of {sorted(spec.sources)}")
    now_us = time.time_ns() // 1_000
    sample = Sample(body, name, MESSAGE_ID, now_us, now_us, pipe_id)
    rows = StoredRows(tenant.id if tenant else "")
    return dry_run(spec, compile_plan(spec, _salt(tenant)), sample, time.perf_counter_ns, rows)


def run_again(spec: PipeSpec, plan: Plan, sample: Sample, tenant: Tenant) -> DryRun:
    """What a stored message went through, computed anew: hashes as they were, look-up tables as they are now."""
    return dry_run(spec, plan, sample, time.perf_counter_ns, StoredRows(tenant.id))


def plan_of(spec: PipeSpec, tenant: Tenant) -> Plan:
    """The spec compiled with the tenant's salt."""
    return compile_plan(spec, _salt(tenant))


def sample_body(event: Any) -> bytes:
    """A JSON value as an event's body. Raises SpecError with the path `event` if it cannot be written."""
    try:
        return msgspec.json.encode(event)
    except (OverflowError, UnicodeEncodeError, RecursionError) as exc:
        raise SpecError("event", "holds what JSON cannot carry: half a character, or levels beyond number") from exc


def _salt(tenant: Tenant | None) -> bytes:
    if tenant is None or not tenant.mask_salt:
        return _NO_SALT
    return base64.b64decode(decrypt(tenant.mask_salt, salt_place(tenant.id)))
