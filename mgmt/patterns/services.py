"""Services of patterns: the numeric fields of a pipe whose drift is ignored."""

from datetime import datetime
from typing import Final

from django.db import IntegrityError, transaction

from dataplane.causes import Cause
from mgmt.alerts.drift import without_field
from mgmt.alerts.services.alerts import open_alerts, resolve_alert
from mgmt.audit.services import record
from mgmt.errors import InvalidValue, LimitReachedError, NameTakenError
from mgmt.models import IgnoredField, Pipe, User

MOST_IGNORED: Final = 200  # of a pipe
LONGEST_SOURCE, LONGEST_PATH = 40, 200


def ignore_field(*, pipe: Pipe, source: str, path: str, by: User, now: datetime) -> IgnoredField:
    """Ignore the drift of a field; the open alert no longer names it, and is resolved if it named no other.

    Raises InvalidValue, NameTakenError, LimitReachedError.
    """
    if not 0 < len(source) <= LONGEST_SOURCE or "\x00" in source:
        raise InvalidValue("source", "needs the name of a source")
    if not 0 < len(path) <= LONGEST_PATH or "\x00" in path:
        raise InvalidValue("field", "needs the path of a field")
    try:
        with transaction.atomic():
            # A lock, because a count cannot be a constraint.
            Pipe.objects.select_for_update(no_key=True).get(id=pipe.id)
            if pipe.ignored_fields.count() >= MOST_IGNORED:
                raise LimitReachedError(f"A pipe may have {MOST_IGNORED} ignored fields. Watch one again first.")
            row = IgnoredField.objects.create(pipe=pipe, source=source, path=path, by=by, at=now)
            record(pipe=pipe, by=by, action="field.ignored", target=row)
            _leave_out(row, now)
    except IntegrityError as exc:
        raise NameTakenError(f"Field {path} of source {source} is ignored already.") from exc
    return row


@transaction.atomic
def watch_field(*, ignored: IgnoredField, by: User | None = None) -> None:
    """Watch an ignored field again. If it still drifts, its next window opens an alert."""
    record(pipe=ignored.pipe, by=by, action="field.watched", target=ignored)
    IgnoredField.objects.filter(id=ignored.id).delete()


def _leave_out(row: IgnoredField, now: datetime) -> None:
    """Take the field out of the pipe's open alert."""
    alerts = open_alerts().filter(pipe_id=row.pipe_id, cause=Cause.NUMERIC_DRIFT).select_for_update()
    for alert in alerts:
        details = without_field(alert.details, row.source, row.path)
        if not details["fields"] and not details["more"]:
            resolve_alert(alert=alert, now=now, by=row.by, resolution=f"{row} is ignored")
        else:
            alert.details = details
            alert.save(update_fields=["details"])
