"""Name the field or value that the failing messages of an open alert have in common and other events do not."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from dataplane.ledger.fields import FieldObservation
from mgmt.alerts.common_fields import LEAST_MESSAGES, named_fields
from mgmt.alerts.services.alerts import name_common_fields, open_alerts
from mgmt.models import FieldSample
from mgmt.patterns.blocks import block_at

RECENT: Final = timedelta(minutes=1)  # alerts with failures since then are looked at again
COMPARED: Final = timedelta(minutes=30)
MOST_SAMPLES: Final = 200  # of one pipe, the newest
_decoder = msgspec.msgpack.Decoder(FieldObservation)


def watch_common_fields(now: datetime) -> int:
    """Store what sets the failing messages of recent alerts apart. Returns the number of alerts that name something."""
    recent = open_alerts().filter(last_at__gte=now - RECENT, details__examined__gte=LEAST_MESSAGES)
    return sum(
        bool(name_common_fields(alert=alert, named=named_fields(alert.details, _samples(alert.pipe_id, now))))
        for alert in recent
    )


def _samples(pipe_id: str, now: datetime) -> Sequence[FieldObservation]:
    rows = FieldSample.objects.filter(pipe_id=pipe_id, block__gte=block_at(now - COMPARED)).order_by("-block", "-id")
    return [_decoder.decode(sample) for sample in rows.values_list("sample", flat=True)[:MOST_SAMPLES]]
