"""Services of an alert's probe: one real message is sent; if it is accepted, the other messages are released."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.db import transaction
from django.db.models import F, Q, QuerySet
from pyroaring import BitMap64

from dataplane.causes import Cause
from dataplane.ledger.facts import PROCESS, Fact, cause_of
from dataplane.names import PROCESS_NODES, transform_node, transmit_node
from mgmt.alerts.services.alerts import open_alerts
from mgmt.audit.services import record
from mgmt.deliveries.queries.message_selection import MessageSelection, first_of
from mgmt.deliveries.services.destinations import resume_destination
from mgmt.deliveries.services.redrives import MOST_IDS, start_redrive
from mgmt.errors import NothingToProbeError, NothingToRedriveError, NotOpenError
from mgmt.messages.queries.records import RecordUnavailableError, read_record
from mgmt.models import Alert, DeadLetter, DeliveryAttempt, Destination, FactRow, OffsetSet, Redrive, User
from mgmt.pipes.services.pipes import end_pause

log = structlog.get_logger(__name__)
PROBE_FOR: Final = timedelta(seconds=120)
_JUDGED: Final = ("dead", "parked", "held", "cancelled")


def probe_alert(*, alert: Alert, by: User | None, now: datetime) -> Redrive:
    """Send one message of the alert's destination: a dead one of its cause, or else the oldest held one.

    A suspended or paused destination keeps its state: only this message is sent. For an alert of a pipe whose steps
    fail, the oldest message held before the steps runs through them. Returns its redrive.
    Raises NotOpenError, NothingToProbeError.
    """
    if alert.state == Alert.State.RESOLVED or alert.probe == Alert.Probe.RUNNING:
        raise NotOpenError(
            "The alert is resolved." if alert.resolved_at else "A probe is in progress. Wait for its result."
        )
    found = _probe_unit(alert)
    if found is None:
        raise NothingToProbeError(f"{alert.destination or 'The pipe'} has no message to send. Resume it instead.")
    chosen, unit = found
    with transaction.atomic():
        _let_through(alert, unit["message_id"])
        move = start_redrive(
            pipe=alert.pipe, chosen=chosen, by=by, alert=alert, most=1, probe=True, through=not alert.destination
        )
        begun = open_alerts().filter(id=alert.id).exclude(probe=Alert.Probe.RUNNING)
        if not begun.update(probe=Alert.Probe.RUNNING, probe_unit=unit, probe_at=now, probe_says=""):
            raise NotOpenError("Another user's probe is in progress. Wait for its result.")
        record(pipe=alert.pipe, by=by, action="alert.probed", target=alert)
    alert.refresh_from_db()
    log.info("probe started", alert=alert.id, destination=alert.destination, message=unit["message_id"])
    return move


def judge_probes(*, now: datetime) -> int:
    """Check the running probes and store the results that are known. Returns the number of probes decided."""
    decided = 0
    for alert in open_alerts().filter(probe=Alert.Probe.RUNNING).select_related("pipe"):
        why = "" if alert.destination else _why_died(alert)
        if not why and _has_passed(alert):
            _accept(alert)
        elif why := why or _why_refused(alert, now):
            _end_probe(alert, Alert.Probe.REFUSED, why)
        else:
            continue
        decided += 1
    return decided


def _probe_unit(alert: Alert) -> tuple[MessageSelection, dict[str, Any]] | None:
    """Return the message to send. Of alerts about a whole pipe, only the one of failing steps has any."""
    if alert.destination:
        return _dead_unit(alert) or _held_unit(alert)
    return _held_unit(alert) if alert.cause == Cause.DEAD_RATE else None


def _dead_unit(alert: Alert) -> tuple[MessageSelection, dict[str, Any]] | None:
    letter = _letters_of(alert).order_by("id").first()
    if letter is None:
        return None
    chosen = MessageSelection(alert.destination, OffsetSet.Kind.DEAD, cause=alert.cause, ids=(letter.message_id,))
    unit = {"message_id": letter.message_id, "position": letter.position}
    return chosen, unit | {"bucket": letter.bucket, "child": letter.child}


def _letters_of(alert: Alert) -> QuerySet[DeadLetter]:
    """Return the listed dead letters of this kind of failure that no redrive has taken."""
    node = transmit_node(alert.destination)
    rows = DeadLetter.objects.filter(
        pipe_id=alert.pipe_id, destination=alert.destination, node=node, cause=alert.cause, move=None
    )
    return rows.filter(answer__startswith=f"{alert.status}\n") if alert.status else rows


def _dead_chosen(alert: Alert) -> MessageSelection:
    """Return the dead letters to redrive after an accepted probe.

    All of the cause; or, while another alert of the cause is open, the listed ones of this kind: the others would fail
    again.
    """
    chosen = MessageSelection(alert.destination, OffsetSet.Kind.DEAD, cause=alert.cause)
    others = open_alerts().filter(pipe=alert.pipe_id, destination=alert.destination, cause=alert.cause)
    if not alert.status or not others.exclude(status=alert.status).exists():
        return chosen
    ids = _letters_of(alert).order_by("id").values_list("message_id", flat=True)[:MOST_IDS]
    return replace(chosen, ids=tuple(ids))


def _held_unit(alert: Alert) -> tuple[MessageSelection, dict[str, Any]] | None:
    rows = OffsetSet.objects.filter(pipe_id=alert.pipe_id, destination=alert.destination, kind=OffsetSet.Kind.HELD)
    row = rows.order_by("hour", "topic", "partition", "id").first()
    if row is None:
        return None
    try:
        record = read_record(row.topic, row.partition, first_of(row), pipes=(alert.pipe_id,))
    except RecordUnavailableError as exc:
        raise NothingToProbeError(f"The held messages cannot be read now: {exc.with_advice('Try again.')}") from exc
    meta = record.meta
    unit = {"message_id": meta.id, "position": meta.position, "bucket": meta.bucket, "child": meta.child}
    return MessageSelection(alert.destination, OffsetSet.Kind.HELD), unit


def _let_through(alert: Alert, message_id: str) -> None:
    """Let this one message pass a destination that holds its messages."""
    Destination.objects.filter(
        pipe=alert.pipe_id, name=alert.destination, state__in=[Destination.State.SUSPENDED, Destination.State.PAUSED]
    ).update(probe=message_id[:64], version=F("version") + 1)


def _has_passed(alert: Alert) -> bool:
    """Return True if the destination accepted the message; for the alert of a pipe, if it passed the steps."""
    if alert.destination:
        found = Q(node=transmit_node(alert.destination), fact=Fact.DELIVERED, child=alert.probe_unit["child"])
    else:
        found = Q(node=PROCESS, fact=Fact.SENT) | Q(node__in=PROCESS_NODES, fact=Fact.FILTERED)
    return bool(_facts_of_probe(alert, found))


def _why_died(alert: Alert) -> str:
    """Return node and cause if the message died in the pipe's steps; "" if it did not."""
    in_steps = Q(node__in=PROCESS_NODES) | Q(node__startswith=transform_node(""))
    found = _facts_of_probe(alert, in_steps & Q(fact=Fact.DEAD))
    return ", ".join(f"{cause_of(detail)} at {node.partition(':')[0]}" for node, detail in found)


