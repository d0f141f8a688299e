"""Counts of events that did not pass the checks of ingest, by reason and sender, with a few samples, as reported."""

from typing import Final

from msgspec import Struct

OTHER: Final = "(other)"  # event type, path and sender of the events that have no count of their own
KAFKA: Final = "kafka"  # sender of the records of a Kafka source
SENDER_CHARS: Final = 16  # of an API key's digest: 64 bits distinguish the keys of a source


class RejectionSample(Struct, array_like=True, frozen=True):
    """One rejected event.

    at_us:      its arrival, in microseconds since 1970
    size_bytes: of its body
    body:       beginning of the body without masked values; JSON if the event is JSON, "" if it cannot be shown
    """

    at_us: int
    size_bytes: int
    body: str


class RejectionReport(Struct, array_like=True, frozen=True):
    """Rejected events of one source, minute, type, reason, place and sender since the last report.

    event_type: name of the type; "" if the source has one type, or the type is unknown
    code:       code of the refusal (dataplane.refusals.TITLES)
    pointer:    JSON pointer into the event, with `*` for an index; "" for the whole event
    sender:     beginning of the digest of the API key, or KAFKA: then the events became dead letters
    minute:     minutes since the epoch, by the clock of ingest
    detail:     what was needed and what came in the newest of them; repeats no value of the event
    """

    pipe: str
    source: str
    event_type: str
    code: str
    pointer: str
    sender: str
    minute: int
    events: int
    detail: str
    samples: list[RejectionSample] = []
