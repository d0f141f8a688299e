"""Settings of the data plane: environment variables that are read once, at a process's entry point."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

import dataplane
from dataplane.addresses import DEFAULT_INGEST, DEFAULT_KAFKA, DEFAULT_WEB, INGEST_PORT
from dataplane.kafka_settings import kafka_settings
from dataplane.names import RELEASE_VARIABLE
from dataplane.record_limits import BODY_BYTES
from dataplane.spec.clusters import Clusters, parse_clusters
from dataplane.spec.guard import Network, parse_networks
from dataplane.spec.loops import Endpoint, parse_endpoints
from dataplane.spec.storage import parse_lakes
from dataplane.tables.quotas import MIB, Quotas, parse_quotas

# Spark places the 16 slots of keys by a hash: of 5 or 8 partitions, one would have none, and the largest of 3 more
# slots than the largest of 2. 0 keeps those of the checkpoint.
STATE_PARTITIONS: Final = (0, 1, 2, 4)


class DataPlaneSettings(Struct, frozen=True):
    """Limits and addresses. Each field names the variable that it is read from."""

    kafka: str  # PENSTOCK_KAFKA: bootstrap servers
    var: Path  # PENSTOCK_VAR: directory of snapshots, journals and logs
    fernet_keys: tuple[str, ...]  # PENSTOCK_FERNET_KEYS: comma-separated, the first encrypts
    ingest_url: str  # PENSTOCK_INGEST_URL: base URL of ingest, as senders see it
    ingest_host: str  # PENSTOCK_INGEST_HOST
    ingest_port: int  # PENSTOCK_INGEST_PORT
    grace_s: int  # PENSTOCK_GRACE_S: how late an event may arrive and still count in its own minute
    max_event_bytes: int  # PENSTOCK_MAX_EVENT_BYTES: the body of one event, at most record_limits.BODY_BYTES
    max_body_bytes: int  # PENSTOCK_MAX_BODY_BYTES: the body of one request, after decompression
    destination_allow: tuple[Network, ...]  # PENSTOCK_DESTINATION_ALLOW: networks allowed although not public
    destination_ca: str  # PENSTOCK_DESTINATION_CA: file of CAs to trust instead of the system's
    https_only: bool  # PENSTOCK_ENV is production: nothing is sent unencrypted
    checkpoint_ms: int  # PENSTOCK_CHECKPOINT_MS: interval of a lane's checkpoints
    max_unsettled: int  # PENSTOCK_MAX_UNSETTLED: messages in an ack window, per partition
    web_url: str  # PENSTOCK_WEB_URL: base URL of receipts
    retry_rate_per_s: float  # PENSTOCK_RETRY_RATE: messages per destination that a retrier lane returns per second
    lakes: tuple[str, ...]  # PENSTOCK_LAKES: base URLs allowed for lake tables; the first is the default
    clusters: Clusters  # PENSTOCK_KAFKA_CLUSTERS: file of the Kafka clusters that sources may read
    dead_percent: int  # PENSTOCK_DEAD_PERCENT: share of a pipe's messages in a minute that its steps may reject, ...
    dead_least: int  # PENSTOCK_DEAD_LEAST: ... once there are this many; above it the pipe is held
    fields: str  # PENSTOCK_FIELDS: what is recorded of sampled messages: values | names | off
    lake_every_s: float  # PENSTOCK_LAKE_EVERY_S: interval of writes to the lake
    state_partitions: int  # PENSTOCK_STATE_PARTITIONS: of each query's state; 0 keeps those that it has
    own_ingest: frozenset[Endpoint]  # PENSTOCK_INGEST_URL, PENSTOCK_INGEST_PORT, PENSTOCK_OWN_INGEST: never sent to
    quotas: Quotas  # PENSTOCK_QUOTAS: quotas of tenants for which staff have set none
    in_flight_bytes: int  # PENSTOCK_IN_FLIGHT_BYTES: bodies of all tenants that an ingest replica holds at once
    release: str = ""  # PENSTOCK_RELEASE: of an ingest replica that the box's supervisor started from a release


def settings_from(env: Mapping[str, str] = os.environ) -> DataPlaneSettings:
    """Read the environment; every variable has a default for a box in development.

    Raises ValueError if a variable is invalid, PENSTOCK_KAFKA_SETTINGS too, and OSError if the file of
    PENSTOCK_KAFKA_CLUSTERS cannot be read.
    """
    kafka_settings(env)  # an error at the start, not at the first client
    return DataPlaneSettings(
        kafka=env.get("PENSTOCK_KAFKA", DEFAULT_KAFKA),
        var=Path(env.get("PENSTOCK_VAR", "var")).absolute(),
        fernet_keys=tuple(filter(None, env.get("PENSTOCK_FERNET_KEYS", "").split(","))),
        ingest_url=(env.get("PENSTOCK_INGEST_URL") or DEFAULT_INGEST).rstrip("/"),
        ingest_host=env.get("PENSTOCK_INGEST_HOST", "127.0.0.1"),
        ingest_port=int(env.get("PENSTOCK_INGEST_PORT", str(INGEST_PORT))),
        grace_s=int(env.get("PENSTOCK_GRACE_S", "60")),
        max_event_bytes=_event_bytes(env.get("PENSTOCK_MAX_EVENT_BYTES", str(256 * 1024))),
        max_body_bytes=int(env.get("PENSTOCK_MAX_BODY_BYTES", str(5 * 1024 * 1024))),
        destination_allow=parse_networks(env.get("PENSTOCK_DESTINATION_ALLOW", "")),
        destination_ca=env.get("PENSTOCK_DESTINATION_CA", ""),
        https_only=env.get("PENSTOCK_ENV", "development") == "production",
        checkpoint_ms=int(env.get("PENSTOCK_CHECKPOINT_MS", "200")),
        max_unsettled=int(env.get("PENSTOCK_MAX_UNSETTLED", "20000")),
        web_url=env.get("PENSTOCK_WEB_URL", DEFAULT_WEB).rstrip("/"),
        lakes=parse_lakes(env.get("PENSTOCK_LAKES", ""), env.get("PENSTOCK_VAR", "var")),
        clusters=read_clusters(env.get("PENSTOCK_KAFKA_CLUSTERS", "")),
        lake_every_s=float(env.get("PENSTOCK_LAKE_EVERY_S", "10")),
        state_partitions=_state_partitions(env.get("PENSTOCK_STATE_PARTITIONS") or "0"),
        own_ingest=parse_endpoints(
            f"127.0.0.1:{env.get('PENSTOCK_INGEST_PORT', INGEST_PORT)}",
            env.get("PENSTOCK_INGEST_URL", ""),
            env.get("PENSTOCK_OWN_INGEST", ""),
        ),
        quotas=parse_quotas(env.get("PENSTOCK_QUOTAS", "")),
        in_flight_bytes=int(env.get("PENSTOCK_IN_FLIGHT_BYTES", str(256 * MIB))),
        release=_running_release(env.get(RELEASE_VARIABLE, "")),
        fields=_fields_mode(env.get("PENSTOCK_FIELDS", "values")),
        dead_percent=int(env.get("PENSTOCK_DEAD_PERCENT", "50")),
        dead_least=int(env.get("PENSTOCK_DEAD_LEAST", "100")),
        retry_rate_per_s=float(env.get("PENSTOCK_RETRY_RATE", "1000")),
    )


def read_clusters(path: str) -> Clusters:
    """Return the clusters in a file, {} for an empty path. Raises OSError or ValueError if it is unreadable."""
    return parse_clusters(Path(path).read_bytes()) if path else {}


def _state_partitions(text: str) -> int:
    """Raise ValueError for a number of partitions over which the slots of keys are not spread."""
    if text not in map(str, STATE_PARTITIONS):
        raise ValueError(f"PENSTOCK_STATE_PARTITIONS: needs 1, 2 or 4, or empty to keep them, got {text}")
    return int(text)


def _running_release(release: str) -> str:
    """Return the release if the data plane was imported from it: without its file, Python imports installed code."""
    return release if release and release in str(dataplane.__file__) else ""


def _event_bytes(text: str) -> int:
    """Raise ValueError for a limit that would accept events too large for the topics."""
    if not 0 < int(text) <= BODY_BYTES:
        raise ValueError(f"PENSTOCK_MAX_EVENT_BYTES: needs 1 to {BODY_BYTES}, got {text}")
    return int(text)


def _fields_mode(text: str) -> str:
    """Raise ValueError for an unknown mode: a default might record more than was meant."""
    if text not in ("values", "names", "off"):
        raise ValueError(f"PENSTOCK_FIELDS: needs values, names or off, got {text!r}")
    return text
