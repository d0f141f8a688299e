"""Contract between the lane loop and the work of one kind of lane: what each may call of the other."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol

from confluent_kafka import Message
from msgspec import Struct

from dataplane.ledger.facts import FactBook
from dataplane.ledger.meta import Headers, MessageMeta
from dataplane.names import LaneKind
from dataplane.runtime.lanes.slots import PartitionSlots
from dataplane.runtime.lanes.window import AckWindow
from dataplane.runtime.settings import DataPlaneSettings
from dataplane.runtime.telemetry.fields import FieldBook
from dataplane.runtime.telemetry.lags import LagBook
from dataplane.runtime.telemetry.message_tally import MessageTally
from dataplane.runtime.telemetry.tracing import Tracing
from dataplane.runtime.telemetry.usage import UsageBook
from dataplane.tables.control import ControlTable
from dataplane.tables.optional_files import OptionalFiles
from dataplane.tables.records import CellRecord

IDLE_WAIT_S: Final = 0.1  # poll timeout of a work with nothing in progress
BUSY_WAIT_S: Final = 0.001  # poll timeout of a work with messages in progress
MAX_WINDOW_BYTES: Final = 64 * 1024 * 1024


class LaneError(Exception):
    """The lane cannot continue; the driver restarts it from the committed offsets."""


class LaneIdentity(Struct, frozen=True):
    """Identity of a lane. Epoch and incarnation are those of the application that runs it."""

    cell: str
    kind: LaneKind
    number: int
    epoch: int
    incarnation: str

    @property
    def writer(self) -> str:
        """Name of the lane within its cell."""
        return f"{self.kind}-{self.number}"


class RecordGroup(Protocol):
    """Records that settle together, under one token."""

    def send(self, value: bytes | None, key: bytes | None, partition: int, headers: Headers) -> None:
        """Produce a record. Raises RecordTooLargeError."""

    def close(self) -> None:
        """End the group: its token is returned once all of its records are stored."""


class RecordProducer(Protocol):
    """Producer that returns a token for each stored record."""

    @property
    def in_flight(self) -> int:
        """Return the number of tokens whose records are not stored yet."""

    def begin_group(self, topic: str, token: Any) -> RecordGroup:
        """Return a group of records of one topic under one token."""

    def send(
        self,
        topic: str,
        token: Any,
        *,
        value: bytes | None,
        key: bytes | None = None,
        partition: int = ...,
        headers: Headers | None = None,
    ) -> None:
        """Produce a record; without a partition, the key decides. Raises RecordTooLargeError."""

    def show(self, topic: str, value: bytes, key: bytes, headers: Headers) -> None:
        """Produce a record that may be lost, for live tails."""

    def send_now(self) -> None:
        """Send buffered records without waiting for others of their batch; block for at most 2 ms."""


class CheckpointCounts(Protocol):
    """Counts of audit records, and the low watermarks that the next ones carry."""

    @property
    def begun(self) -> int:
        """Return the number of audit records produced."""

    @property
    def stored(self) -> int:
        """Return the number of audit records stored."""

    @property
    def floors(self) -> dict[tuple[str, int], int]:
        """Return the low watermark of each (topic, partition) that no lane reads."""


class LaneContext(Protocol):
    """Parts of a lane that its work may use. Implemented by `Lane`, `BulkLane`, and an in-memory lane in the tests."""

    identity: LaneIdentity
    settings: DataPlaneSettings
    tracing: Tracing | None
    table: ControlTable
    cell: CellRecord
    slots: PartitionSlots
    facts: FactBook
    lags: LagBook
    usage: UsageBook
    fields: FieldBook
    files: OptionalFiles
    tally: MessageTally
    windows: dict[int, AckWindow]  # by slot
    held_pipes: int  # pipes that the work holds because a resource is missing on this host

    @property
    def producer(self) -> RecordProducer:
        """Producer of the lane's records."""

    @property
    def audits(self) -> CheckpointCounts:
        """Counts of the lane's checkpoints."""

    def settle(self, slot: int, offset: int) -> None:
        """Settle a message; ignored for a partition that the lane does not own."""

    def settle_all(self, slot: int, offsets: Iterable[int]) -> None:
        """Settle all of these messages; ignored for a partition that the lane does not own."""

    def bound_windows(self, messages: int, size_bytes: int) -> None:
        """Limit each ack window below the settings, for a work that reads many partitions and holds their messages."""

    def keep_notes(self, note: Callable[[int, int], str], recall: Callable[[int, str], None]) -> None:
        """Commit a note as metadata with each offset, for the next owner of the partition.

        `note(slot, offset)` returns the text that summarises everything below the offset; `recall(slot, text)` is
        called when the slot is read from there.
        """

    def renote(self, slot: int) -> None:
        """Commit the slot's current note with the next checkpoint, even if its offset has not moved."""

    def committed_note(self, slot: int) -> str:
        """Return the note committed with the slot's offset; "" if the broker does not respond at once."""

    def owns(self, slot: int) -> bool:
        """Return True if the lane owns the partition."""

    def may_send(self, slot: int) -> bool:
        """Return True if a send may begin: the lane owns the partition and has polled within its session timeout."""

    def read_all(self, messages: Iterable[Message]) -> list[tuple[Message, MessageMeta, Headers]]:
        """Return each message with its decoded `Meta` and all of its headers, the `Meta` header first.

        A message with an unreadable `Meta` header cannot be counted for a pipe: it is dead-lettered as a whole.
        """


class LaneWork(Protocol):
    """Processing of messages by one kind of lane. The lane calls these methods from its thread."""

    def process(self, messages: Sequence[Message]) -> None:
        """Begin to process messages; each is settled later through `LaneContext.settle`."""

    def dead_letter_poison(self, message: Message) -> None:
        """Dead-letter a message that crashed lanes, with the cause `crashes-lane` and without parsing its body."""

    def poll(self) -> None:
        """Advance work in progress. Called on every pass; blocks no longer than `poll_timeout_s()`."""

    def on_delivery(self, token: Any) -> None:
        """Handle the token of a record that the lane's producer has stored."""

    def in_flight(self) -> int:
        """Return the number of messages begun and not settled, without records in the producer."""

    def backlog(self) -> int:
        """Return the number of messages taken and not begun; a drain leaves them uncommitted."""

    def poll_timeout_s(self) -> float:
        """Return how long the loop may wait for messages now, in seconds."""

    def report(self) -> None:
        """Produce the records that belong to a checkpoint, which is due."""

    def on_revoked(self, slots: Iterable[int]) -> None:
        """Begin nothing more for these revoked partitions, and drop their messages that have not begun."""

    def on_drain_timeout(self) -> None:
        """Settle work in progress by other means (schedule a retry), because the time to drain is over."""

    def close(self) -> None:
        """Release connections and files."""
