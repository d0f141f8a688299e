"""Convert the dead letters, held messages, signals and progress records on a cell's topics to rows.

Pure: a record that is not Penstock's or cannot be decoded raises, and the batch skips it.
"""

from typing import Any, Final, NamedTuple, cast

from msgspec import Struct, field

from controlplane.observer.attempts import at_us
from controlplane.observer.merge import clean
from dataplane.causes import Cause
from dataplane.ledger.deadletter import can_run_again, dead_letter_reason, original_of
from dataplane.ledger.meta import Headers, MessageMeta, read_meta
from dataplane.names import PartitionKey, Purpose, transmit_node
from dataplane.tables.redrives import EARLY_RELEASE_PREFIX, REDRIVE_PREFIX, RedriveProgress, decode_progress
from dataplane.tables.replays import REPLAY_PREFIX, ReplayProgress, decode_replay_progress
from dataplane.tables.shadows import SHADOW_PREFIX, ShadowProgress, decode_shadow_progress
from dataplane.tables.signals import DestinationSignal, decode_signal
from mgmt.alerts.common_fields import Fields, fields_of
from mgmt.alerts.fingerprint import fingerprint_of, status_of
from mgmt.deliveries.queries.message_selection import HOUR_S
from mgmt.deliveries.services.offset_sets import OffsetSetKey, StoredPosition
from mgmt.models import DeadLetter, HeldMessage, OffsetSet
from mgmt.ramps.admission_schedule import filed_under

READ: Final[tuple[Purpose, ...]] = ("attempts", "dead", "held", "signals")
KEY_END: Final = b"\0"
EXAMINED: Final = 20  # messages of one kind and batch whose fields are compared


class FailureKey(NamedTuple):
    """Destination and kind of failed messages, which one alert is about."""

    pipe_id: str
    destination: str
    cause: str
    status: int = 0
    fingerprint: str = ""


class LedgerEntries(Struct):
    """Entries from a batch of records. Of signals and progress it keeps the newest, which replaces the others."""

    letters: list[DeadLetter] = field(default_factory=list)
    held: list[HeldMessage] = field(default_factory=list)
    places: list[StoredPosition] = field(default_factory=list)
    suspensions: dict[tuple[str, str], DestinationSignal] = field(default_factory=dict)
    views: dict[tuple[str, str, str], DestinationSignal] = field(default_factory=dict)
    progress: dict[str, RedriveProgress] = field(default_factory=dict)
    replays: dict[str, ReplayProgress] = field(default_factory=dict)
    shadows: dict[str, ShadowProgress] = field(default_factory=dict)
    examined: dict[FailureKey, list[Fields]] = field(default_factory=dict)

    def add(self, purpose: str, message: Any) -> None:
        """Add one record. Raises ValueError, KeyError or msgspec.DecodeError if it cannot be decoded."""
        if purpose == "signals":
            self._add_signal(message.key() or b"", message.value())
        else:
            self._add_message(purpose, message)

    def _add_message(self, purpose: str, message: Any) -> None:
        headers = cast(Headers, message.headers() or [])
        meta = read_meta(headers)
        if purpose == "held":
            self.places.append(_stored_position(meta, OffsetSet.Kind.HELD, filed_under(meta.share), message))
            self.held.append(HeldMessage(**_listed(meta, message)))
            return
        letter = _letter(meta, headers, message)
        self.letters.append(letter)
        is_copy = not original_of(headers)  # a dead letter by reference has no body to send
        if is_copy:
            self._examine(who(letter), message.value() or b"")
        # A letter of transmit has the request's body; one of the steps has the event's, which returns to the steps.
        ended_at_transmit = letter.node == transmit_node(letter.destination)
        if is_copy and (ended_at_transmit or (not letter.destination and can_run_again(dead_letter_reason(headers)))):
            self.places.append(_stored_position(meta, OffsetSet.Kind.DEAD, letter.cause, message))

    def _examine(self, key: FailureKey, body: bytes) -> None:
        """Keep the fields of the first messages of each kind, to find what they have in common."""
        known = self.examined.setdefault(key, [])
        if len(known) < EXAMINED and (fields := fields_of(body)) is not None:
            known.append(fields)

    def _add_signal(self, key: bytes, value: bytes | None) -> None:
        name = key.decode("utf-8", "replace")
        if value is None or name.startswith(EARLY_RELEASE_PREFIX):
            return
        if name.startswith(REDRIVE_PREFIX):
            progress = decode_progress(value)
            self.progress[progress.move] = progress
            return
        if name.startswith(REPLAY_PREFIX):
            replay = decode_replay_progress(value)
            self.replays[replay.replay] = replay
            return
        if name.startswith(SHADOW_PREFIX):
            shadow = decode_shadow_progress(value)
            self.shadows[shadow.shadow] = shadow
            return
        signal = decode_signal(value)
        if signal.destination or signal.suspended != Cause.DEAD_RATE:
            self.views[signal.pipe, signal.destination, signal.writer] = signal
        if signal.suspended:
            self.suspensions[signal.pipe, signal.destination] = signal


def purpose_of(topic: str) -> str:
    """Return the purpose in the name of a cell's topic (dataplane.names.cell_topic)."""
    return topic.rpartition(".g")[0].rpartition(".")[2]


def who(letter: DeadLetter) -> FailureKey:
    """Return the key of a dead letter's alert."""
    return FailureKey(
        letter.pipe_id, letter.destination, letter.cause, status_of(letter.answer), fingerprint_of(letter.answer)
    )


def cause_of_suspension(signal: DestinationSignal) -> str:
    """Return the cause of a suspension's alert: for a storm, the one of its many refusals, which opened one already."""
    return Cause.REJECTED if signal.suspended == Cause.STORM else clean(signal.suspended, 40)


def _letter(meta: MessageMeta, headers: Headers, message: Any) -> DeadLetter:
    why_dead = dead_letter_reason(headers)
    return DeadLetter(
        **_listed(meta, message),
        node=clean(why_dead.node, 60),
        cause=clean(why_dead.cause, 40),
        detail=clean(why_dead.detail, 300),
        answer=clean(why_dead.answer, 2_100),
        bucket=meta.bucket,
        revision=meta.revision,
        attempts=meta.attempt,
    )


def _listed(meta: MessageMeta, message: Any) -> dict[str, Any]:
    """Return the common fields of dead letters and held messages."""
    return {
        "pipe_id": clean(meta.pipe, 32),
        "destination": clean(meta.destination, 40),
        "message_id": clean(meta.id, 64),
        "key": _key_of(message.key()),
        "position": meta.position,
        "child": meta.child,
        "at": at_us(message.timestamp()[1] * 1_000),
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
    }


def _key_of(key: bytes | None) -> str:
    """Return the customer's key, which follows the destination's name in an egress key."""
    return clean((key or b"").partition(KEY_END)[2].decode("utf-8", "replace"), 200)


def _stored_position(meta: MessageMeta, kind: str, cause: str, message: Any) -> StoredPosition:
    at_s = message.timestamp()[1] // 1_000
    partition: PartitionKey = (message.topic(), message.partition())
    key = OffsetSetKey(clean(meta.pipe, 32), clean(meta.destination, 40), kind, cause, *partition, at_s // HOUR_S)
    return StoredPosition(key, message.offset(), at_s)
