"""Progress of redrives and of early releases: records on the cell's `signals` topic.

The topic is compacted and has one partition. It also has the lanes' signals, which differ in their keys.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct
from pyroaring import BitMap64

from dataplane.names import PartitionKey

REDRIVES_VERSION: Final = 1
REDRIVE_PREFIX: Final = "move/"
EARLY_RELEASE_PREFIX: Final = "ahead/"


class RedriveProgress(Struct, array_like=True, frozen=True):
    """Progress of a redrive. New fields are appended with a default, so that releases N and N-1 read each other's.

    moved:   messages stored on retry-out
    skipped: messages that are expired, unreadable, or another destination's
    total:   messages requested
    reached: "<topic>/<partition>" -> all requested messages below this offset are done and reported to the ledger
    done:    the redrive has ended, completely or aborted
    error:   reason why it waits, for people
    """

    version: int
    move: str
    moved: int
    skipped: int
    total: int
    done: bool
    at_us: int
    reached: dict[str, int]
    error: str = ""


class EarlyReleaseProgress(Struct, array_like=True, frozen=True):
    """Progress of an early release: messages returned before their time, because the destination is healthy again.

    reached: "<delay topic>/<partition>" -> every message of the destination below this offset is on retry-out, except
             those that wait because the destination asked for it (Meta.asked_us)
    running: more messages are being returned now; messages that fall due meanwhile must not be added to them
    ends:    "<delay topic>/<partition>" -> the running release returns the messages between `reached` and this offset
    """

    version: int
    pipe: str
    destination: str
    at_us: int
    reached: dict[str, int]
    running: bool = False
    ends: dict[str, int] = {}


_progress = msgspec.msgpack.Decoder(RedriveProgress)
_ahead = msgspec.msgpack.Decoder(EarlyReleaseProgress)
_encoder = msgspec.msgpack.Encoder()


def redrive_key(move: str) -> str:
    """Return the record key of a redrive's progress."""
    return f"{REDRIVE_PREFIX}{move}"


def early_release_key(pipe: str, destination: str) -> str:
    """Return the record key of a destination's early release."""
    return f"{EARLY_RELEASE_PREFIX}{pipe}/{destination}"


def encode_progress(record: RedriveProgress | EarlyReleaseProgress) -> bytes:
    """Return the record as MessagePack."""
    return _encoder.encode(record)


def decode_progress(value: bytes) -> RedriveProgress:
    """Return the progress in a record's value. Raises msgspec.DecodeError if this version cannot read it."""
    return _progress.decode(value)


def decode_early_release(value: bytes) -> EarlyReleaseProgress:
    """Return the early release in a record's value. Raises msgspec.DecodeError if this version cannot read it."""
    return _ahead.decode(value)


def format_place(place: PartitionKey) -> str:
    """Return a topic partition as `<topic>/<partition>`."""
    return f"{place[0]}/{place[1]}"


def parse_place(text: str) -> PartitionKey:
    """Return the topic partition in a text of format_place. Raises ValueError without a partition number."""
    topic, _, partition = text.rpartition("/")
    return topic, int(partition)


def encode_offsets(offsets: Mapping[PartitionKey, BitMap64]) -> dict[str, str]:
    """Return offsets in the form that a RedriveRecord carries."""
    return {format_place(partition): b64encode(bitmap.serialize()).decode() for partition, bitmap in offsets.items()}


def decode_offsets(offsets: Mapping[str, str]) -> dict[PartitionKey, BitMap64]:
    """Return the offsets of a RedriveRecord. Raises ValueError for an invalid bitmap or topic partition."""
    return {parse_place(partition): _bitmap(b64decode(text, validate=True)) for partition, text in offsets.items()}


def _bitmap(serialized: bytes) -> BitMap64:
    try:
        return BitMap64.deserialize(serialized)
    except IndexError as exc:
        raise ValueError("needs a serialized bitmap, got an empty value") from exc
