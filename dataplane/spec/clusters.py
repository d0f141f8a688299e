"""Kafka clusters that are not ours, as the platform names them: who may read which of their topics. Pure.

They stand in a file of the operator's (`PENSTOCK_KAFKA_CLUSTERS`), because a broker tells its clients where to connect
to next: no check of an address that a customer writes would hold.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase

import msgspec
from msgspec import Struct

from dataplane.spec.sources import KafkaSource


class ForeignCluster(Struct, forbid_unknown_fields=True, frozen=True):
    """Whose pipes may read it, which topics (`orders.*`), and the client's settings, `bootstrap.servers` at least."""

    tenants: list[str]
    topics: list[str]
    settings: dict[str, str]


Clusters = Mapping[str, ForeignCluster]
_decoder = msgspec.json.Decoder(dict[str, ForeignCluster])


def parse_clusters(text: bytes) -> Clusters:
    """Raises ValueError, saying what is wrong."""
    try:
        found = _decoder.decode(text)
    except msgspec.DecodeError as exc:
        raise ValueError(f"PENSTOCK_KAFKA_CLUSTERS: {exc}") from exc
    for name, cluster in found.items():
        if "bootstrap.servers" not in cluster.settings:
            raise ValueError(f"PENSTOCK_KAFKA_CLUSTERS: {name} needs bootstrap.servers among its settings")
    return found


def why_not_readable(clusters: Clusters, source: KafkaSource, tenant: str) -> tuple[str, str] | None:
    """(field, what it needs) if this tenant may not read this topic; None if it may."""
    ours = {name: cluster for name, cluster in clusters.items() if tenant in cluster.tenants}
    cluster = ours.get(source.cluster)
    if cluster is None:
        return "cluster", f"needs one of the clusters that you may read, {', '.join(sorted(ours)) or 'there is none'}"
    if not any(fnmatchcase(source.topic, pattern) for pattern in cluster.topics):
        return "topic", f"needs one of the topics that you may read there, {', '.join(cluster.topics)}"
    return None
