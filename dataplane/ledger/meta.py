"""`MessageMeta`: Penstock's envelope of a message, one MessagePack header before the customer's CloudEvents headers.

One packed header replaces a dozen text headers, because reading and writing those took a third of a lane's time.
"""

from typing import Final

import msgspec
from msgspec import Struct

META_HEADER: Final = "penstock-meta"
REPLAY_HEADER: Final = "penstock-replay"  # of requests and records that carry a copy: the replay's id
CONTENT_TYPE: Final = "content-type"
CE_PREFIX: Final = "ce_"  # of CloudEvents attributes: Kafka protocol binding 1.0, binary mode


class OriginalBody(Struct, array_like=True, frozen=True, gc=False):
    """Body of a request as its sender posted it, kept next to the JSON that ingest made of it.

    content_type: with its parameters, such as `charset`
    """

    content_type: str
    content: bytes


class MessageMeta(Struct, array_like=True, gc=False):
    """Envelope that ingest stamps on a message and that every hop carries.

    Append new fields at the end, with a default, so that releases N and N-1 read each other's headers.

    position, child, destination: 0, 0 and "" until process has read the message and routed it
    attempt:   rounds so far of global retry, release or redrive; 0 in the first one
    not_before_us: earliest time of the next try; first_us: time of the first try
    tried:     rounds in which the message was sent and failed; a round passes without a request while its destination
               takes none
    asked_us:  the destination's Retry-After: no try before this time, not even by an early release; 0 if it sent none
    life:      the round in which the message was last redriven; 0 if it never was
    paced:     the retrier assigned not_before_us to this message alone, apart from the others of its destination
    through:   a person released this message from a hold: it runs although its pipe is held before the steps,
               and transmit sends it although its destination is held
    as_of:     version of the destination's control record that the retrier had read when it brought the message back;
               transmit waits for that version
    share:     held before the steps until its pipe admits this percentage of its keys; 0 for all other messages
    stored_ms: when the broker stored it on the ingest topic, noted by process; 0 until then
    hops:      hop count: deliveries by Penstock before this ingest (dataplane.spec.loops)
    schema:    version of the registry's subject that ingest checked the event with, as `<subject>@<number>`; "" if none
    misfit:    why the event does not fit the event types of its Kafka source, which cannot refuse it: process
               dead-letters it; "" for all other events
    event_type: text of the header that names the type of such an event, for the check when it is run again
    stopwatch: how its time was spent so far (dataplane.ledger.stopwatch); b"" until process writes it
    replay:    id of the replay that made this copy; "" for an original. The ledger counts a copy for its replay
    producer:  random number of the producer that stored it on the ingest topic; 0 if its release assigned none. The
               broker gives an offset a second time only to a record of another producer, so offset and producer
               together identify a record permanently
    idempotency_key: the sender's own id of the delivery, by which dedup may recognise repeats; "" if it named none
    request_headers: headers that the event keeps of the request that brought it, by name in lower case
    original:  the form or XML that the event's body was converted from, while a destination is to get it; None for all
               other events, and on the path to other destinations
    """

    version: int  # WIRE_VERSION of the writer
    id: str
    pipe: str
    revision: int
    source: str
    event_time_us: int
    ingest_time_us: int
    bucket: int
    off_time: bool = False
    position: int = 0
    child: int = 0
    destination: str = ""
    attempt: int = 0
    not_before_us: int = 0
    first_us: int = 0
    tried: int = 0
    asked_us: int = 0
    life: int = 0
    paced: bool = False
    through: bool = False
    as_of: int = 0
    share: int = 0
    stored_ms: int = 0
    stopwatch: bytes = b""
    producer: int = 0
    hops: int = 0
    schema: str = ""
    misfit: str = ""
    event_type: str = ""
    replay: str = ""
    idempotency_key: str = ""
    request_headers: dict[str, str] = {}
    original: OriginalBody | None = None

    @property
    def is_original(self) -> bool:
        """True for an event as ingest stored it, which its steps take.

        A record with a position has returned to the ingest topic; its original counts, at its own offset. A misfit has
        never passed the steps.
        """
        return not self.position and not self.misfit

    @property
    def account(self) -> str:
        """Name under which the ledger counts the message: its replay's, or its pipe's."""
        return self.replay or self.pipe

    @property
    def original_bytes(self) -> int:
        """Size of the original body; 0 if none is kept."""
        return 0 if self.original is None else len(self.original.content)


_decoder = msgspec.msgpack.Decoder(MessageMeta)
encode_meta = msgspec.msgpack.Encoder().encode
Headers = list[tuple[str, bytes]]


def decode_meta(value: bytes) -> MessageMeta:
    """Decode the value of a Meta header. Raises msgspec.DecodeError if it is not one."""
    return _decoder.decode(value)


def without_original(meta: MessageMeta) -> MessageMeta:
    """Return a copy of a Meta without the original body, for a destination that does not get it."""
    return msgspec.structs.replace(meta, original=None)


def read_meta(headers: Headers) -> MessageMeta:
    """Return the Meta of a message from its headers, of which it is always the first.

    Raises KeyError if it is missing, msgspec.DecodeError if it cannot be decoded.
    """
    if not headers or headers[0][0] != META_HEADER:
        raise KeyError(META_HEADER)
    return _decoder.decode(headers[0][1])
