"""A pipe's newest event, read from Kafka at the place that the ledger names."""

from pyroaring import BitMap64

from dataplane.ledger.facts import ACKED, INGEST, Fact
from dataplane.ledger.units import Place, place_of
from mgmt.models import FactRow, Pipe
from mgmt.queries.cells import topic_at
from mgmt.queries.records import SHOWN_BYTES, RecordsAway, StoredRecord, read_record


class NoEvent(Exception):  # noqa: N818 named for what the caller answers
    """There is none that could be taken: the message says why."""


def last_event(pipe: Pipe) -> StoredRecord:
    """The newest ACKed event, as far as the Observer has come. Raises NoEvent; RecordsAway if Kafka is away."""
    place = last_place(pipe)
    topic = topic_at(pipe.id, "ingest", place.generation)
    if topic is None:
        raise NoEvent("its topic is gone")
    record = read_record(topic.name, place.partition, place.offset, pipes=(pipe.id,))
    if record.body_bytes > SHOWN_BYTES:
        raise NoEvent(f"its newest event has more than {SHOWN_BYTES} bytes")
    return record


def last_place(pipe: Pipe) -> Place:
    """Where one of the newest minute's events lies. Raises NoEvent."""
    acked = FactRow.objects.filter(pipe_id=pipe.id, node=INGEST, fact=Fact.SENT, detail=ACKED).order_by("-bucket")
    positions = acked.values_list("positions", flat=True).first()
    if positions is None:
        raise NoEvent("it has had none yet")
    return place_of(BitMap64.deserialize(bytes(positions)).max())


__all__ = ["NoEvent", "RecordsAway", "last_event", "last_place"]
