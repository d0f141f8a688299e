"""Services of loss alerts: sealed minutes above a pipe's threshold open them, later outcomes resolve them."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from django.db import transaction

from dataplane.causes import Cause
from dataplane.ledger.losses import counted_loss
from mgmt.alerts.loss import MOST_LISTED, bounded, exceeds, summary_of
from mgmt.alerts.services.alerts import AlertReport, end_condition, open_alerts, report_condition
from mgmt.audit.services import record
from mgmt.errors import InvalidValue
from mgmt.ledger.queries.bucket_range import start_of
from mgmt.ledger.queries.ledger import MinuteKey
from mgmt.ledger.queries.losses import minute_losses
from mgmt.models import Pipe, Seal, User

MOST_MINUTES: Final = 500  # minutes of one alert, the newest; its page links to the loss table with all of them
CHECKED: Final = 20  # minutes that are read together
FOUND: Final = "every lost message has an outcome now"


@transaction.atomic
def note_losses(*, seals: Iterable[Seal], now: datetime) -> None:
    """Open an alert for each pipe of which a sealed minute lost more than its threshold, or add to the open one.

    Call it in the transaction that stores the seals. A minute that is reported twice counts once.
    """
    lossy = [seal for seal in seals if seal.lost]
    thresholds = dict(
        Pipe.objects.filter(id__in={seal.pipe_id for seal in lossy}).values_list("id", "loss_threshold_percent")
    )
    above: dict[str, list[int]] = {}
    for seal in lossy:
        threshold = thresholds.get(seal.pipe_id)
        if threshold is not None and exceeds(counted_loss(seal.nodes, seal.bins), threshold):
            above.setdefault(seal.pipe_id, []).append(seal.bucket)
    for pipe_id, buckets in above.items():
        _report(pipe_id, buckets, thresholds[pipe_id], now)


def resolve_found_losses(*, now: datetime) -> int:
    """Resolve loss alerts of which each message has an outcome now, by a redrive or a late fact. Return how many."""
    resolved = 0
    for pipe_id, details in open_alerts().filter(cause=Cause.LOST).values_list("pipe_id", "details"):
        if not _is_lossy(pipe_id, details.get("buckets", [])):
            resolved += end_condition(pipe_id=pipe_id, destination="", cause=Cause.LOST, resolution=FOUND, now=now)
    return resolved


@transaction.atomic
def set_loss_threshold(*, pipe: Pipe, percent: float, by: User | None = None) -> None:
    """Set the loss of a minute, in percent, above which the pipe's tenant is alerted. Raises InvalidValue."""
    if not 0 <= percent < 100:  # also refuses NaN
        raise InvalidValue("loss_threshold_percent", "needs a number from 0 to less than 100")
    field = "loss_threshold_percent"
    before = {field: Pipe.objects.select_for_update(no_key=True).get(id=pipe.id).loss_threshold_percent}
    Pipe.objects.filter(id=pipe.id).update(loss_threshold_percent=percent)
    record(pipe=pipe, by=by, action="pipe.loss_threshold_set", before=before, after={field: percent})
    pipe.loss_threshold_percent = percent


def _report(pipe_id: str, buckets: Sequence[int], threshold_percent: float, now: datetime) -> None:
    alert = open_alerts().filter(pipe_id=pipe_id, destination="", cause=Cause.LOST).select_for_update().first()
    known = alert.details.get("buckets", []) if alert else []
    minutes = bounded([*known, *buckets], MOST_MINUTES)
    details = _details(pipe_id, minutes, threshold_percent)
    count = details["end_to_end"]["lost"]
    report_condition(report=AlertReport(pipe_id, "", Cause.LOST, count, details, {}), now=now)


def _details(pipe_id: str, buckets: Sequence[int], threshold_percent: float) -> dict[str, Any]:
    rows = Seal.objects.filter(pipe_id=pipe_id, bucket__in=buckets).values_list("nodes", "bins")
    losses = [counted_loss(nodes, bins) for nodes, bins in rows]
    messages = _messages(pipe_id, buckets)
    return summary_of(losses, threshold_percent) | {
        "from": start_of(buckets[0]).isoformat(),
        "to": start_of(buckets[-1]).isoformat(),
        "minutes": len(buckets),
        "messages": messages,
        "more_messages": sum(loss.lost for loss in losses) - len(messages),
        "buckets": list(buckets),
    }


def _messages(pipe_id: str, buckets: Sequence[int]) -> list[dict[str, Any]]:
    """Return the first lost messages of the newest minutes."""
    found: list[dict[str, Any]] = []
    for bucket in reversed(buckets):
        key = MinuteKey(pipe_id, bucket)
        for one in minute_losses([key], most=MOST_LISTED - len(found))[key].messages:
            place = {"position": one.position, "destination": one.destination, "last_seen": one.last_seen}
            found.append(place | {"minute": start_of(bucket).isoformat()})
        if len(found) >= MOST_LISTED:
            break
    return found


def _is_lossy(pipe_id: str, buckets: Sequence[int]) -> bool:
    for first in range(0, len(buckets), CHECKED):
        keys = [MinuteKey(pipe_id, bucket) for bucket in buckets[first : first + CHECKED]]
        if any(losses.loss.lost for losses in minute_losses(keys, most=0).values()):
            return True
    return False