def _facts_of_probe(alert: Alert, wanted: Q) -> list[tuple[str, str]]:
    """Return node and detail of the wanted facts that contain the probe's message."""
    unit = alert.probe_unit
    rows = FactRow.objects.filter(wanted, pipe_id=alert.pipe_id, bucket=unit["bucket"])
    return [
        (node, detail)
        for node, detail, positions in rows.values_list("node", "detail", "positions")
        if unit["position"] in BitMap64.deserialize(bytes(positions))
    ]


def _why_refused(alert: Alert, now: datetime) -> str:
    """Return why the probe failed, from the newest attempt or after a timeout; "" while there is no result."""
    began = alert.probe_at or now
    tries = DeliveryAttempt.objects.filter(
        pipe_id=alert.pipe_id, destination=alert.destination, position=alert.probe_unit["position"], at__gte=began
    )
    last = tries.filter(outcome__in=_JUDGED).order_by("-at").first()
    if last is not None:
        return f"{last.reason or last.outcome}"
    return f"no response within {PROBE_FOR.seconds} s" if now > began + PROBE_FOR else ""


@transaction.atomic
def _accept(alert: Alert) -> None:
    """Accept the probe: resume the destination, release its held messages, redrive its dead letters of this cause."""
    _end_probe(alert, Alert.Probe.ACCEPTED, "accepted")
    if not alert.destination:
        if alert.pipe.state_cause == Cause.DEAD_RATE:  # else a person has paused it since
            end_pause(pipe=alert.pipe)  # the held messages are then released in order
        return
    row = Destination.objects.filter(pipe=alert.pipe_id, name=alert.destination).first()
    if row is not None and row.state != Destination.State.REMOVED:
        resume_destination(destination=row)
    for chosen in (
        MessageSelection(alert.destination, OffsetSet.Kind.HELD),
        _dead_chosen(alert),
    ):
        try:
            start_redrive(pipe=alert.pipe, chosen=chosen, alert=alert)
        except NothingToRedriveError:
            continue


def _end_probe(alert: Alert, outcome: Alert.Probe, says: str) -> None:
    Alert.objects.filter(id=alert.id).update(probe=outcome, probe_says=says[:200])
    rows = Destination.objects.filter(pipe=alert.pipe_id, name=alert.destination).exclude(probe="")
    rows.update(probe="", version=F("version") + 1)
    log.info("probe ended", alert=alert.id, outcome=outcome, says=says)
