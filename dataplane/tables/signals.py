"""What lanes tell each other and the Observer of a destination: breaker, allowance, suspension. On a compacted topic.

Losing a signal costs probes, never messages; so it is not waited for.
"""

from typing import Final, Literal

import msgspec
from msgspec import Struct

SIGNAL_VERSION: Final = 1
BreakerState = Literal["closed", "open", "half-open"]


class Signal(Struct, array_like=True, frozen=True):
    """How one lane sees one destination. New fields go to the end with a default, so N and N-1 read each other.

    until_us:    while the breaker is open: when the first probe may be sent
    concurrency: sends in flight that this lane allows now
    slow:        healthy, but to be sent by the slow lane
    suspended:   the cause, if the lane has suspended the destination; "" if not
    status:      of the last answer, 0 if none came; `reason` in words
    in_a_row:    non-recoverable answers since the last other one
    of_version:  of the destination's record that all this was seen under; it counts no more under a newer one
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


_decoder = msgspec.msgpack.Decoder(Signal)
_encoder = msgspec.msgpack.Encoder()


def signal_key(signal: Signal) -> str:
    """The record's key in the compacted topic."""
    return f"{signal.pipe}/{signal.destination}/{signal.writer}"


def encode_signal(signal: Signal) -> bytes:
    """The signal as MessagePack."""
    return _encoder.encode(signal)


def decode_signal(value: bytes) -> Signal:
    """Raises msgspec.DecodeError if `value` is no signal this version understands."""
    return _decoder.decode(value)
