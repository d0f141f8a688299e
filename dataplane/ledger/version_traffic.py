"""Counts of the events that ingest checked with a version of a schema, as reported."""

from typing import Final

from msgspec import Struct

HOUR_US: Final = 3_600_000_000


class VersionTraffic(Struct, array_like=True, frozen=True):
    """Events of one source that ingest checked with one version in one hour, since the last report.

    version:  `<subject>@<number>`
    hour:     hours since the epoch, by the clock of ingest
    accepted: stored events
    rejected: events that did not fit; of a Kafka source, those that became dead letters for that reason
    """

    pipe: str
    source: str
    version: str
    hour: int
    accepted: int
    rejected: int
