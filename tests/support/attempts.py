"""Reader of a cell's attempts topic, from its beginning."""

from dataplane.ledger.audit import AttemptRecord, decode_attempts
from tests.support.data_plane import DataPlane
from tests.support.topic_reader import read_topic


def attempts_of(plane: DataPlane, pipe: str) -> list[AttemptRecord]:
    """Return every reported attempt of one pipe, in the order of each partition; delivered ones are a sample."""
    topic = plane.cluster.topics["attempts"]
    return [
        attempt
        for message in read_topic(plane.broker.address, topic.name, topic.partitions)
        for attempt in decode_attempts(message.value()).attempts
        if attempt.pipe == pipe
    ]
