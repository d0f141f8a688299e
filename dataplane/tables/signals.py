"""Signals: a lane's state of a destination (breaker, concurrency, suspension), on a compacted topic.

Other lanes and the Observer read them. A lost signal costs probes, never messages, so no lane waits for its delivery.
"""

from typing import Final, Literal

import msgspec
from msgspec import Struct

SIGNAL_VERSION: Final = 1
BreakerState = Literal["closed", "open", "half-open"]


class DestinationSignal(Struct, array_like=True, frozen=True):
    """State of one destination in one lane. New fields are appended with a default, so N and N-1 read each other's.

    until_us:    while the breaker is open: when the first probe may be sent
    concurrency: requests in flight that this lane allows now
    slow:        healthy, but served by the slow lane
    suspended:   the cause, if the lane has suspended the destination; "" if not
    status:      of the last response, 0 if there was none; `reason` describes it
    in_a_row:    consecutive non-recoverable responses
    of_version:  version of the destination's record when the state was observed; a newer record invalidates it
    """

    version: int
    cell: str
    writer: str
    pipe: str
    destination: str
    at_us: int
    breaker: BreakerState = "closed"
    until_us: int = 0
    concurrency: int = 0
    slow: bool = False
    suspended: str = ""
    status: int = 0
    reason: str = ""
    in_a_row: int = 0
    of_version: int = 0


_decoder = msgspec.msgpack.Decoder(DestinationSignal)
_encoder = msgspec.msgpack.Encoder()


def signal_key(signal: DestinationSignal) -> str:
    """Return the record's key in the compacted topic."""
    return f"{signal.pipe}/{signal.destination}/{signal.writer}"


def reported_slowness(signal: DestinationSignal) -> bool | None:
    """Return if the destination is slow; None if this lane's view does not decide it.

    Lanes of first attempts report that a destination is slow, only the slow lane that it is not.
    """
    match signal.writer.rpartition("-")[0], signal.slow:
        case ("transmit", True):
            return True
        case ("transmit-slow", False):
            return False
    return None


def encode_signal(signal: DestinationSignal) -> bytes:
    """Return the signal as MessagePack."""
    return _encoder.encode(signal)


def decode_signal(value: bytes) -> DestinationSignal:
    """Return the signal in a record's value. Raises msgspec.DecodeError if this version cannot read it."""
    return _decoder.decode(value)
