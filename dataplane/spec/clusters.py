"""Foreign Kafka clusters that the operator has configured, and the topics that each tenant may read. Pure.

They come from a file of the operator's (`PENSTOCK_KAFKA_CLUSTERS`): a broker redirects its clients to other addresses,
so a check of an address that a customer enters would be ineffective.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase

import msgspec
from msgspec import Struct

from dataplane.spec.sources import KafkaSource


class ForeignCluster(Struct, forbid_unknown_fields=True, frozen=True):
    """Cluster: tenants that may read it, patterns of topics (`orders.*`), client settings with `bootstrap.servers`."""

    tenants: list[str]
    topics: list[str]
    settings: dict[str, str]


Clusters = Mapping[str, ForeignCluster]
_decoder = msgspec.json.Decoder(dict[str, ForeignCluster])


def parse_clusters(text: bytes) -> Clusters:
    """Return the clusters in a JSON file's text, by name. Raises ValueError, with the reason, for an invalid file."""
    try:
        found = _decoder.decode(text)
    except msgspec.DecodeError as exc:
        raise ValueError(f"PENSTOCK_KAFKA_CLUSTERS: {exc}") from exc
    for name, cluster in found.items():
        if "bootstrap.servers" not in cluster.settings:
            raise ValueError(f"PENSTOCK_KAFKA_CLUSTERS: {name} needs bootstrap.servers in its settings")
    return found


def why_not_readable(clusters: Clusters, source: KafkaSource, tenant: str) -> tuple[str, str] | None:
    """Return (field, what it needs) if the tenant may not read the source's topic; None if it may."""
    readable = {name: cluster for name, cluster in clusters.items() if tenant in cluster.tenants}
    cluster = readable.get(source.cluster)
    if cluster is None:
        return "cluster", f"needs a cluster that you may read: {', '.join(sorted(readable)) or 'there is none'}"
    if not any(fnmatchcase(source.topic, pattern) for pattern in cluster.topics):
        return "topic", f"needs a topic that you may read there: {', '.join(cluster.topics)}"
    return None
