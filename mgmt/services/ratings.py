"""What a rating needs for itself, and what it leaves: a pipe of its own on the cell, a pause, rows."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

import structlog
from django.db import transaction

from mgmt.models import ApiKey, Cell, Controller, Pause, Pipe, PipeRevision, Rating, Source, Tenant, User
from mgmt.services.control import end_pause, pause_controller
from mgmt.services.keys import create_api_key, revoke_api_key
from mgmt.services.pipes import close_pipe, create_pipe, reopen_pipe
from mgmt.services.revisions import publish_revision
from mgmt.services.tenants import create_tenant

RATER: Final = "rate-traffic"  # a user without a password: who comes after it knows what it may end
RATING_TENANT: Final = "Rating"
SOURCE: Final = "load"
DESTINATION: Final = "receiver"
# As the bench of the process hop has it: a pipe with a step or two. What is left behind is not tried for long.
STEPS: Final = [
    {"op": "rename", "path": "customer.name", "to": "customer.full_name"},
    {"op": "remove", "path": "note"},
]
RETRY: Final = {"span_s": 60, "delays_s": [10]}
log = structlog.get_logger(__name__)


def rating_pipe(cell: Cell) -> Pipe | None:
    """The pipe that ratings of the cell send through, if there was one."""
    return Pipe.objects.filter(tenant__name=RATING_TENANT, name=_name(cell), cell=cell).first()


@transaction.atomic
def open_rating(*, cell: Cell, url: str, reason: str, until: datetime, now: datetime) -> tuple[Pipe, str]:
    """The cell's rating pipe, open and leading to `url`, a new key to it, and scaling of the cell paused until then.

    What an interrupted run left is ended first. Raises PausedAlready if somebody else has paused scaling there,
    SpecError if deliveries to `url` are not allowed.
    """
    end_rating(cell=cell, now=now)
    by = _rater()
    pause_controller(controller=Controller.SCALE, cell=cell, reason=reason, until=until, by=by, now=now)
    pipe = rating_pipe(cell)
    if pipe is None:
        tenant = Tenant.objects.filter(name=RATING_TENANT, memberships__user=by).first()
        tenant = tenant or create_tenant(name=RATING_TENANT, owner=by)
        pipe = create_pipe(tenant=tenant, name=_name(cell), spec=_spec(url), author=by)
        Pipe.objects.filter(id=pipe.id).update(cell=cell)  # before the Provisioner sees that it has none
    else:
        reopen_pipe(pipe=pipe)
        newest = pipe.revisions.latest("number")
        if newest.state == PipeRevision.State.FAILED or rating_url(pipe) != url:
            publish_revision(pipe=pipe, spec=_spec(url), based_on=newest.number, author=by)
    return pipe, create_api_key(source=Source.objects.get(pipe=pipe, name=SOURCE), label="rating")[1]


@transaction.atomic
def end_rating(*, cell: Cell, now: datetime) -> None:
    """End what a rating of the cell had for itself. Of no effect if that has ended."""
    pipe = rating_pipe(cell)
    if pipe is not None:
        close_pipe(pipe=pipe)
        for key in ApiKey.objects.filter(source__pipe=pipe, revoked_at=None):
            revoke_api_key(key=key)
    for pause in Pause.objects.filter(cell=cell, by__username=RATER, ended_at=None):
        end_pause(pause=pause, by=pause.by, now=now)


def store_ratings(
    *,
    cell: Cell,
    master: str,
    rated: Iterable[dict[str, Any]],
    bottleneck: str,
    batch: int,
    by: User | None,
    now: datetime,
) -> list[Rating]:
    """Keep what a run found: of each group its `group`, `units`, `per_s`, `at_least` and `cpu_us`."""
    common = {
        "cell": cell,
        "master": master[:200],
        "release": cell.release_id or "",
        "bottleneck": bottleneck[:300],
        "batch": batch,
        "at": now,
        "by": by or _rater(),
    }
    rows = Rating.objects.bulk_create([Rating(**one, **common) for one in rated])
    log.info("rated", cell=cell.id, bottleneck=bottleneck, **{row.group: round(row.per_s) for row in rows})
    return rows


def rating_url(pipe: Pipe) -> str:
    """Where its newest revision delivers to."""
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
