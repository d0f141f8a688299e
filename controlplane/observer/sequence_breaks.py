"""Store the broken sequences that the sequence query reports. A repeated report changes nothing."""

import json
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from django.db import connection

from controlplane.observer.columns import execute_in_columns
from controlplane.observer.merge import clean
from dataplane.ledger.sequence_breaks import SequenceBreak
from dataplane.schemas.standard import EPOCH
from mgmt.models import Pipe
from mgmt.sequences.models import BREAKS_KEPT_D, MOST_OF_KIND

_SAVE: Final = """
INSERT INTO mgmt_sequencebreakrow AS known (
    pipe_id, revision, source, key, kind, bucket, position, at, is_clock, number, previous, missing, ranges, is_tracked
)
SELECT
    pipe_id, revision, source, key, kind, bucket, position, at, is_clock, number, previous, missing, ranges::jsonb,
    is_tracked
FROM unnest(%s::varchar[], %s::int[], %s::varchar[], %s::varchar[], %s::varchar[], %s::int[], %s::bigint[],
    %s::timestamptz[], %s::bool[], %s::bigint[], %s::bigint[], %s::bigint[], %s::text[], %s::bool[]) AS t(
    pipe_id, revision, source, key, kind, bucket, position, at, is_clock, number, previous, missing, ranges, is_tracked
)
ON CONFLICT (pipe_id, position, kind) DO UPDATE
SET missing = EXCLUDED.missing, ranges = EXCLUDED.ranges, is_tracked = known.is_tracked AND EXCLUDED.is_tracked
WHERE EXCLUDED.missing < known.missing
"""
# Repeats do not displace gaps, and closed gaps do not displace open ones. Of each minute of the last hour some open
# gaps stay: the alert is about gaps that have been open for minutes. Rows past their retention are left to
# controlplane.observer.trim: two deletions of the same rows in another order could block each other.
_TRIM: Final = """
DELETE FROM mgmt_sequencebreakrow WHERE id IN (
    SELECT id FROM (
        SELECT id, missing, at,
            row_number() OVER (PARTITION BY pipe_id, kind ORDER BY missing > 0 DESC, at DESC, position DESC) AS place,
            row_number() OVER (
                PARTITION BY pipe_id, kind, missing > 0, date_trunc('minute', at) ORDER BY at, position
            ) AS place_in_minute
        FROM mgmt_sequencebreakrow WHERE pipe_id = ANY(%s) AND at >= now() - make_interval(days => %s)
    ) AS placed
    WHERE place > %s AND (missing = 0 OR place_in_minute > %s OR at < now() - interval '1 hour')
)
"""
_OF_MINUTE: Final = 5  # open gaps that stay
_LONG: Final = (1 << 63) - 1


def save_breaks(reports: Iterable[SequenceBreak]) -> None:
    """Insert the breaks, or lower the number of missing events of a known gap. Breaks of unknown pipes are skipped.

    Deletes the oldest rows of a pipe that has more than MOST_OF_KIND of one kind.
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
        cursor.execute(_TRIM, [sorted(pipes), BREAKS_KEPT_D, MOST_OF_KIND, _OF_MINUTE])


def _row(one: SequenceBreak) -> tuple[object, ...]:
    at = EPOCH + timedelta(microseconds=one.at_us)
    own = (one.is_clock, one.number, one.previous, min(one.missing, _LONG), json.dumps(one.ranges), one.is_tracked)
    return (
        one.pipe,
        one.revision,
        clean(one.source, 40),
        clean(one.key, 256),
        one.kind,
        one.bucket,
        one.position,
        at,
        *own,
    )
