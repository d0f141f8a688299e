"""Records on `penstock.mirror`, a compacted topic of the standby cluster: progress, lease and promotion."""

from collections.abc import Iterable
from typing import Final, Literal

import msgspec
from confluent_kafka import Message
from msgspec import Struct

PROGRESS_KEY: Final = b"progress"
PROMOTION_KEY: Final = b"promotion"
LEASE_KEY: Final = b"lease"
PartitionOffsets = dict[str, dict[int, int]]  # by topic and partition


class TopicProgress(Struct, frozen=True):
    """A topic: messages behind, and the time before which everything that was stored is mirrored (0: unknown)."""

    behind: int
    complete_us: int


class MirrorProgress(Struct, frozen=True):
    """State of the mirror at one moment.

    complete_us:   everything that the active cluster stored before this time is on the standby cluster; 0: unknown
    checkpoint_us: time of the committed offsets that the standby cluster has; 0: it has none
    stored:        offsets of the active cluster up to which topics are copied
    copied:        records, since the mirror started
    active_id:     id of the active cluster
    diverged:      why the standby cluster has other records than the active one; "" if it has not
    """

    state: Literal["copying", "waiting", "stopped"]
    active: str  # bootstrap servers
    at_us: int
    complete_us: int = 0
    checkpoint_us: int = 0
    topics: dict[str, TopicProgress] = {}
    stored: PartitionOffsets = {}
    copied: int = 0
    error: str = ""
    active_id: str = ""
    diverged: str = ""


class Promotion(Struct, frozen=True):
    """The standby cluster is the active one from now on. A mirror never writes to a cluster with such a record.

    stored:    offsets up to which it has the records of the former active cluster; {} until the mirror has stopped
    former_id: id of that cluster
    """

    at_us: int
    former: str  # bootstrap servers of the cluster that was active
    complete_us: int = 0
    checkpoint_us: int = 0
    stored: PartitionOffsets = {}
    former_id: str = ""


def age_of(now_us: int, at_us: int) -> str:
    """Return how long ago a time was; `never` for 0. Pure."""
    return f"{max(0, now_us - at_us) / 1e6:.1f} s ago" if at_us else "never"


class MirrorRecords(Struct):
    """The newest records of the topic."""

    progress: MirrorProgress | None = None
    promotion: Promotion | None = None

    def summary(self, now_us: int) -> str:
        """Return the state of the mirror in one line."""
        if self.promotion is not None:
            return f"the standby cluster was promoted {age_of(now_us, self.promotion.at_us)}"
        if (progress := self.progress) is None:
            return "has never reported"
        behind = sum(topic.behind for topic in progress.topics.values())
        ages = f"complete {age_of(now_us, progress.complete_us)}, reported {age_of(now_us, progress.at_us)}"
        return f"{progress.state}, {behind} behind, {ages}" + (f": {progress.error}" if progress.error else "")

    def apply(self, messages: Iterable[Message]) -> None:
        """Take further records, in order. A record of a later release is read without its new fields."""
        for message in messages:
            value = message.value()
            if message.error() is not None or value is None:
                continue
            if message.key() == PROGRESS_KEY:
                self.progress = msgspec.json.decode(value, type=MirrorProgress)
            elif message.key() == PROMOTION_KEY:
                self.promotion = msgspec.json.decode(value, type=Promotion)
