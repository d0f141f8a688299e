"""A pipe's newest event, read from Kafka at the position that the ledger gives."""

from pyroaring import BitMap64

from dataplane.ledger.facts import ACKED, INGEST, Fact
from dataplane.ledger.units import UnitPosition, place_of
from mgmt.cells.queries.cells import topic_at
from mgmt.messages.queries.records import SHOWN_BYTES, RecordUnavailableError, StoredRecord, read_record
from mgmt.models import FactRow, Pipe


class NoEventError(Exception):
    """The pipe has no event that can be used; the message gives the reason."""


def last_event(pipe: Pipe) -> StoredRecord:
    """Return the newest ACKed event that the Observer has recorded.

    Raises NoEventError; RecordUnavailableError if Kafka is unavailable.
    """
    place = last_place(pipe)
    topic = topic_at(pipe.id, "ingest", place.generation)
    if topic is None:
        raise NoEventError("its topic no longer exists")
    record = read_record(topic.name, place.partition, place.offset, pipes=(pipe.id,))
    if record.body_bytes > SHOWN_BYTES:
        raise NoEventError(f"its newest event has more than {SHOWN_BYTES} bytes")
    return record


def last_place(pipe: Pipe) -> UnitPosition:
    """Return the position of an event of the newest bucket. Raises NoEventError."""
    acked = FactRow.objects.filter(pipe_id=pipe.id, node=INGEST, fact=Fact.SENT, detail=ACKED).order_by("-bucket")
    positions = acked.values_list("positions", flat=True).first()
    if positions is None:
        raise NoEventError("it has had none yet")
    return place_of(BitMap64.deserialize(bytes(positions)).max())


__all__ = ["NoEventError", "RecordUnavailableError", "last_event", "last_place"]
