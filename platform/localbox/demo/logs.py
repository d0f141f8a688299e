"""The sender's and the receiver's logs: tab-separated lines, one for each event of a POST and one for each delivery."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dataplane.ledger.units import parse_position
from loadgen.events import UNKNOWN


class SentEvent(NamedTuple):
    """One event in one POST. An event without an ACK is posted again, so several lines may have its number."""

    number: int  # of the event in the run
    sent_us: int
    answered_us: int
    status: int
    message_id: str
    position: int | None
    bucket: int
    sha256: str

    @property
    def may_be_stored(self) -> bool:
        """True if the event may be stored in the topic without an ACK."""
        return self.status == UNKNOWN or self.status >= 500


class ReceivedDelivery(NamedTuple):
    """One delivery that the receiver answered."""

    received_us: int
    message_id: str
    position: int
    sha256: str


def read_sent(path: Path) -> Iterator[SentEvent]:
    """Yield the lines of the sender's log."""
    for parts in _lines(path):
        number, sent, answered, status, message_id, position, bucket, sha256 = parts
        packed = parse_position(position) if position else None
        yield SentEvent(int(number), int(sent), int(answered), int(status), message_id, packed, int(bucket), sha256)


def read_received(path: Path) -> Iterator[ReceivedDelivery]:
    """Yield the lines of the receiver's log."""
    for received, message_id, position, sha256 in _lines(path):
        yield ReceivedDelivery(int(received), message_id, parse_position(position), sha256)


def _lines(path: Path) -> Iterator[list[str]]:
    if path.exists():
        with path.open() as file:
            for line in file:
                if line.endswith("\n"):  # a line without its end is still being written
                    yield line[:-1].split("\t")
