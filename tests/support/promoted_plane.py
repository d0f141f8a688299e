"""Ingest and lanes on a promoted standby cluster, in place of a data plane that was killed."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tests.support.broker import Broker
from tests.support.cluster import Cluster
from tests.support.lane_plane import NOBODY, LanePlane
from tests.support.ledger_checks import AuditReader


class PromotedPlane(LanePlane):
    """The cell of a former plane on another broker: the same topics, port, keys and receiver, and no files of it."""

    def __init__(
        self, var: Path, former: LanePlane, broker: Broker, more: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        var.mkdir()
        self.broker, self.port, self.receiver = broker, former.port, former.receiver
        cluster = Cluster(broker.address, former.cluster.cell, former.cluster.partitions)
        cluster.topics, cluster.fernet_key = former.cluster.topics, former.cluster.fernet_key
        self.cluster = cluster
        self.books = AuditReader(broker.address, cluster.topics)
        self.env = former.env | cluster.env(str(var), self.port) | dict(more)
        self._start(var, NOBODY, MappingProxyType({}))
