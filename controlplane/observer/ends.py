"""Dead letters, held messages, signals and progress of moves: from records on a cell's topics to what rows will say.

Pure: what is not ours or cannot be read raises, and is passed over by the batch.
"""

from typing import Any, Final, NamedTuple, cast

from msgspec import Struct, field

from controlplane.observer.attempts import at_us
from controlplane.observer.merge import Place, clean
from dataplane.ledger.deadletter import death_of, original_of
from dataplane.ledger.meta import Headers, Meta, read_meta
from dataplane.names import Purpose, transmit_node
from dataplane.tables.moves import AHEAD_PREFIX, MOVE_PREFIX, MoveProgress, decode_progress
from dataplane.tables.records import DEAD_RATE
from dataplane.tables.signals import Signal, decode_signal
from mgmt.models import DeadLetter, HeldMessage, OffsetSet
from mgmt.provisioning.admission import filed_under
from mgmt.queries.places import HOUR_S
from mgmt.services.places import Found, SetId

READ: Final[tuple[Purpose, ...]] = ("attempts", "dead", "held", "signals")
KEY_END: Final = b"\0"


class Who(NamedTuple):
    """Whose messages failed, and of what."""

    pipe_id: str
    destination: str
    cause: str


class Ends(Struct):
    """What some records say. Signals and progress: the newest of each, for they replace one another."""

    letters: list[DeadLetter] = field(default_factory=list)
    held: list[HeldMessage] = field(default_factory=list)
    places: list[Found] = field(default_factory=list)
    suspensions: dict[tuple[str, str], Signal] = field(default_factory=dict)
    views: dict[tuple[str, str, str], Signal] = field(default_factory=dict)
    progress: dict[str, MoveProgress] = field(default_factory=dict)

    def add(self, purpose: str, message: Any) -> None:
        """Take one record in. Raises ValueError, KeyError or msgspec.DecodeError if it cannot be read."""
        if purpose == "signals":
            self._add_signal(message.key() or b"", message.value())
        else:
            self._add_message(purpose, message)

    def _add_message(self, purpose: str, message: Any) -> None:
        headers = cast(Headers, message.headers() or [])
        meta = read_meta(headers)
        if purpose == "held":
            self.places.append(_found(meta, OffsetSet.Kind.HELD, filed_under(meta.share), message))
            self.held.append(HeldMessage(**_listed(meta, message)))
            return
        letter = _letter(meta, headers, message)
        self.letters.append(letter)
        is_copy = not original_of(headers)  # else there is nothing that could be sent
        if is_copy and letter.node == transmit_node(letter.destination):  # what died earlier was never ready
            self.places.append(_found(meta, OffsetSet.Kind.DEAD, letter.cause, message))

    def _add_signal(self, key: bytes, value: bytes | None) -> None:
        name = key.decode("utf-8", "replace")
        if value is None or name.startswith(AHEAD_PREFIX):
            return
        if name.startswith(MOVE_PREFIX):
            progress = decode_progress(value)
            self.progress[progress.move] = progress
            return
        signal = decode_signal(value)
        if signal.destination or signal.suspended != DEAD_RATE:
            self.views[signal.pipe, signal.destination, signal.writer] = signal
        if signal.suspended:
            self.suspensions[signal.pipe, signal.destination] = signal


def purpose_of(topic: str) -> str:
    """The purpose in the name of a cell's topic (dataplane.names.cell_topic)."""
    return topic.rpartition(".g")[0].rpartition(".")[2]


def who(letter: DeadLetter) -> Who:
    """What a dead letter's alert is about."""
    return Who(letter.pipe_id, letter.destination, letter.cause)


def cause_of_suspension(signal: Signal) -> str:
    """The cause under which its alert stands: a storm is many refusals, and those have opened one already."""
    return "rejected" if signal.suspended == "storm" else clean(signal.suspended, 40)


def _letter(meta: Meta, headers: Headers, message: Any) -> DeadLetter:
    death = death_of(headers)
    return DeadLetter(
        **_listed(meta, message),
        node=clean(death.node, 60),
        cause=clean(death.cause, 40),
        detail=clean(death.detail, 300),
        answer=clean(death.answer, 2_100),
        bucket=meta.bucket,
        revision=meta.revision,
        attempts=meta.attempt,
    )


def _listed(meta: Meta, message: Any) -> dict[str, Any]:
    """What is noted of every message that did not go out."""
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
    """The customer's key: what stands behind the destination's name in an egress key."""
    return clean((key or b"").partition(KEY_END)[2].decode("utf-8", "replace"), 200)


def _found(meta: Meta, kind: str, cause: str, message: Any) -> Found:
    at_s = message.timestamp()[1] // 1_000
    place: Place = (message.topic(), message.partition())
    where = SetId(clean(meta.pipe, 32), clean(meta.destination, 40), kind, cause, *place, at_s // HOUR_S)
    return Found(where, message.offset(), at_s)
