"""The probe behind "I fixed it": the data plane sends one message for real; if it is accepted, the rest follows."""

from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.db import transaction
from django.db.models import F
from pyroaring import BitMap64

from dataplane.ledger.facts import Fact
from dataplane.names import transmit_node
from mgmt.models import Alert, Attempt, DeadLetter, Destination, FactRow, Move, OffsetSet, User
from mgmt.queries.places import Chosen, first_of
from mgmt.queries.records import RecordsAway, read_record
from mgmt.services.alerts import open_alerts
from mgmt.services.destinations import resume_destination
from mgmt.services.errors import NothingToMove, NothingToProbe, NotOpen
from mgmt.services.moves import start_move

log = structlog.get_logger(__name__)
PROBE_FOR: Final = timedelta(seconds=120)
_JUDGED: Final = ("dead", "parked", "held", "cancelled")


def probe_alert(*, alert: Alert, by: User | None, now: datetime) -> Move:
    """Send one message of the alert's destination, a dead one of its cause or else the oldest held one.

    A suspended destination stays so: only this message goes out. Raises NotOpen, NothingToProbe.
    """
    if alert.state == Alert.State.RESOLVED or alert.probe == Alert.Probe.RUNNING:
        raise NotOpen("The alert is over." if alert.resolved_at else "One message is on its way. Wait for its answer.")
    found = _dead_unit(alert) or _held_unit(alert)
    if found is None:
        raise NothingToProbe(f"{alert.destination or 'It'} has no message that could be sent. Resume it instead.")
    chosen, unit = found
    with transaction.atomic():
        _let_through(alert, unit["message_id"])
        move = start_move(pipe=alert.pipe, chosen=chosen, by=by, alert=alert, most=1, probe=True)
        begun = open_alerts().filter(id=alert.id).exclude(probe=Alert.Probe.RUNNING)
        if not begun.update(probe=Alert.Probe.RUNNING, probe_unit=unit, probe_at=now, probe_says=""):
            raise NotOpen("Somebody else's probe is under way.")
    alert.refresh_from_db()
    log.info("probe", alert=alert.id, destination=alert.destination, message=unit["message_id"])
    return move


def judge_probes(*, now: datetime) -> int:
    """See what became of the messages that were sent as probes; how many are decided."""
    decided = 0
    for alert in open_alerts().filter(probe=Alert.Probe.RUNNING).select_related("pipe"):
        if _was_delivered(alert):
            _accept(alert)
        elif why := _why_refused(alert, now):
            _end_probe(alert, Alert.Probe.REFUSED, why)
        else:
            continue
        decided += 1
    return decided


def _dead_unit(alert: Alert) -> tuple[Chosen, dict[str, Any]] | None:
    letter = (
        DeadLetter.objects.filter(
            pipe_id=alert.pipe_id,
            destination=alert.destination,
            node=transmit_node(alert.destination),
            cause=alert.cause,
            move=None,
        )
        .order_by("id")
        .first()
    )
    if letter is None:
        return None
    chosen = Chosen(alert.destination, OffsetSet.Kind.DEAD, cause=alert.cause, ids=(letter.message_id,))
    unit = {"message_id": letter.message_id, "position": letter.position}
    return chosen, unit | {"bucket": letter.bucket, "child": letter.child}


def _held_unit(alert: Alert) -> tuple[Chosen, dict[str, Any]] | None:
    rows = OffsetSet.objects.filter(pipe_id=alert.pipe_id, destination=alert.destination, kind=OffsetSet.Kind.HELD)
    row = rows.order_by("hour", "topic", "partition", "id").first()
    if row is None:
        return None
    try:
        record = read_record(row.topic, row.partition, first_of(row), pipes=(alert.pipe_id,))
    except RecordsAway as exc:
        raise NothingToProbe(f"The held messages cannot be read at this moment: {exc}. Try again.") from exc
    meta = record.meta
    unit = {"message_id": meta.id, "position": meta.position, "bucket": meta.bucket, "child": meta.child}
    return Chosen(alert.destination, OffsetSet.Kind.HELD), unit


def _let_through(alert: Alert, message_id: str) -> None:
    """A destination that holds its messages lets this one pass, and no other."""
    Destination.objects.filter(
        pipe=alert.pipe_id, name=alert.destination, state__in=[Destination.State.SUSPENDED, Destination.State.PAUSED]
    ).update(probe=message_id[:64], version=F("version") + 1)


def _was_delivered(alert: Alert) -> bool:
    unit = alert.probe_unit
    rows = FactRow.objects.filter(
        pipe_id=alert.pipe_id,
        bucket=unit["bucket"],
        node=transmit_node(alert.destination),
        fact=Fact.DELIVERED,
        child=unit["child"],
    )
    return any(
        unit["position"] in BitMap64.deserialize(bytes(sent)) for sent in rows.values_list("positions", flat=True)
    )


def _why_refused(alert: Alert, now: datetime) -> str:
    """What the newest try of the message said; "" while there is none."""
    began = alert.probe_at or now
    tries = Attempt.objects.filter(
        pipe_id=alert.pipe_id, destination=alert.destination, position=alert.probe_unit["position"], at__gte=began
    )
    last = tries.filter(outcome__in=_JUDGED).order_by("-at").first()
    if last is not None:
        return f"{last.reason or last.outcome}"
    return f"no answer within {PROBE_FOR.seconds} s" if now > began + PROBE_FOR else ""


@transaction.atomic
def _accept(alert: Alert) -> None:
    """The rest follows: held messages because the destination is active again, dead ones of this cause by a move."""
    _end_probe(alert, Alert.Probe.ACCEPTED, "accepted")
    row = Destination.objects.filter(pipe=alert.pipe_id, name=alert.destination).first()
    if row is not None and row.state != Destination.State.REMOVED:
        resume_destination(destination=row)
    for chosen in (
        Chosen(alert.destination, OffsetSet.Kind.HELD),
        Chosen(alert.destination, OffsetSet.Kind.DEAD, cause=alert.cause),
    ):
        try:
            start_move(pipe=alert.pipe, chosen=chosen, alert=alert)
        except NothingToMove:
            continue


def _end_probe(alert: Alert, outcome: Alert.Probe, says: str) -> None:
    Alert.objects.filter(id=alert.id).update(probe=outcome, probe_says=says[:200])
    rows = Destination.objects.filter(pipe=alert.pipe_id, name=alert.destination).exclude(probe="")
    rows.update(probe="", version=F("version") + 1)
    log.info("probe over", alert=alert.id, outcome=outcome, says=says)
