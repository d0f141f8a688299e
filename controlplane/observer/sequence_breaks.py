"""Store the broken sequences that the sequence query reports. A repeated report changes nothing."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db import connection

from controlplane.observer.columns import execute_in_columns
from controlplane.observer.merge import clean
from dataplane.ledger.sequence_breaks import SequenceBreak
from mgmt.models import Pipe
from mgmt.sequences.models import MOST_OF_PIPE

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SAVE: Final = """
INSERT INTO mgmt_sequencebreakrow AS known
    (pipe_id, source, key, kind, bucket, position, at, is_clock, number, previous, missing)
SELECT * FROM unnest(%s::varchar[], %s::varchar[], %s::varchar[], %s::varchar[], %s::int[], %s::bigint[],
    %s::timestamptz[], %s::bool[], %s::bigint[], %s::bigint[], %s::bigint[])
ON CONFLICT (pipe_id, position, kind) DO UPDATE SET missing = LEAST(known.missing, EXCLUDED.missing)
"""
_TRIM: Final = """
DELETE FROM mgmt_sequencebreakrow WHERE id IN (
    SELECT id FROM (
        SELECT id, row_number() OVER (PARTITION BY pipe_id ORDER BY at DESC, position DESC) AS place
        FROM mgmt_sequencebreakrow WHERE pipe_id = ANY(%s)
    ) AS placed WHERE place > %s
)
"""


def save_breaks(reports: Iterable[SequenceBreak]) -> None:
    """Insert the breaks, or lower the number of missing events of a known gap. Breaks of unknown pipes are skipped.

    Deletes the oldest rows of a pipe that has more than MOST_OF_PIPE.
    """
    newest: dict[tuple[str, int, str], SequenceBreak] = {}
    for one in reports:
        known = newest.get(place := (one.pipe, one.position, one.kind))
        if known is None or one.missing < known.missing:
            newest[place] = one
    if not newest:
        return
    pipes = set(Pipe.objects.filter(id__in={clean(pipe, 32) for pipe, *_ in newest}).values_list("id", flat=True))
    rows = [_row(newest[place]) for place in sorted(newest) if place[0] in pipes]
    if not rows:
        return
    execute_in_columns(_SAVE, rows)
    with connection.cursor() as cursor:
        cursor.execute(_TRIM, [sorted(pipes), MOST_OF_PIPE])


def _row(one: SequenceBreak) -> tuple[object, ...]:
    at = _EPOCH + timedelta(microseconds=one.at_us)
    own = (one.is_clock, one.number, one.previous, one.missing)
    return (one.pipe, clean(one.source, 40), clean(one.key, 256), one.kind, one.bucket, one.position, at, *own)
