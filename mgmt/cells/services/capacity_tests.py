"""Services of capacity tests: the test's own pipe on the cell, the pause of scaling, and the stored results."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

import structlog
from django.db import transaction

from mgmt.cells.services.control import pause_controller, resume_controller
from mgmt.models import ApiKey, CapacityResult, Cell, Controller, Pause, Pipe, PipeRevision, Source, Tenant, User
from mgmt.pipes.services.keys import create_api_key, revoke_api_key
from mgmt.pipes.services.pipes import close_pipe, create_pipe, reopen_pipe
from mgmt.pipes.services.revisions import publish_revision
from mgmt.tenancy.services.tenants import create_tenant

RATER: Final = "rate-traffic"  # a user without a password: marks the pauses that a later test may end
RATING_TENANT: Final = "Rating"
SOURCE: Final = "load"
DESTINATION: Final = "receiver"
# The same steps as the benchmark of the process hop. Retries are short, so that leftovers end soon.
STEPS: Final = [
    {"op": "rename", "path": "customer.name", "to": "customer.full_name"},
    {"op": "remove", "path": "note"},
]
RETRY: Final = {"span_s": 60, "delays_s": [10]}
log = structlog.get_logger(__name__)


def capacity_test_pipe(cell: Cell) -> Pipe | None:
    """Return the pipe that capacity tests of the cell send through; None before the first test."""
    return Pipe.objects.filter(tenant__name=RATING_TENANT, name=_name(cell), cell=cell).first()


@transaction.atomic
def begin_capacity_test(*, cell: Cell, url: str, reason: str, until: datetime, now: datetime) -> tuple[Pipe, str]:
    """Return the cell's test pipe, open and delivering to `url`, and a new API key; pause scaling of the cell.

    `until`: when the pause expires. Leftovers of an interrupted run are ended first.
    Raises AlreadyPausedError if another user has paused scaling of the cell, SpecError if deliveries to `url` are not
    allowed.
    """
    end_capacity_test(cell=cell, now=now)
    by = _rater()
    pause_controller(controller=Controller.SCALE, cell=cell, reason=reason, until=until, by=by, now=now)
    pipe = capacity_test_pipe(cell)
    if pipe is None:
        tenant = Tenant.objects.filter(name=RATING_TENANT, memberships__user=by).first()
        tenant = tenant or create_tenant(name=RATING_TENANT, owner=by)
        pipe = create_pipe(tenant=tenant, name=_name(cell), spec=_spec(url), author=by)
        Pipe.objects.filter(id=pipe.id).update(cell=cell)  # before the Provisioner sees that it has none
    else:
        reopen_pipe(pipe=pipe)
        newest = pipe.revisions.latest("number")
        if newest.state == PipeRevision.State.FAILED or capacity_test_url(pipe) != url:
            publish_revision(pipe=pipe, spec=_spec(url), based_on=newest.number, author=by)
    return pipe, create_api_key(source=Source.objects.get(pipe=pipe, name=SOURCE), label="rating")[1]


@transaction.atomic
def end_capacity_test(*, cell: Cell, now: datetime) -> None:
    """Close the test pipe, revoke its keys and end the pause. Safe to repeat."""
    pipe = capacity_test_pipe(cell)
    if pipe is not None:
        close_pipe(pipe=pipe)
        for key in ApiKey.objects.filter(source__pipe=pipe, revoked_at=None):
            revoke_api_key(key=key)
    for pause in Pause.objects.filter(cell=cell, by__username=RATER, ended_at=None):
        resume_controller(pause=pause, by=pause.by, now=now)


def store_capacity_results(
    *,
    cell: Cell,
    master: str,
    rated: Iterable[dict[str, Any]],
    bottleneck: str,
    batch: int,
    by: User | None,
    now: datetime,
) -> list[CapacityResult]:
    """Store the results of a run. `rated`: one dict per group with `group`, `units`, `per_s`, `at_least`, `cpu_us`."""
    common = {
        "cell": cell,
        "master": master[:200],
        "release": cell.release_id or "",
        "bottleneck": bottleneck[:300],
        "batch": batch,
        "at": now,
        "by": by or _rater(),
    }
    rows = CapacityResult.objects.bulk_create([CapacityResult(**one, **common) for one in rated])
    log.info(
        "capacity test stored", cell=cell.id, bottleneck=bottleneck, **{row.group: round(row.per_s) for row in rows}
    )
    return rows


def capacity_test_url(pipe: Pipe) -> str:
    """Return the URL that the newest revision of a test pipe delivers to."""
    url: str = pipe.revisions.latest("number").spec["destinations"][DESTINATION]["url"]
    return url


def _rater() -> User:
    return User.objects.filter(username=RATER).first() or User.objects.create_user(RATER)


def _name(cell: Cell) -> str:
    return f"rating of {cell.id}"


def _spec(url: str) -> dict[str, Any]:
    return {
        "sources": {SOURCE: {}},
        "normalize": STEPS,
        "destinations": {DESTINATION: {"type": "http", "url": url, "retry": RETRY}},
    }
