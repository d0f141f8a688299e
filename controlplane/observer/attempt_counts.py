"""Count deliveries and failed attempts by destination and minute, in the transaction that moves the offset."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from controlplane.observer.columns import execute_in_columns
from controlplane.observer.merge import AttemptCountId
from dataplane.names import is_replay
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import DeliveryAttempt, Replay

RETRIED: Final = frozenset({"retry", "parked"})  # final failures open alerts of their own
_ADD: Final = """
INSERT INTO mgmt_attemptcount AS known (pipe_id, destination, minute, delivered, failed)
SELECT * FROM unnest(%s::varchar[], %s::varchar[], %s::integer[], %s::integer[], %s::integer[])
ON CONFLICT (pipe_id, destination, minute) DO UPDATE SET
    delivered = known.delivered + EXCLUDED.delivered,
    failed = known.failed + EXCLUDED.failed
"""


def add_attempt_counts(deliveries: Mapping[AttemptCountId, int], attempts: Iterable[DeliveryAttempt]) -> None:
    """Add to the counts in one statement, in a fixed order, so that several Observers do not deadlock.

    deliveries: messages delivered, from the facts, because lanes report only a sample of their successful attempts
    attempts:   every failed attempt, and others
    """
    failed = Counter(_id_of(attempt) for attempt in attempts if attempt.outcome in RETRIED)
    delivered = _by_pipe(deliveries)
    keys = sorted({*delivered, *failed})
    execute_in_columns(_ADD, [(*key, delivered[key], failed[key]) for key in keys])


def _by_pipe(deliveries: Mapping[AttemptCountId, int]) -> Counter[AttemptCountId]:
    """Return the counts with the copies of a replay counted for its pipe, as its failed attempts are."""
    replays = {key.pipe for key in deliveries if is_replay(key.pipe)}
    pipes = dict(Replay.objects.filter(id__in=replays).values_list("id", "pipe_id")) if replays else {}
    found: Counter[AttemptCountId] = Counter()
    for key, count in deliveries.items():
        found[key._replace(pipe=pipes.get(key.pipe, key.pipe))] += count
    return found


def _id_of(attempt: DeliveryAttempt) -> AttemptCountId:
    return AttemptCountId(attempt.pipe_id, attempt.destination, bucket_at(attempt.at))
